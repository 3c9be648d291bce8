"""YAML files: read with the line of every value, so that errors name it, and into pydantic models.

Plain values are those of YAML 1.2, not of 1.1: ``1e-6`` is a number; ``no``, ``1:30`` and dates are
texts. A number that a float cannot hold, and one like ``010``, which 1.1 and 1.2 read differently,
is refused.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.files import MEBIBYTE, read_text

KeyPath = tuple[str | int, ...]

FILL_IN = "FILL_IN"
"""What stands in a file of `dprepro new` where a person has to fill something in."""

_DEEPEST = 50
"""Lists and mappings in one another; deeper ones would end the C parser, not raise an error."""

_MOST_NODES = 50_000
"""Lists, mappings, keys and values, those that aliases repeat included: about a second of work."""

_MOST_BYTES = 4 * MEBIBYTE
_MOST_DIGITS = 100
# What no YAML file may hold, though a text of Python may.
_UNPRINTABLE = re.compile(
    r"[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufeff\uff01-\ufffd\U00010000-\U0010ffff]"
)

_ABSENT = {"null": (r"~|null|Null|NULL|", "~nN"), "merge": ("<<", "<")}
_CORE = {
    **_ABSENT,
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
}
"""The core schema of YAML 1.2, and the merge key of 1.1."""

_LIST, _MAPPING = "a list is needed", "a mapping of keys to values is needed"
_WORDS = {
    "tuple_type": _LIST,
    "list_type": _LIST,
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
}

_TAKEN_BY: dict[Kind, str] = {
    "card": "`dprepro new config CARD` writes a config for it, `dprepro data check CARD` checks "
    "it, and `dprepro release CARD` fits a model to release",
    "config": "`dprepro run CONFIG` runs it; its `dataset` names its card",
    "model file": "`dprepro ledger MODEL` prints what it spends, `dprepro show MODEL` makes a page "
    "of it",
}

_MOST_PROBLEMS = 20
_LONGEST_VALUE = 200


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
            # A key that is no text, such as ~, has no line of its own.
            line = next(
                (self.lines[k] for n in range(len(keys), 0, -1) if (k := keys[:n]) in self.lines), 1
            )
            named = ".".join(str(key) for key in keys if isinstance(key, str))
            comment = self.text.splitlines()[line - 1].partition(" # ")[2].strip()
            found.setdefault(
                line,
                f"line {line}"
                + (f", {named}" if named else "")
                + (f": {comment}" if comment else ""),
            )
        return [found[line] for line in sorted(found)]


_Base: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""libyaml's parser where PyYAML was built with it, as commands read dozens of configs."""


_Resolvers = dict[str, list[tuple[str, re.Pattern[str]]]]


