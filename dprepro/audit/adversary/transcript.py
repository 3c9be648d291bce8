"""What leaves a fit, in order: every answer with what was asked, and every instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from dprepro.privacy.release import listening


@dataclass(frozen=True)
class Event:
    """An answer, or an instruction.

    Attributes
    ----------
    kind
        The name of the query's class, or of the instruction's.
    facts
        Their public fields, by name; for an answer, with those of the release. What a field holds
        is taken apart in the same way, if it has fields of its own.
    value
        What was released, as an array; None for an instruction.
    scale
        Of its noise, as the release says.
    """

    kind: str
    facts: Mapping[str, Any]
    value: np.ndarray | None = None
    scale: float = 0.0


class Recorder:
    """Hears a fit, and keeps nothing but what leaves it.

    Attributes
    ----------
    events : list of Event
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def asked(self, query: Any, release: Any) -> None:
        """Keep a query and its answer."""
        value = np.array(release.value, dtype=np.float64)
        facts = _facts(query) | _facts(release)
        self.events.append(Event(type(query).__name__, facts, value, float(release.scale)))

    def told(self, instruction: Any) -> None:
        """Keep an instruction."""
        self.events.append(Event(type(instruction).__name__, _facts(instruction)))


def overhear(fit: Callable[[], Any]) -> tuple[Any, list[Event]]:
    """Return what a fit returns, and what left it."""
    recorder = Recorder()
    with listening(recorder):
        model = fit()
    return model, recorder.events


def _facts(of: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(of, field.name)) for field in fields(of)}


def _plain(value: Any) -> Any:
    """Return a value with nothing of a method's own classes in it, as far as these have fields."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _facts(value) if is_dataclass(value) else value
