"""Rows of a unit stay together, few of them train, and the guarantee is the unit's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprepro.data.dataset import Dataset, load
from dprepro.experiment.config import ExperimentConfig, load_config
from dprepro.experiment.plan import OWNERS, plan
from dprepro.experiment.splits import SplitKey, all_rows_of, train_test_rows
from dprepro.experiment.worker import DataRef, fit_all_rows, fit_task, run_task
from dprepro.privacy.budget import ROW
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.release.planning import planned_ledgers
from dprepro.runtime.errors import DpreproError
from tests.lab import Lab

OWNERS_COLUMN = "who"
FITTED = {"method": "dp-ebm-plus", "params": {"n_epochs": 2}}


@pytest.fixture
def owned(lab: Lab) -> Lab:
    """The laboratory, with 20 owners of 1 to 7 rows each."""
    header, *rows = (lab.folder / "tiny.csv").read_text(encoding="utf-8").split()
    owners = [f"p{k}" for k in np.sort(np.random.default_rng(3).integers(0, 20, len(rows)))]
    lines = [f"{header},{OWNERS_COLUMN}", *(f"{r},{o}" for r, o in zip(rows, owners, strict=True))]
    (lab.folder / "tiny.csv").write_text("\n".join(lines) + "\n")
    card = lab.folder / "tiny.yaml"
    card.write_text(card.read_text(encoding="utf-8") + f"unit: {OWNERS_COLUMN}\nrows_per_unit: 2\n")
    return lab


def config(owned: Lab, **keys: Any) -> ExperimentConfig:
    return load_config(owned.config(**{"domain": "public", "methods": [FITTED], **keys}))


def whose(dataset: Dataset, values: np.ndarray) -> list[str]:
    """Return the owners of rows by their first feature, which tells them apart."""
    assert dataset.units is not None
    owner = dict(zip(dataset.X["a"], dataset.units, strict=True))
    return [owner[value] for value in values]


@pytest.mark.parametrize("evaluation", ["random", "folds"])
def test_rows_of_a_unit_stay_together_and_few_of_them_train(owned: Lab, evaluation: str) -> None:
    experiment = config(owned, evaluation=evaluation)
    dataset = load(experiment.card)
    tested: list[str] = []
    for planned in plan(experiment)[::2]:
        key = SplitKey.of(planned.task)
        X_train, y_train, X_test, _ = train_test_rows(dataset, key)
        train, test = (whose(dataset, X["a"].to_numpy()) for X in (X_train, X_test))
        assert not set(train) & set(test)
        assert max(map(train.count, train)) == 2
        assert len(y_train) == len(train)
        # All rows of those that are held out, and some of everyone else.
        assert sorted(test) == sorted(o for o in dataset.units if o in set(test))
        assert set(train) | set(test) == set(dataset.units)
        tested += set(test)
        every = train_test_rows(dataset, replace(key, unit="row", rows_per_unit=1))
        assert every[2].equals(X_test)
        assert len(every[0]) + len(X_test) == len(dataset.y)
    if evaluation == "folds":
        assert sorted(tested) == sorted(set(dataset.units))


def test_after_the_folds_of_a_partition_come_those_of_another(owned: Lab) -> None:
    experiment = config(owned, evaluation="folds", folds=2, splits=5, rows_per_unit="row")
    dataset = load(experiment.card)
    keys = dict.fromkeys(SplitKey.of(planned.task) for planned in plan(experiment))
    assert {(key.test_share, key.evaluation) for key in keys} == {(0.5, "folds")}
    tests = [train_test_rows(dataset, key)[2].index for key in keys]
    everyone = set(range(len(dataset.y)))
    for first in (0, 2):
        assert not set(tests[first]) & set(tests[first + 1])
        assert set(tests[first]) | set(tests[first + 1]) == everyone
    assert len({tuple(test) for test in tests}) == 5


def test_a_fit_to_all_rows_is_bounded_too(owned: Lab) -> None:
    dataset = load(config(owned).card)
    key = SplitKey.of(plan(config(owned))[0].task)
    X, _ = all_rows_of(dataset, key)
    kept = whose(dataset, X["a"].to_numpy())
    assert max(map(kept.count, kept)) == 2
    assert set(kept) == set(dataset.units)
    assert all_rows_of(dataset, key)[0].equals(X)
    secret = [tuple(all_rows_of(dataset, replace(key, seed=None))[0]["a"]) for _ in range(8)]
    assert len(set(secret)) > 1


def test_published_test_rows_of_units_that_train_are_refused(owned: Lab) -> None:
    dataset = load(config(owned).card)
    key = replace(SplitKey.of(plan(config(owned))[0].task), evaluation="test-set")
    with pytest.raises(ValueError, match="on both sides of the published test set"):
        train_test_rows(replace(dataset, test=dataset), key)
    apart = replace(dataset, units=np.array(["q"] * len(dataset.y), dtype=object))
    assert len(train_test_rows(replace(dataset, test=apart), key)[2]) == len(dataset.y)


def test_stratified_splits_are_for_labels_and_for_rows_of_nobody(owned: Lab) -> None:
    dataset = load(config(owned).card)
    key = replace(
        SplitKey.of(plan(config(owned))[0].task), evaluation="stratified", unit=ROW, rows_per_unit=1
    )
    with pytest.raises(ValueError, match="rows of one unit on both sides"):
        train_test_rows(dataset, key)
    with pytest.raises(ValueError, match="a regression dataset"):
        train_test_rows(replace(dataset, task="regression"), key)
    _, y_train, _, y_test = train_test_rows(replace(dataset, units=None), key)
    shares = [np.mean(part) for part in (dataset.y, y_train, y_test)]
    assert np.ptp(shares) <= 1 / len(y_test)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_fit_is_calibrated_for_a_row_and_states_the_guarantee_of_a_unit(
    owned: Lab, rows: int
) -> None:
    experiment = config(owned, seed=None, rows_per_unit=rows, epsilons=[1])
    task, data = plan(experiment)[0].task, DataRef(experiment.card)
    assert (task.unit, task.rows_per_unit, task.epsilon) == (OWNERS_COLUMN, rows, 1.0)
    of_row = epsilon_of(mu_of(1.0, 1e-6) / rows, 1e-6)
    for model in (fit_task(task, data), fit_all_rows(task, data)):
        ledger = model.ledger_
        assert ledger.holds
        assert (ledger.epsilon, ledger.unit, ledger.rows_per_unit) == (1.0, OWNERS_COLUMN, rows)
        assert model.epsilon == pytest.approx(of_row)
        assert ledger.spent_epsilon_of_row() > of_row  # another row trains in its place
        assert ledger.spent_epsilon() == pytest.approx(1.0, rel=1e-3)
        assert OWNERS in ledger.assumed_public
    [planned] = planned_ledgers(experiment)
    assert planned.ledger is not None
    assert planned.ledger.spent_epsilon() == pytest.approx(1.0, rel=1e-3)
    assert planned.ledger.rows_per_unit == rows


def test_a_pure_method_divides_epsilon(owned: Lab) -> None:
    experiment = config(owned, methods=["dpboost-sound"], epsilons=[2])
    record = run_task(plan(experiment)[0].task, DataRef(experiment.card))
    assert record.status == "ok"
    assert record.ledger is not None
    assert record.ledger["true_epsilon"] == pytest.approx(2.0)
    assert record.ledger["row_epsilon"] == pytest.approx(2.0, rel=0.01)
    assert record.ledger["unit"] == OWNERS_COLUMN


def test_several_bounds_are_runs_of_their_own(owned: Lab) -> None:
    quick = {"method": "ebm", "params": {"n_epochs": 5, "outer_bags": 1}}
    experiment = config(owned, methods=[FITTED, quick], rows_per_unit=["row", 1, 2], epsilons=[1])
    tasks = {p.task.label: p.task for p in plan(experiment) if p.task.split == 0}
    assert {label: (t.unit, t.rows_per_unit) for label, t in tasks.items()} == {
        f"{method} {bound}": stated
        for method in ("dp-ebm-plus", "ebm")
        for bound, stated in (
            ("unit=row", ("row", 1)),
            ("rows_per_unit=1", (OWNERS_COLUMN, 1)),
            ("rows_per_unit=2", (OWNERS_COLUMN, 2)),
        )
    }
    assert len({task.key for task in tasks.values()}) == 6
    assert "unit" not in tasks["ebm unit=row"].to_json()
    # The same rows train without privacy, so that the two can be compared.
    data = DataRef(experiment.card)
    assert all(run_task(task, data).status == "ok" for task in tasks.values())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"rows_per_unit": 0}, "a whole number from 1 to 1000000; given 0"),
        ({"rows_per_unit": []}, "at least one entry"),
        ({"rows_per_unit": [2, 2]}, "a value is given twice"),
        ({"rows_per_unit": "patient"}, "rows_per_unit"),
        ({"methods": ["dp-logistic-fair"]}, "needs add/remove-one or zero-out"),
        (
            {"methods": ["dp-llm"]},
            "samples rows one by one.* To change it for this method only, list it under `methods` "
            "as `{method: dp-llm, rows_per_unit: 1}`",
        ),
    ],
)
def test_what_no_unit_can_be_promised_is_refused(
    owned: Lab, keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(DpreproError, match=said):
        plan(config(owned, **keys))


def test_a_method_that_exchanges_rows_can_have_one_of_each_unit(owned: Lab) -> None:
    experiment = config(owned, methods=["dp-logistic-fair"], rows_per_unit=1, epsilons=[1])
    record = run_task(plan(experiment)[0].task, DataRef(experiment.card))
    assert record.ledger is not None
    assert (record.ledger["adjacency"], record.ledger["rows_per_unit"]) == ("replace-one", 1)


def test_bounds_need_a_card_with_a_unit(lab: Lab) -> None:
    with pytest.raises(DpreproError, match=r"lab\.yaml.*names no unit of privacy; add `unit`"):
        plan(load_config(lab.config(rows_per_unit=[1, 2])))
    assert plan(load_config(lab.config(rows_per_unit="row"))) == plan(load_config(lab.config()))


def test_a_bound_can_be_one_methods_own(owned: Lab) -> None:
    own = {"method": "dp-logistic-fair", "rows_per_unit": ["row", 1]}
    labels = {p.task.label for p in plan(config(owned, methods=[FITTED, own]))}
    assert labels == {
        "dp-ebm-plus", "dp-logistic-fair unit=row", "dp-logistic-fair rows_per_unit=1"
    }  # fmt: skip


def test_the_key_of_a_task_changes_with_the_bound_of_the_card(owned: Lab, tmp_path: Path) -> None:
    before = plan(config(owned))[0].task
    card = tmp_path / "tiny.yaml"
    card.write_text(
        card.read_text(encoding="utf-8").replace("rows_per_unit: 2", "rows_per_unit: 3")
    )
    after = plan(config(owned))[0].task
    assert after.key != before.key
    assert after.data_fingerprint == before.data_fingerprint


def test_a_ledger_of_another_type_says_nothing_of_rows_and_units(owned: Lab) -> None:
    plugin = owned.folder / "methods" / "misbehaviour.py"
    mine = 'self.ledger_ = type("Mine", (Ledger,), {})('
    plugin.write_text(plugin.read_text(encoding="utf-8").replace("self.ledger_ = Ledger(", mine))
    for bound in ("row", 2):
        experiment = config(owned, methods=["noisy"], rows_per_unit=bound)
        record = run_task(plan(experiment)[0].task, DataRef(experiment.card))
        assert (record.status, record.ledger, record.is_unverified) == ("ok", None, True)


def test_a_method_for_another_kind_of_task_is_skipped_as_ever(owned: Lab) -> None:
    experiment = config(owned, methods=[FITTED, "dp-linear-fair"])
    skipped = {p.task.label for p in plan(experiment) if p.skip}
    assert skipped == {"dp-linear-fair"}


def test_what_a_dataset_lacks_is_named(lab: Lab) -> None:
    experiment = load_config(lab.config())
    dataset, key = load(experiment.card), SplitKey.of(plan(experiment)[0].task)
    with pytest.raises(ValueError, match=f"the card of {key.dataset} names no test set"):
        train_test_rows(dataset, replace(key, evaluation="test-set"))
    with pytest.raises(ValueError, match=f"the card of {key.dataset} names no unit of privacy"):
        train_test_rows(dataset, replace(key, unit="owner"))


@pytest.mark.parametrize("swap", [False, True])
def test_a_test_set_has_numbers_where_the_training_rows_have_them(lab: Lab, swap: bool) -> None:
    experiment = load_config(lab.config())
    dataset, key = load(experiment.card), SplitKey.of(plan(experiment)[0].task)
    key = replace(key, evaluation="test-set")
    texts = replace(dataset, X=dataset.X.assign(a=dataset.X["a"].astype(str).astype("category")))
    whole, test = (texts, dataset) if swap else (dataset, texts)
    with pytest.raises(ValueError, match=r"column 'a' holds numbers on one side .* `features`"):
        train_test_rows(replace(whole, test=test), key)
    empty = replace(dataset, X=dataset.X.assign(a=np.full(len(dataset.y), np.nan)))
    whole, test = (texts, empty) if swap else (empty, texts)
    assert len(train_test_rows(replace(whole, test=test), key)[2]) == len(dataset.y)


@pytest.mark.parametrize("which", ["dataset", "test"])
def test_a_test_set_without_units_is_taken_as_it_is(owned: Lab, which: str) -> None:
    experiment = config(owned)
    dataset, key = load(experiment.card), SplitKey.of(plan(experiment)[0].task)
    bare = replace(dataset, units=None)
    whole, test = (dataset, bare) if which == "test" else (bare, dataset)
    key = replace(key, evaluation="test-set", unit=key.unit if which == "test" else ROW)
    _, _, X_test, _ = train_test_rows(replace(whole, test=test), key)
    assert len(X_test) == len(dataset.y)
