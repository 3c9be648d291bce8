"""Compare all cells, measured and printed, and their verdicts with those recorded before."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import MEBIBYTE, read_text

NAME = "verdicts.csv"
"""The file beside the journals that holds what was recorded."""

_KEY = ("paper", "table", "dataset", "method", "epsilon", "metric", "config")
COLUMNS = (
    *_KEY, "mean", "sd", "splits", "published_mean", "published_sd", "published_splits",
    "z", "ci_low", "ci_high", "margin", "equivalent", "verdict",
)  # fmt: skip
# Digits of recorded numbers, and how far they may differ: processors differ in the last digits.
_DIGITS = 9
_TOLERANCE = 1e-6
_MOST_BYTES = 64 * MEBIBYTE

Row = Mapping[str, str]


def recorded_text(rows: Iterable[Row]) -> str:
    """Return rows as the text of the file, in the order of their keys."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=_key))
    return text.getvalue()


def in_text(value: object) -> str:
    """Return a value as the file has it: numbers with nine significant digits."""
    if value is None:
        return ""
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)


def read_recorded(path: Path) -> list[dict[str, str]]:
    """Return the recorded rows.

    Raises DpreproError if the file cannot be read, or has other columns.
    """
    renew = "`dprepro check --record` writes it anew"
    try:
        text = read_text(path, _MOST_BYTES)
    except DpreproError as error:
        raise DpreproError(f"{error}; {renew}") from error
    reader = csv.DictReader(io.StringIO(text, newline=""))  # names can hold ends of lines
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise DpreproError(f"{path}: the columns are not {', '.join(COLUMNS)}; {renew}")
    try:
        rows = list(reader)
    except csv.Error as error:
        raise DpreproError(f"{path}: cannot be read: {error}; {renew}") from error
    if any(None in row or None in row.values() for row in rows):
        raise DpreproError(f"{path}: a line has another number of fields; {renew}")
    return rows


def changes(recorded: Iterable[Row], now: Iterable[Row]) -> list[str]:
    """Name what differs between two sets of rows, a line a cell: what was recorded, what is now."""
    before, after = ({_key(row): row for row in rows} for rows in (recorded, now))
    lines = [
        f"{_words(key)}: was recorded, and is no longer there" for key in before.keys() - after
    ]
    lines += [f"{_words(key)}: was not recorded" for key in after.keys() - before]
    for key in before.keys() & after:
        differ = [
            f"{name} {after[key][name] or 'none'}, recorded {before[key][name] or 'none'}"
            for name in COLUMNS
            if not _alike(before[key][name], after[key][name])
        ]
        if differ:
            lines.append(f"{_words(key)}: {'; '.join(differ)}")
    return sorted(lines)


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in _KEY)


def _words(key: tuple[str, ...]) -> str:
    values = dict(zip(_KEY, key, strict=True))
    place = f"{values['paper']} table {values['table']}: " if values["paper"] else ""
    config = f" ({values['config']})" if values["config"] else ""
    return (
        f"{place}{values['dataset']}, {values['method']}, epsilon {values['epsilon'] or 'inf'}, "
        f"{values['metric']}{config}"
    )


def _alike(one: str, other: str) -> bool:
    try:
        first, second = float(one), float(other)
    except ValueError:
        return one == other
    return one == other or abs(first - second) <= _TOLERANCE * max(abs(first), abs(second))
