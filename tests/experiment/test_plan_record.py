from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dprepro.experiment.config import Published, load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.plan_record import StatedPlan, state_plan
from tests.lab import Lab


def stated(name: str = "fast") -> StatedPlan:
    config = load_config(name)
    return state_plan(config, [planned.task for planned in plan(config)])


def test_a_plan_reads_back_from_strict_json() -> None:
    found = stated()
    assert StatedPlan.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found


def test_it_has_what_the_config_says_and_every_key_once() -> None:
    found = stated()
    assert (found.config, found.metric, found.splits) == ("fast", "auc", 2)
    assert found.published == Published(paper="dp-ebm-2021", table="2")
    assert (found.builtin, found.builtin_card) == (True, True)
    keys = [key for cell in found.cells for key in cell.keys]
    assert sorted(keys) == sorted(planned.task.key for planned in plan(load_config("fast")))
    assert len(set(keys)) == len(keys)


def test_cells_are_in_the_order_of_the_config_then_by_epsilon() -> None:
    config = load_config("adult")
    found = [(cell.label, cell.epsilon) for cell in stated("adult").cells]
    assert found[:2] == [("dp-ebm-gdp", 0.5), ("dp-ebm-gdp", 1.0)]
    assert ("logistic-fair", math.inf) in found
    labels = [entry.label for entry in config.methods]
    assert found == sorted(found, key=lambda cell: (labels.index(cell[0]), cell[1]))


def test_keys_are_in_the_order_of_the_splits() -> None:
    config = load_config("fast")
    tasks = [planned.task for planned in plan(config)]
    assert state_plan(config, reversed(tasks)) == state_plan(config, tasks)


def test_a_config_and_a_card_of_ones_own_are_known_as_such(lab: Lab) -> None:
    config = load_config(lab.config())
    found = state_plan(config, [planned.task for planned in plan(config)])
    assert (found.builtin, found.builtin_card, found.published) == (False, False, None)


def test_it_says_whether_the_config_runs_hypotheses_and_older_plans_do_not() -> None:
    assert stated().to_json()["hypotheses"] is False
    assert stated("forensics-splits-credit").hypotheses is True
    older = {k: v for k, v in stated().to_json().items() if k != "hypotheses"}
    read = StatedPlan.from_json(older)
    assert read.hypotheses is None
    assert read.to_json() == older


def test_it_says_after_how_many_splits_verdicts_are_looked_at() -> None:
    found = stated("more-pol")
    assert found.published is not None
    assert found.published.looks == (25, 100)
    assert StatedPlan.from_json(found.to_json()) == found
    assert "looks" not in stated().to_json()["published"]  # as in older plans


def _with(name: str, value: Any) -> dict[str, Any]:
    return {**stated().to_json(), name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("config", 1),
        ("title", None),
        ("splits", "3"),
        ("splits", True),
        ("splits", 0),
        ("published", {"paper": "dp-ebm-2021"}),
        ("published", []),
        ("published", {"paper": "dp-ebm-2021", "table": "2", "looks": [25, 25]}),
        ("published", {"paper": "dp-ebm-2021", "table": "2", "looks": [0, 25]}),
        ("published", {"paper": "dp-ebm-2021", "table": "2", "looks": ["25"]}),
        ("builtin", 1),
        ("hypotheses", 1),
        ("hypotheses", None),
        ("metric", "acu"),
        ("cells", {}),
        ("cells", []),
        ("cells", [{"label": "x", "epsilon": math.nan, "keys": ["0" * 16]}]),
        ("cells", [{"label": "x", "epsilon": 1.0, "keys": []}]),
        ("cells", [{"label": "x", "epsilon": 1.0, "keys": ["abc"]}]),
        ("cells", [{"label": "x", "epsilon": -1.0, "keys": ["0" * 16]}]),
        ("cells", [{"label": "x", "epsilon": "y", "keys": ["0" * 16]}]),
        ("cells", [{"epsilon": 1.0, "keys": ["0" * 16]}]),
    ],
)
def test_what_is_no_plan_is_refused(name: str, value: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        StatedPlan.from_json(_with(name, value))
