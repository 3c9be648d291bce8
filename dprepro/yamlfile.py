"""Read a YAML file into a pydantic model, with errors that name file, line or key."""

from __future__ import annotations

import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dprepro.errors import DpreproError, nearest

Model = TypeVar("Model", bound=BaseModel)


class _TextLoader(yaml.SafeLoader):
    """Keeps every scalar but null as text and refuses repeated keys.

    YAML 1.1 reads ``No`` as false and a checksum such as ``1234e567`` as a number; the model
    knows what it wants, so it does the conversion.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} appears twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag.endswith((":null", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the file's top-level mapping; scalars are text, ``null`` and nothing are None.

    Raises
    ------
    DpreproError
        If the file cannot be read, is not valid YAML, repeats a key or is not a mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_TextLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise DpreproError(f"{path}: cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DpreproError(f"{path}{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise DpreproError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise DpreproError(f"{path}: must be a mapping of keys to values, is {_kind(content)}")
    return content


def read_model(path: Path, model: type[Model]) -> Model:
    """Return the file as a `model`.

    Raises
    ------
    DpreproError
        As `read_mapping`, and for every key that does not fit: file, key, what was given, what
        is allowed, and the nearest match of an unknown key or value.
    """
    content = read_mapping(path)
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [_explain(detail, model) for detail in error.errors()]
        raise DpreproError("\n".join(f"{path}: {line}" for line in lines)) from error


def _explain(detail: ErrorDetails, model: type[BaseModel]) -> str:
    where = ".".join(map(str, detail["loc"])) or "the file"
    given = detail["input"]
    if detail["type"] == "extra_forbidden":
        return _unknown_key(where, detail["loc"], model)
    if detail["type"] == "missing":
        return f"{where}: is missing"
    if detail["type"] == "literal_error":
        allowed = [value.strip("'") for value in _split_choices(detail["ctx"]["expected"])]
        hint = nearest(str(given), allowed)
        return f"{where}: given {given!r}{hint}. Allowed: {', '.join(allowed)}"
    message = detail["msg"].removeprefix("Value error, ")
    if isinstance(given, dict | BaseModel):  # the message of a rule across keys says what is given
        return f"{where}: {message}"
    return f"{where}: given {given!r}: {message}"


def _unknown_key(where: str, loc: Sequence[int | str], model: type[BaseModel]) -> str:
    allowed = sorted(_model_at(loc[:-1], model).model_fields)
    key = str(loc[-1])
    return f"{where}: unknown key{nearest(key, allowed)}. Allowed: {', '.join(allowed)}"


def _model_at(loc: Sequence[int | str], model: type[BaseModel]) -> type[BaseModel]:
    current: Any = model
    for step in loc:
        if isinstance(current, type) and issubclass(current, BaseModel):
            current = _unwrap(current.model_fields[str(step)].annotation)
        else:
            current = _unwrap(get_args(current)[-1])  # the items of a list, the values of a dict
    assert issubclass(current, BaseModel)
    return current


def _unwrap(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def _split_choices(expected: str) -> list[str]:
    return expected.replace(" or ", ", ").split(", ")


def _kind(content: object) -> str:
    return {type(None): "empty", list: "a list"}.get(type(content), f"the text {content!r}")