def _resolvers(rules: Mapping[str, tuple[str, str]]) -> _Resolvers:
    """Return PyYAML's form of rules: by tag a pattern, and the characters that it begins with."""
    found: _Resolvers = {}
    for tag, (pattern, beginnings) in rules.items():
        for first in beginnings or [""]:
            rule = (f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"))
            found.setdefault(first, []).append(rule)
    return found


class _Loader(_Base):
    """Safe YAML whose plain values are those of YAML 1.2."""

    yaml_implicit_resolvers = _resolvers(_CORE)


class _TextLoader(_Base):
    """Reads every plain value except null as text: a checksum such as ``1234e567`` is no number."""

    yaml_implicit_resolvers = _resolvers(_ABSENT)


def _construct_int(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    digits = text.lstrip("-+")
    if len(digits) > _MOST_DIGITS:
        raise _refusal(node, f"a number with more than {_MOST_DIGITS} digits")
    if digits.isdecimal() and digits[0] == "0" and len(digits) > 1:
        raise _refusal(
            node,
            f"{text} is read as an octal number by YAML 1.1 and as a decimal one by 1.2. Leave out "
            "the zeros; for a text, put it in quotes",
        )
    try:
        return int(text, 0)
    except ValueError:  # of a value with the tag !!int
        raise _refusal(node, f"{text!r} is not a whole number") from None


def _construct_float(loader: Any, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node)
    try:
        value = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        raise _refusal(node, f"{text!r} is not a number") from None
    if problem := beyond_floats(text, value):
        raise _refusal(node, problem)
    return value


def beyond_floats(text: str, value: float) -> str:
    """Return what is wrong if a float cannot hold the number that a text is, else nothing.

    Parameters
    ----------
    text, value
        The number as it is written, and what Python's `float` makes of it.
    """
    if math.isinf(value) and "inf" not in text.lower():
        return f"{_brief(text)} is too large for a number; the largest is 1.8e308"
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        return f"{_brief(text)} is too close to 0 for a number; write 0, or at least 5e-324"
    return ""


def _brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _refusal(node: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def read_yaml(path: Path, text_only: bool = False) -> YamlSource:
    """Read a YAML file. With `text_only` numbers, dates and booleans are read as text.

    Raises
    ------
    DpreproError
        If the file cannot be read, is not YAML, or gives a key twice; the message names the line.
    """
    text = read_text(path, _MOST_BYTES)
    if found := _UNPRINTABLE.search(text):
        number = text.count("\n", 0, found.start()) + 1
        raise DpreproError(
            f"{path}, line {number}: not valid YAML: it holds {found[0]!a}, a control character"
        )
    loader = None
    try:
        _refuse_large(text)
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
    except (ValueError, AttributeError, TypeError, LookupError, OverflowError) as error:
        # What PyYAML leaves to Python: `!!timestamp 2024-02-30`, `!!bool maybe`.
        raise DpreproError(
            f"{path}: not valid YAML: a value does not fit the tag (`!!...`) before it; leave out "
            "the tags"
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


@dataclass
class _Open:
    """A list or mapping that is being read: its anchor, and how large and deep it is so far."""

    anchor: str | None
    nodes: int = 1
    levels: int = 1

    def add(self, nodes: int, levels: int) -> None:
        self.nodes += nodes
        self.levels = max(self.levels, levels + 1)


def _refuse_large(text: str) -> None:
    """Refuse what would take long to read, or would never end: aliases count as what they repeat.

    Raises yaml.MarkedYAMLError.
    """
    whole = _Open(None, 0, 0)
    opened = [whole]
    named: dict[str, tuple[int, int]] = {}  # nodes and levels behind each anchor
    total = 0
    for event in yaml.parse(text, Loader=_Base):
        nodes, levels = 1, 0
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append(_Open(event.anchor))
            if event.anchor is not None:
                named.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = opened.pop()
            if closed.anchor is not None:
                named[closed.anchor] = closed.nodes, closed.levels
            opened[-1].add(closed.nodes, closed.levels)
            continue
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in {one.anchor for one in opened}:
                raise _refusal(event, f"*{event.anchor} is a part of itself")
            nodes, levels = named.get(str(event.anchor), (1, 0))
            opened[-1].add(nodes, levels)
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor is not None:
                named[event.anchor] = nodes, levels
            opened[-1].add(nodes, levels)
        else:
            continue
        total += nodes
        if total > _MOST_NODES:
            raise _refusal(event, f"more than {_MOST_NODES:,} lists, mappings, keys and values")
        if len(opened) - 1 + levels > _DEEPEST:
            raise _refusal(event, f"lists and mappings are nested deeper than {_DEEPEST} levels")


def _note_lines(node: yaml.Node, keys: KeyPath, lines: dict[KeyPath, int], path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        given: dict[object, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            same = _as_key(key)
            if same in given:
                # PyYAML would use the second without a warning.
                raise DpreproError(
                    f"{path}, line {line}: {key.value!r} is given twice (first on line "
                    f"{given[same]}); keep one of them"
                )
            given[same] = line
            here = (*keys, str(key.value))
            lines[here] = line
            _note_lines(value, here, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for position, entry in enumerate(node.value):
            lines[(*keys, position)] = entry.start_mark.line + 1
            _note_lines(entry, (*keys, position), lines, path)


def _as_key(key: yaml.Node) -> object:
    """Return what tells a key from others: 1 and 1.0 are one key, though their texts differ."""
    if key.tag.endswith((":int", ":float")):
        try:
            return float(key.value)
        except ValueError:  # such as 0x10 or .inf
            pass
    return str(key.value)


Model = TypeVar("Model", bound=BaseModel)

Kind = Literal["card", "config", "model file"]
"""What a user can mistake for something else."""


def read_model(path: Path, model: type[Model], kind: Kind | None = None) -> Model:
    """Read the YAML file at `path` as a `model`; see `read_with_source`."""
    return read_with_source(path, model, kind)[1]


def read_with_source(
    path: Path, model: type[Model], kind: Kind | None = None
) -> tuple[YamlSource, Model]:
    """Return the YAML file at `path`, and the `model` that it is.

    Scalars are read as text; the model converts them.

    Raises
    ------
    DpreproError
        If the file cannot be read, is not YAML, has a place that is still to be filled in (see
        `dprepro.runtime.yaml_files.FILL_IN`), or has a key that is not valid. The message has
        file, line, key, what was given, what is allowed, and the nearest name. If the file is of
        another `kind`, as `refuse_other_kind`.
    """
    source = read_yaml(path, text_only=True)
    if not isinstance(source.values, dict):
        allowed = ", ".join(model.model_fields)
        raise DpreproError(f"{path}: must be a mapping of keys to values. Keys: {allowed}")
    if kind is not None:
        refuse_other_kind(source.values, path, kind)
    if places := source.unfilled:
        raise DpreproError(
            "\n  ".join([f"{path}: still to be filled in, in the place of {FILL_IN}:", *places])
        )
    try:
        return source, model.model_validate(source.values)
    except ValidationError as error:
        raise DpreproError(explain_all(error, model, source)) from error


def refuse_other_kind(values: Any, path: Path, wanted: Kind) -> None:
    """Refuse a file of another kind in one line, and not each of its keys.

    Parameters
    ----------
    values
        What is in the file.

    Raises
    ------
    DpreproError
        If its keys are those of a card, a config or a model file, and that is not what is `wanted`.
        The message names the commands that take it.
    """
    found = _kind_of(values)
    if found is not None and found != wanted:
        raise DpreproError(f"{path}: this is a {found}, not a {wanted}. {_TAKEN_BY[found]}")


def _kind_of(values: Any) -> Kind | None:
    keys = set(values) if isinstance(values, dict) else set()
    if {"format", "version", "features", "ledger"} <= keys:
        return "model file"
    if "methods" in keys and keys & {"dataset", "epsilons", "metric"}:
        return "config"
    if {"task", "target"} <= keys and "methods" not in keys:
        return "card"
    return None


def explain_all(
    error: ValidationError, model: type[BaseModel], source: YamlSource, more: Sequence[str] = ()
) -> str:
    """Return an error of pydantic's as one line for each of its first problems; see `explain`."""
    found = error.errors()
    lines = [explain(detail, model, source, more) for detail in found[:_MOST_PROBLEMS]]
    left = len(found) - _MOST_PROBLEMS
    return "\n".join([*lines, f"and {left} more"] if left > 0 else lines)


def explain(
    detail: ErrorDetails, model: type[BaseModel], source: YamlSource, more: Sequence[str] = ()
) -> str:
    """Return an error of pydantic's as one line: place, what was given, what is allowed.

    `more` are keys that the file may have beside those of the model.
    """
    where = source.where(*detail["loc"])
    given = detail["input"]
    if detail["type"] == "extra_forbidden":
        parent = detail["loc"][:-1]
        allowed = [*_model_at(parent, model).model_fields, *([] if parent else more)]
        hint = nearest(str(detail["loc"][-1]), allowed)
        return f"{where}: unknown key{hint or '.'} Allowed: {', '.join(allowed)}"
    if detail["type"] == "missing":
        return f"{where}: missing; add this key"
    if detail["type"] == "literal_error":
        allowed = re.findall(r"'([^']+)'", detail["ctx"]["expected"])
        hint = nearest(str(given), allowed)
        return f"{where}: given {_shown(given)}{hint or '.'} Allowed: {', '.join(allowed)}"
    message = in_words(detail["type"], detail["msg"])
    # The message of a rule about several keys says what was given.
    shown = "" if isinstance(given, dict) else f"; given {_shown(given)}"
    return f"{where}: {message[0].lower()}{message[1:]}{shown}"


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _model_at(loc: Sequence[int | str], model: type[BaseModel]) -> type[BaseModel]:
    current: Any = model
    for step in loc:
        if isinstance(current, type) and issubclass(current, BaseModel):
            current = _unwrap(current.model_fields[str(step)].annotation)
        else:
            # The items of a list or tuple, the values of a dict.
            current = _unwrap([kind for kind in get_args(current) if kind is not ...][-1])
    assert issubclass(current, BaseModel)
    return current


def _unwrap(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation
