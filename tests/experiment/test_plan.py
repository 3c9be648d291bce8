from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Any

import pytest

from dprepro.experiment.config import load_config
from dprepro.experiment.plan import PlannedTask, narrow, plan
from dprepro.runtime.errors import DpreproError
from tests.lab import Lab


def _plan(lab: Lab, **keys: Any) -> list[PlannedTask]:
    return plan(load_config(lab.config(**keys)))


def test_every_combination_once_and_one_task_a_split_without_a_budget(lab: Lab) -> None:
    planned = _plan(lab, methods=["noisy", "plain"], splits=3, epsilons=[1, 8])
    found = {(p.task.split, p.task.label, p.task.epsilon) for p in planned}
    grid = [("noisy", 1.0), ("noisy", 8.0), ("plain", math.inf)]
    assert found == {(split, *cell) for split in range(3) for cell in grid}
    assert len(planned) == 9
    assert not any(p.skip for p in planned)


def test_the_order_is_split_by_split_and_repeats(lab: Lab) -> None:
    planned = _plan(lab, methods=["noisy", "plain", "raises"])
    assert [p.task.split for p in planned] == sorted(p.task.split for p in planned)
    assert planned == _plan(lab, methods=["noisy", "plain", "raises"])


def test_a_method_overrides_what_the_config_says(lab: Lab) -> None:
    entry = {"method": "noisy", "label": "mine", "epsilons": [3], "domain": "public"}
    planned = _plan(lab, methods=["noisy", {**entry, "params": {"pause": 0.1}}], splits=1)
    mine = [p.task for p in planned if p.task.label == "mine"]
    assert [(t.epsilon, t.domain, t.params) for t in mine] == [(3.0, "public", {"pause": 0.1})]
    others = [p.task for p in planned if p.task.label == "noisy"]
    assert {(t.epsilon, t.domain) for t in others} == {(1.0, "observed"), (8.0, "observed")}


def test_delta_counts_only_where_the_guarantee_has_one(lab: Lab) -> None:
    one, other = (_plan(lab, methods=["noisy", "plain"], delta=d) for d in (1e-6, 1e-5))
    assert one == other  # pure epsilon, and no privacy at all
    config = load_config(lab.config(dataset="breast-cancer", methods=["dp-ebm-gdp"], delta=1e-5))
    assert {p.task.delta for p in plan(config)} == {1e-5}


def test_data_that_change_make_other_tasks(lab: Lab) -> None:
    before = {p.task.key for p in _plan(lab)}
    data = lab.folder / "tiny.csv"
    data.write_text(data.read_text(encoding="utf-8") + "0.5,u,yes\n")
    assert before.isdisjoint(p.task.key for p in _plan(lab))


def test_what_cannot_be_run_is_skipped_with_a_reason(lab: Lab) -> None:
    planned = _plan(lab, methods=["noisy", "for-numbers", "lacks-module"], splits=1, epsilons=[1])
    reasons = {p.task.label: p.skip for p in planned}
    assert reasons == {
        "noisy": "",
        "for-numbers": "for-numbers is for regression, not for binary",
        "lacks-module": (
            "lacks-module needs the module 'surely_not_installed', which is not installed"
        ),
    }


def test_the_reason_names_the_extra_that_brings_what_is_missing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aplr", None)
    (planned,) = _plan(lab, methods=["aplr"], splits=1)
    assert planned.skip == (
        "aplr needs the module 'aplr', which is not installed: pip install 'dprepro[aplr]'"
    )


