"""How long audits take is said beforehand, from a few runs of each case."""

from types import SimpleNamespace

import numpy as np
import pytest

from dprepro.audit import trials
from dprepro.audit.case import Case
from dprepro.audit.trials import expected_seconds


class Clock:
    """Goes on by what runs take."""

    def __init__(self, *steps):
        self._now, self._steps = 0.0, list(steps)

    def perf_counter(self):
        return self._now

    def case(self, name="made up", runs=""):
        def fit(present, seed):
            self._now += self._steps.pop(0)
            return SimpleNamespace()

        return Case(name, None, "none", fit, lambda outcome: np.zeros(1), runs=runs)


@pytest.mark.parametrize(("jobs", "shares"), [(1, 1), (2, 2), (64, 4)])
def test_first_runs_count_once_and_others_share_the_processors(jobs, shares, monkeypatch):
    """Of five runs the middle one counts, however long one of them takes."""
    quick, slow = [0.011, 9.0, 0.01, 0.009, 0.008], [0.002] * 5
    clock = Clock(5.0, 0.5, *quick, 1.0, 0.0, *slow)
    monkeypatch.setattr(trials, "time", clock)
    monkeypatch.setattr(trials.os, "cpu_count", lambda: 4)
    cases = [clock.case("one"), clock.case("another")]
    seconds = expected_seconds([(cases[0], 1000), (cases[1], 4000)], jobs)
    assert seconds == pytest.approx(6.5 + (10 + 8) / shares)


def test_runs_that_cases_share_count_once(monkeypatch):
    clock = Clock(5.0, 0.5, *[0.01] * 5)
    monkeypatch.setattr(trials, "time", clock)
    cases = [clock.case("whole"), clock.case("part", runs="whole")]
    assert expected_seconds([(case, 1000) for case in cases], 1) == pytest.approx(5.5 + 10)
