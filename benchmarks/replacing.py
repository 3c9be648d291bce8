"""One part in the place of another, for as long as a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, part: Any) -> Iterator[None]:
    """Let `owner`, a module or a class, have `part` as its own attribute `name`.

    Raises
    ------
    KeyError
        If `owner` itself has no such attribute: nothing would use the part.
    """
    before = vars(owner)[name]
    setattr(owner, name, part)
    try:
        yield
    finally:
        setattr(owner, name, before)
