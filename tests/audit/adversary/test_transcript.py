"""What is heard of a fit is kept as it was when it left the fit, in its order."""

from dataclasses import dataclass

import numpy as np

from dprepro.audit.transcript import Recorder
from dprepro.privacy.query import Instruction, NoisyAnswer, Query


@dataclass(frozen=True)
class Asked(Query):
    enforced = 1.0


@dataclass(frozen=True)
class Told(Instruction):
    name: str


def test_answers_and_instructions_are_kept_in_order_whatever_becomes_of_the_arrays():
    recorder, value, query = Recorder(), np.arange(3), Asked(1.0, 1.0)
    recorder.told(Told("before"))
    recorder.asked(query, NoisyAnswer(value, 2.0))
    value[:] = 7
    before, (asked, release) = recorder.events
    assert before == Told("before")
    assert asked is query
    assert release.scale == 2.0
    assert release.value.dtype == np.float64
    assert release.value.tolist() == [0.0, 1.0, 2.0]
