"""Model files of unknown authors: every field is checked before anything is made of it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dprepro.additive.record import FORMAT, VERSIONS, ModelRecord, ledger_from_json
from dprepro.errors import DpreproError

_WRITTEN_BY = "`dprepro release CARD` and `dprepro fit CONFIG --output FILE` write one"
_MOST_LEVELS = 8
# More would take long, and memory, to refuse. The largest file has about as many numbers, and the
# most features, 100,000, have fewer keys.
_MOST_VALUES, _MOST_KEYS = 10_000_000, 1_500_000
_MOST_PROBLEMS = 5
# pydantic lists all or none, and takes a second for 300,000.
_MOST_LISTED = 10_000
_LONGEST_LINE = 240
# Half of a character: JSON can name it, but no file in UTF-8 can hold it.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def refuse_countless(text: str, where: Path | str) -> None:
    """Raise `DpreproError` if the text of a file has more values or keys than a model file."""
    if text.count(",") > _MOST_VALUES:
        raise DpreproError(f"{where}: more than {_MOST_VALUES:,} values, which no model file has")


def parse_strictly(text: str, path: Path | str) -> Any:
    """Return the JSON values of the text of `path`: no NaN, no infinities, no key twice.

    Raises
    ------
    DpreproError
        If it is anything else, or has more values or keys than a model file.
    """
    refuse_countless(text, path)
    keys = 0

    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal keys
        keys += len(pairs)
        if keys > _MOST_KEYS:
            raise ValueError(f"more than {_MOST_KEYS:,} keys")
        return _without_repeats(pairs)

    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=counted,
        )
    except RecursionError as error:
        raise DpreproError(f"{path}: nested more than {_MOST_LEVELS} levels deep") from error
    except ValueError as error:
        raise DpreproError(
            f"{path}: not JSON as a model file needs it: {error}. {_WRITTEN_BY}"
        ) from error


def checked_record(values: Any, where: str) -> ModelRecord:
    """Return what the JSON values of a model file say, each field checked, alone and with the rest.

    Raises
    ------
    DpreproError
        If they are not those of such a file, or of another version of the format, or if a field is
        wrong. The message begins with `where`.
    """
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise DpreproError(f'{where}: not a model file: "format" must be {FORMAT!r}; {_WRITTEN_BY}')
    if _is_deeper(values, _MOST_LEVELS):
        raise DpreproError(f"{where}: nested more than {_MOST_LEVELS} levels deep")
    if values.get("version") not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise DpreproError(
            f"{where}: version {_brief(repr(values.get('version')))} of the format is not known "
            f"here (allowed: {known}); use the release of dprepro that wrote it"
        )
    _refuse_half_characters(values, where)
    try:
        record = ModelRecord.model_validate(values)
        if record.ledger is not None:
            ledger_from_json(record.ledger)
    except ValidationError as error:
        lines = [f"{where}: {line}" for line in _problems(error)]
        raise DpreproError("\n".join(lines)) from error
    except ValueError as error:
        raise DpreproError(f"{where}: {_brief(str(error))}") from error
    return record


def _problems(error: ValidationError) -> list[str]:
    """Return what is wrong with a file, field by field; the first few."""
    if (count := error.error_count()) > _MOST_LISTED:
        return [f"{count:,} fields are unknown, missing or wrong; {_WRITTEN_BY}"]
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [
        _brief(
            f"{'.'.join(map(str, problem['loc'])) or 'model'}: "
            f"{problem['msg'].removeprefix('Value error, ')}"
        )
        for problem in found[:_MOST_PROBLEMS]
    ]
    more = len(found) - _MOST_PROBLEMS
    return [*lines, f"and {more} more"] if more > 0 else lines


def _refuse_half_characters(values: Any, where: str) -> None:
    """Raise `DpreproError` for a lone surrogate: with it, the model could not be saved again."""
    if not _LONE_SURROGATE.search(json.dumps(values, ensure_ascii=False)):
        return  # to look for the place takes much longer
    for place, text in _texts(values):
        if half := _LONE_SURROGATE.search(text):
            raise DpreproError(
                f"{where}: {_brief(place)}: holds {half[0]!a}, a lone surrogate (half of a "
                "character), which no text file can hold; take it out"
            )


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {repeated[:40]!r} is given twice")
    return values


def _is_deeper(values: Any, levels: int) -> bool:
    """Whether lists and mappings are nested more than `levels` deep; without recursion."""
    layer = [values]
    for _ in range(levels + 1):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, (list, dict))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(layer)


def _texts(values: Any, place: str = "model") -> Iterator[tuple[str, str]]:
    """Yield every text, keys of mappings too, with the place where it stands."""
    if isinstance(values, str):
        yield place, values
    elif isinstance(values, dict):
        for key, inner in values.items():
            yield place, str(key)
            yield from _texts(inner, f"{place}.{key}")
    elif isinstance(values, list):
        for position, inner in enumerate(values):
            if isinstance(inner, (str, list, dict)):  # not every number by itself
                yield from _texts(inner, f"{place}.{position}")


def _brief(line: str) -> str:
    """Return a line of a message: no longer than can be read, nothing that steers a terminal."""
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} … {line[-_LONGEST_LINE // 2 :]}"
    return "".join(c if c.isprintable() else "\ufffd" for c in line)
