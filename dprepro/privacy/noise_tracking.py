"""What draws noise in a fit: if none has when it fails, nothing was spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dprepro.privacy.ledger import Ledger
    from dprepro.privacy.ledger_entry import LedgerEntry


class Watched(Protocol):
    """What draws noise; see `dprepro.privacy.mechanisms.NoiseSource`."""

    @property
    def may_have_drawn(self) -> bool:
        """Whether it has drawn noise, or cannot rule it out."""
        ...

    def drawn_for(self, ledger: Ledger) -> list[LedgerEntry]:
        """Return the entries of a ledger that it wrote and has drawn exact noise for."""
        ...


_WATCHED: ContextVar[tuple[list[Watched], ...]] = ContextVar("watched", default=())


@contextmanager
def watching_noise() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether a fit of this context may have drawn noise by now."""
    with watching_sources() as sources:
        yield lambda: any(source.may_have_drawn for source in sources)


@contextmanager
def watching_sources() -> Iterator[list[Watched]]:
    """Yield a list that each new source of this context joins. Contexts can be nested."""
    sources: list[Watched] = []
    token = _WATCHED.set((*_WATCHED.get(), sources))
    try:
        yield sources
    finally:
        _WATCHED.reset(token)


def watch(source: Watched) -> None:
    """Watch a new source of noise, for all who asked for it."""
    for sources in _WATCHED.get():
        sources.append(source)
