"""How far a fit to a table, or a prediction of one, has come, for whoever listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

What = Literal["reading rows", "boosting", "predicting"]
"""Rows of the table are read; steps of DP-EBM, or queries of DP-EBM+, are answered; new rows of a
table are predicted."""


class Listener(Protocol):
    """Hears how far it has come. Numbers of rows are private: for the user's own terminal."""

    def __call__(self, what: What, done: int, total: int | None) -> None:
        """Take in how much is done, of how much; None where that is not known."""
        ...


_LISTENER: ContextVar[Listener | None] = ContextVar("progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear of what is done to tables in this context."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(what: What, done: int, total: int | None) -> None:
    """Tell whoever listens."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, total)
