"""What is wrong with a table that is read in chunks."""

from __future__ import annotations

from dprepro.errors import DpreproError


class TableError(DpreproError, ValueError):
    """A table cannot be read as asked. The message quotes no value and counts no rows."""