def test_a_submodule_of_a_missing_package_is_missing(lab: Lab) -> None:
    plugin = lab.folder / "methods" / "misbehaviour.py"
    plugin.write_text(
        plugin.read_text(encoding="utf-8").replace("surely_not_installed", "surely_not.installed")
    )
    assert "'surely_not.installed'" in _plan(lab, methods=["lacks-module"])[0].skip


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"methods": ["noizy"]}, r"line \d+, methods\[0\].method: .*did you mean 'noisy'"),
        (
            {"methods": [{"method": "noisy", "params": {"paus": 1}}]},
            r"methods\[0\].params.paus: noisy has no parameter 'paus'; did you mean 'pause'\?",
        ),
        (
            {"methods": [{"method": "plain", "params": {"x": 1}}]},
            "plain has no parameter 'x'. Allowed: none",
        ),
        ({"dataset": "aduld"}, r"line \d+, dataset: .*did you mean 'adult'"),
        ({"dataset": "./nowhere.yaml"}, r"line \d+, dataset: .*nowhere\.yaml"),
        ({"metric": "rmse"}, r"line \d+, metric: 'rmse' does not exist for tiny, a binary"),
        ({"delta": 0, "methods": ["dp-ebm-gdp"]}, r"line \d+, delta: dp-ebm-gdp .* above 0"),
        (
            {"methods": ["plain", {"method": "dp-ebm-gdp", "delta": 0}]},
            r"methods\[1\].delta: dp-ebm-gdp .* needs a delta above 0",
        ),
        (
            {"methods": [{"method": "plain", "epsilons": [1]}]},
            r"line \d+, methods\[0\].epsilons: plain has no privacy budget; leave `epsilons` out",
        ),
        (
            {"methods": ["noisy", {"method": "plain", "delta": 1e-6}]},
            r"methods\[1\].delta: plain has no privacy budget; leave `delta` out",
        ),
        (
            {"dataset": "./undocumented.yaml", "domain": "public"},
            r"line \d+, domain: the card of tiny gives no public domain",
        ),
        (
            {
                "dataset": "./undocumented.yaml",
                "methods": ["plain", {"method": "noisy", "domain": "public"}],
            },
            r"methods\[1\].domain: the card of tiny gives no public domain",
        ),
    ],
)
def test_mistakes_name_the_place_and_the_remedy(
    lab: Lab, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(DpreproError, match=message):
        _plan(lab, **keys)


def test_a_method_may_have_fewer_splits(lab: Lab) -> None:
    entries = ["noisy", {"method": "noisy", "label": "few", "splits": 2}]
    planned = _plan(lab, methods=entries, splits=3, epsilons=[1])
    assert [(p.task.split, p.task.label) for p in planned] == [
        (0, "noisy"), (0, "few"), (1, "noisy"), (1, "few"), (2, "noisy"),
    ]  # fmt: skip
    with pytest.raises(
        DpreproError, match="'few' has 4 `splits`, more than the experiment, which has 3"
    ):
        _plan(lab, methods=["noisy", {"method": "noisy", "label": "few", "splits": 4}], splits=3)


def test_narrowing_keeps_what_is_asked_for(lab: Lab) -> None:
    entries = ["noisy", "plain", {"method": "noisy", "label": "again"}]
    planned = _plan(lab, methods=entries, splits=3)
    assert narrow(planned) == planned
    assert Counter(p.task.split for p in narrow(planned, splits=2)) == {0: 5, 1: 5}
    assert {p.task.label for p in narrow(planned, methods=["noisy"])} == {"noisy", "again"}
    assert {p.task.label for p in narrow(planned, methods=["again", "plain"])} == {"again", "plain"}
    assert {p.task.epsilon for p in narrow(planned, epsilons=[8.0])} == {8.0, math.inf}


def test_narrowing_to_what_is_not_there_is_an_error(lab: Lab) -> None:
    planned = _plan(lab)
    with pytest.raises(DpreproError, match=r"no method 'noizy' .*did you mean 'noisy'"):
        narrow(planned, methods=["noizy"])
    with pytest.raises(DpreproError, match=r"no epsilon 2 in the config\. Allowed: 1, 8"):
        narrow(planned, epsilons=[2.0])


def test_a_grid_stands_for_one_method_a_combination(lab: Lab) -> None:
    entry = {"method": "noisy", "label": "n", "grid": {"pause": [0.0, 0.5]}}
    planned = _plan(lab, methods=[entry], splits=1, epsilons=[1])
    found = {p.task.label: p.task.params for p in planned}
    assert found == {"n pause=0.0": {"pause": 0.0}, "n pause=0.5": {"pause": 0.5}}


def test_parameters_may_depend_on_epsilon(lab: Lab) -> None:
    entry = {"method": "noisy", "params": {"pause": 1.0}}
    path = lab.config(methods=[entry], splits=1)
    text = path.read_text(encoding="utf-8").replace(
        '"params": {', '"by_epsilon": {8: {"pause": 2.0}}, "params": {'
    )
    path.write_text(text)
    planned = plan(load_config(path))
    assert {p.task.epsilon: p.task.params["pause"] for p in planned} == {1.0: 1.0, 8.0: 2.0}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"grid": {"paus": [1]}}, "no parameter 'paus'"),
        ({"by_epsilon": {"1": {"paus": 1}}}, "no parameter 'paus'"),
        ({"by_epsilon": {"3": {"pause": 1}}}, "noisy is not run at epsilon 3. It is at: 1, 8"),
    ],
)
def test_wrong_grids_are_refused(lab: Lab, entry: dict[str, Any], message: str) -> None:
    with pytest.raises(DpreproError, match=message):
        _plan(lab, methods=[{"method": "noisy", **entry}])


