"""An epsilon of methods without a budget is refused; `test_plan.py` has those of configs."""

from __future__ import annotations

import math

import pytest

from dprepro.experiment.config import load_config
from dprepro.experiment.plan import narrow, plan
from dprepro.runtime.errors import DpreproError
from tests.lab import Lab


def test_an_epsilon_of_methods_without_a_budget_is_refused(lab: Lab) -> None:
    entries = ["noisy", "plain", {"method": "plain", "label": "two"}]
    planned = plan(load_config(lab.config(methods=entries, epsilons=[1, 8])))
    said = r"plain has no privacy budget, so --epsilon 8 cannot be kept.*: noisy"
    for methods in (["plain"], ["two"], ["plain", "two"]):
        with pytest.raises(DpreproError, match=said):
            narrow(planned, methods=methods, epsilons=[8.0])
    both = narrow(planned, methods=["plain", "noisy"], epsilons=[8.0])
    assert {p.task.method for p in both} == {"plain", "noisy"}
    assert narrow(planned, methods=["plain"], epsilons=[math.inf])
    assert narrow(planned, epsilons=[8.0])
