"""Where the rows of a dataset stand in its files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dprepro.data.sources import RawFile, RawTable


class Place(NamedTuple):
    """A file, and the rows of a dataset that come from it.

    Attributes
    ----------
    origin
        Where the file is: a path or a URL.
    rows
        The numbers of these rows in the dataset, from 0.
    lines : int64 (len(rows),), or None
        The line in which each of them begins, from 1. None if the file has no lines, or if they do
        not follow each other without a gap, as where a text has a line break.
    """

    origin: str
    rows: range
    lines: np.ndarray | None

    def __repr__(self) -> str:
        return f"Place({len(self.rows)} rows)"


def places_of(raw: RawTable, records: np.ndarray) -> list[Place]:
    """Return where rows stand; nothing if that is not known, as of files that are joined.

    Parameters
    ----------
    records : int64 (n,)
        Which rows of the raw table they are, ascending.
    """
    places, first = [], 0
    for file in raw.files:
        start, stop = np.searchsorted(records, [first, first + file.rows])
        begin = _first_line(file)
        lines = None if begin is None else begin + records[start:stop] - first
        places.append(Place(file.origin, range(start, stop), lines))
        first += file.rows
    return places


def _first_line(file: RawFile) -> int | None:
    """Return the line of the first row, if every row takes one line, and none is between them."""
    begin, end = (file.line_of(row) if file.rows else None for row in (0, file.rows - 1))
    # Each row begins after the one before, so n rows in n lines have a line each.
    return begin if begin is not None and end == begin + file.rows - 1 else None