def test_folds_hold_out_their_share_and_keys_tell_evaluations_apart(lab: Lab) -> None:
    folds = _plan(lab, evaluation="folds", splits=5)
    random = _plan(lab, splits=5)
    assert {p.task.test_share for p in folds} == {0.2} == {p.task.test_share for p in random}
    assert {p.task.key for p in folds}.isdisjoint(p.task.key for p in random)
    assert "evaluation" not in random[0].task.to_json()


def test_a_test_set_must_be_on_the_card(lab: Lab) -> None:
    with pytest.raises(DpreproError, match="names no test set"):
        _plan(lab, evaluation="test-set")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"evaluation": "folds", "splits": 1}, "to be 2 or more"),
        ({"evaluation": "folds", "test_share": 0.3}, "is for random splits, not for folds"),
        ({"folds": 2}, "`folds` is for `evaluation: folds`, not for random"),
        ({"evaluation": "folds", "folds": 5, "splits": 4}, "`splits`, 4, must be at least `folds`"),
        ({"evaluation": "folds", "folds": 1}, "greater than or equal to 2"),
    ],
)
def test_evaluations_that_make_no_sense_are_refused(
    lab: Lab, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(DpreproError, match=message):
        _plan(lab, **keys)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"method": "dp-ebm-gdp", "params": {"max_bins": 32, "learning_rate": 20}},
            r"yaml, line \d+, methods\[0\]\.params\.learning_rate: dp-ebm-gdp refuses its "
            "parameters: learning_rate must be a number above 0 and at most 1, got 20",
        ),
        ({"method": "logistic", "params": {"C": -1}}, r"params\.C: logistic refuses .* Got -1"),
        (
            {"method": "dpboost", "grid": {"max_bins": [32, "many"]}},
            r"grid\.max_bins: dpboost refuses",
        ),
        (
            {"method": "dp-ebm-joint", "by_epsilon": {8: {"n_epochs": 0}}},
            r"by_epsilon: dp-ebm-joint refuses its parameters: n_epochs must be",
        ),
    ],
)
def test_a_value_that_a_method_refuses_is_found_before_anything_runs(
    lab: Lab, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(DpreproError, match=message):
        _plan(lab, dataset="breast-cancer", methods=[entry], epsilons=[1, 8], delta=1e-6)


def test_what_a_method_takes_but_no_record_can_hold_is_found_before_anything_runs(
    lab: Lab,
) -> None:
    path = lab.config(dataset="breast-cancer", methods=[{"method": "logistic"}])
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            '"method": "logistic"', "method: logistic, params: {C: .inf}"
        )
    )
    with pytest.raises(DpreproError, match=r"line \d+, methods\[0\]\.params\.C: .* not finite"):
        plan(load_config(path))
