"""Read a YAML file into a pydantic model, with errors that name file, line and key."""

from __future__ import annotations

import re
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dprepro.errors import DpreproError, nearest
from dprepro.yaml_source import FILL_IN, YamlSource, in_words, read_yaml

Model = TypeVar("Model", bound=BaseModel)

Kind = Literal["card", "config", "model file"]
"""What a user can mistake for something else."""

_TAKEN_BY: dict[Kind, str] = {
    "card": "`dprepro new config CARD` writes a config for it, `dprepro data check CARD` checks "
    "it, and `dprepro release CARD` fits a model to release",
    "config": "`dprepro run CONFIG` runs it; its `dataset` names its card",
    "model file": "`dprepro ledger MODEL` prints what it spends, `dprepro show MODEL` makes a page "
    "of it",
}

_MOST_PROBLEMS = 20
_LONGEST_VALUE = 200


def read_model(path: Path, model: type[Model], kind: Kind | None = None) -> Model:
    """Read the YAML file at `path` as a `model`. Scalars are read as text; the model converts them.

    Raises
    ------
    DpreproError
        If the file cannot be read, is not YAML, has a place that is still to be filled in (see
        `dprepro.yaml_source.FILL_IN`), or has a key that is not valid. The message has
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
        return model.model_validate(source.values)
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
