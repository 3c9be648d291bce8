"""YAML files with the line of every value, so that errors can name it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from dprepro.errors import DpreproError

KeyPath = tuple[str | int, ...]

FILL_IN = "FILL_IN"
"""What stands in a file of `dprepro new` where a person has to fill something in."""


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file.

    Attributes
    ----------
    path, text
        The file and its text.
    values
        The parsed document: dicts, lists and scalars.
    lines
        1-based line of every key and list entry, by key path, e.g. ``("methods", 2, "params")``.
    """

    path: Path
    text: str
    values: Any
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def where(self, *keys: str | int) -> str:
        """Return the place of a key path: ``configs/adult.yaml, line 7, methods[2].params``."""
        known = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in self.lines), None)
        line = f", line {self.lines[known]}" if known else ""
        dotted = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in keys).lstrip(".")
        return f"{self.path}{line}" + (f", {dotted}" if dotted else "")

    @property
    def unfilled(self) -> list[str]:
        """The places that still hold `FILL_IN`, in order: line, keys, and the line's comment."""
        found: dict[int, str] = {}
        for keys in _paths_to(self.values, FILL_IN):
            line = self.lines[keys]
            named = ".".join(str(key) for key in keys if isinstance(key, str))
            comment = self.text.splitlines()[line - 1].partition(" # ")[2].strip()
            found.setdefault(line, f"line {line}, {named}" + (f": {comment}" if comment else ""))
        return [found[line] for line in sorted(found)]


_Base: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""libyaml's parser where PyYAML was built with it, as commands read dozens of configs."""

_DEEPEST = 50
"""Lists and mappings in one another; deeper ones would end the C parser, not raise an error."""


class _Loader(_Base):
    """Safe YAML in which ``1e-6`` is a number, as in YAML 1.2 (PyYAML reads it as a string)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


class _TextLoader(_Base):
    """Reads every scalar except null as text.

    In YAML 1.1 ``No`` is false, and a checksum such as ``1234e567`` is a number.
    """


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag.endswith((":null", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path, text_only: bool = False) -> YamlSource:
    """Read a YAML file. With `text_only` numbers, dates and booleans are read as text.

    Raises
    ------
    DpreproError
        If the file cannot be read, is not YAML, or gives a key twice; the message names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DpreproError(f"{path}: cannot be read: {error}") from error
    loader = None
    try:
        _refuse_deep(text)
        loader = _TextLoader(text) if text_only else _Loader(text)
        node = loader.get_single_node()
        lines: dict[KeyPath, int] = {}
        if node is not None:
            _note_lines(node, (), lines, path)
        values = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        # Of what is never closed libyaml names the line after the last.
        last = text.rstrip().count("\n") + 1
        line = f", line {min(mark.line + 1, last)}" if mark else ""
        raise DpreproError(
            f"{path}{line}: not valid YAML: {getattr(error, 'problem', None) or error}"
        ) from error
    finally:
        if loader is not None:
            loader.dispose()
    return YamlSource(path, text, values, lines)


def in_words(kind: str, message: str) -> str:
    """Return a validation message, with YAML's words for types instead of Python's.

    Parameters
    ----------
    kind, message
        ``type`` and ``msg`` of one of pydantic's error details.
    """
    return _WORDS.get(kind, message.removeprefix("Value error, "))


_LIST, _MAPPING = "a list is needed", "a mapping of keys to values is needed"
_WORDS = {
    "tuple_type": _LIST,
    "list_type": _LIST,
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
}


def _paths_to(values: Any, wanted: str, keys: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the key path of every text that equals `wanted`."""
    if values == wanted:
        yield keys
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _paths_to(value, wanted, (*keys, key))
    elif isinstance(values, list):
        for position, value in enumerate(values):
            yield from _paths_to(value, wanted, (*keys, position))


def _refuse_deep(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise yaml.MarkedYAMLError(
                    problem=f"lists and mappings are nested deeper than {_DEEPEST} levels",
                    problem_mark=cast(yaml.Mark, event.start_mark),
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _note_lines(node: yaml.Node, keys: KeyPath, lines: dict[KeyPath, int], path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*keys, str(key.value))
            line = key.start_mark.line + 1
            if here in lines:
                # PyYAML would use the second without a warning.
                raise DpreproError(
                    f"{path}, line {line}: {key.value!r} is given twice (first on line "
                    f"{lines[here]}); keep one of them"
                )
            lines[here] = line
            _note_lines(value, here, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for position, entry in enumerate(node.value):
            lines[(*keys, position)] = entry.start_mark.line + 1
            _note_lines(entry, (*keys, position), lines, path)
