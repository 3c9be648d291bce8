"""Whether a fit has drawn noise yet: if it fails before, nothing was spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Watched(Protocol):
    """What draws noise; see `dprepro.privacy.mechanisms.NoiseSource`."""

    @property
    def may_have_drawn(self) -> bool:
        """Whether it has drawn noise, or cannot rule it out."""
        ...


_WATCHED: ContextVar[list[Watched] | None] = ContextVar("watched", default=None)


@contextmanager
def watching_noise() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether a fit of this context may have drawn noise by now."""
    sources: list[Watched] = []
    token = _WATCHED.set(sources)
    try:
        yield lambda: any(source.may_have_drawn for source in sources)
    finally:
        _WATCHED.reset(token)


def watch(source: Watched) -> None:
    """Watch a new source of noise, if somebody asked for it."""
    sources = _WATCHED.get()
    if sources is not None:
        sources.append(source)
