"""What is heard of a fit arrives as plain facts: nothing of a method's own classes is in it."""

from dataclasses import dataclass

import numpy as np

from dprepro.audit.adversary.transcript import Recorder
from dprepro.privacy.query import Instruction


@dataclass(frozen=True)
class Part:
    feature: int
    numbers: np.ndarray


@dataclass(frozen=True)
class Told(Instruction):
    name: str
    first: Part
    parts: tuple[Part, ...]


def test_fields_of_fields_are_facts_too():
    recorder, numbers = Recorder(), np.arange(3)
    recorder.told(Told("all", Part(0, numbers), (Part(1, numbers), Part(2, numbers))))
    (event,) = recorder.events
    assert event.kind == "Told"
    assert event.value is None
    assert event.facts["name"] == "all"
    assert event.facts["first"] == {"feature": 0, "numbers": numbers}
    assert event.facts["parts"] == [{"feature": k, "numbers": numbers} for k in (1, 2)]
