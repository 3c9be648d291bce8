"""What is wrong with a table that is read in chunks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dprepro.errors import DpreproError, nearest


class TableError(DpreproError, ValueError):
    """A table cannot be read as asked. The message quotes no value and counts no rows."""


def nearest_column(name: str, present: Sequence[str], wanted: Collection[str]) -> str:
    """Return what to say of a column that is not there, while `wanted` were expected.

    The columns are named only if the table has one of these. If not, a CSV may have no header, and
    its first line may be a row.
    """
    if set(wanted) & set(present):
        return nearest(name, list(present))
    return ", nor any other that is expected: the first line of a CSV names its columns"
