from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.dataset import load
from dprepro.experiment.config import ExperimentConfig, load_config
from dprepro.experiment.plan import (
    NAMES,
    OWNERS,
    SPLIT,
    STRATA,
    TUNED,
    check_tuned_splits,
    note_disclosures,
    plan,
)
from dprepro.experiment.run import Options, look_ahead
from dprepro.experiment.splits import SplitKey, train_test_rows
from dprepro.experiment.worker import DataRef, run_task
from dprepro.privacy.ledger import Ledger
from dprepro.release.fitting import choose_tasks, fit_model
from dprepro.release.planning import planned_ledgers
from dprepro.runtime.errors import DpreproError
from tests.lab import Lab

FITTED = {"method": "dp-ebm-plus", "params": {"n_epochs": 2}}
TUNED_ON = {"dataset": "tiny", "evaluation": "folds", "seed": 7, "splits": 3}


def config(lab: Lab, **keys: object) -> ExperimentConfig:
    return load_config(
        lab.config(**{"methods": [FITTED], "epsilons": [4], "domain": "public", **keys})
    )


def test_a_ledger_of_a_split_says_what_add_remove_one_holds_for(lab: Lab) -> None:
    experiment = config(lab, seed=None)
    [task] = choose_tasks(experiment)
    split = fit_model(experiment, task).ledger_
    assert split.assumed_public.count(SPLIT) == 1
    assert split.holds
    assert SPLIT not in fit_model(experiment, task, all_rows=True).ledger_.assumed_public
    [planned] = planned_ledgers(experiment)
    assert SPLIT in planned.ledger.assumed_public


@pytest.mark.parametrize("evaluation", ["random", "folds"])
@pytest.mark.parametrize(
    ("adjacency", "named"), [("add/remove-one", True), ("zero-out", False), ("replace-one", False)]
)
def test_only_a_private_number_of_rows_is_given_away_by_the_split(
    lab: Lab, adjacency: str, named: bool, evaluation: str
) -> None:
    task = plan(config(lab, evaluation=evaluation))[0].task

    ledger = Ledger(1.0, 0.0, adjacency)
    note_disclosures(ledger, task)
    assert (SPLIT in ledger.assumed_public) == named


@pytest.mark.parametrize("adjacency", ["add/remove-one", "zero-out", "replace-one"])
def test_a_stratified_split_follows_from_labels_of_other_rows(lab: Lab, adjacency: str) -> None:
    data, sides = load("breast-cancer"), []
    for labels in (data.y, np.append(1 - data.y[0], data.y[1:])):
        key = SplitKey(data.name, 0, 0, 0.2, "public", "stratified", "row", 1)
        sides.append(set(train_test_rows(replace(data, y=labels), key)[0].index))
    assert (sides[0] ^ sides[1]) - {0}

    for evaluation, named in (("stratified", True), ("random", False), ("folds", False)):
        task = plan(config(lab, evaluation=evaluation))[0].task
        ledger = Ledger(1.0, 0.0, adjacency)
        note_disclosures(ledger, task)
        assert (STRATA in ledger.assumed_public) == named
        whole = Ledger(1.0, 0.0, adjacency)
        note_disclosures(whole, task, all_rows=True)
        assert STRATA not in whole.assumed_public


@pytest.mark.parametrize(
    ("adjacency", "named"), [("add/remove-one", SPLIT), ("zero-out", NAMES), ("replace-one", NAMES)]
)
def test_a_split_of_units_follows_from_the_names_of_others(
    lab: Lab, adjacency: str, named: str
) -> None:
    data, sides = load("breast-cancer"), []
    names = np.array([f"u{i:04d}" for i in range(len(data.y))], dtype=object)
    for first in ("u0000", "z9999"):
        units = np.append(first, names[1:])
        key = SplitKey(data.name, 0, 0, 0.2, "public", "random", "person", 1)
        sides.append(set(train_test_rows(replace(data, units=units), key)[0].index))
    assert (sides[0] ^ sides[1]) - {0}

    task = replace(plan(config(lab))[0].task, unit="person", rows_per_unit=1)
    ledger = Ledger(1.0, 0.0, adjacency)
    note_disclosures(ledger, task)
    assert {SPLIT, NAMES} & set(ledger.assumed_public) == {named}


@pytest.mark.parametrize(
    ("adjacency", "rows", "public"),
    [
        ("zero-out", 2, ["number of rows that are used (at most 2 of each patient)"]),
        ("replace-one", 1, ["number of rows that are used (at most 1 of each patient)"]),
        ("add/remove-one", 2, []),
    ],
)
def test_of_units_it_is_said_which_number_of_rows_is_public(
    lab: Lab, adjacency: str, rows: int, public: list[str]
) -> None:
    task = replace(plan(config(lab))[0].task, unit="patient", rows_per_unit=rows)
    named = ["number of rows"] if public else []
    ledger = Ledger(1.0, 0.0, adjacency, assumed_public=[*named, "labels"])
    note_disclosures(ledger, task, all_rows=True)
    assert ledger.assumed_public == ["labels", OWNERS, *public]
    assert ledger.unit == "patient"


def test_the_donors_split_depends_on_no_number_of_rows(lab: Lab) -> None:
    rows = (lab.folder / "tiny.csv").read_text(encoding="utf-8").splitlines()
    (lab.folder / "tests.csv").write_text("\n".join(rows[:31]) + "\n")
    card = lab.folder / "tiny.yaml"
    card.write_text(card.read_text(encoding="utf-8") + "test: {sources: [{file: tests.csv}]}\n")
    experiment = config(lab, evaluation="test-set")
    [task] = choose_tasks(experiment)
    assert SPLIT not in fit_model(experiment, task).ledger_.assumed_public


@pytest.mark.parametrize("all_rows", [False, True])
def test_tuned_parameters_are_unpaid_with_a_fresh_seed_too(lab: Lab, all_rows: bool) -> None:
    experiment = config(lab, seed=None, tuned_on=TUNED_ON)
    [task] = choose_tasks(experiment)
    ledger = fit_model(experiment, task, all_rows=all_rows).ledger_
    assert ledger.unaccounted == [TUNED]
    assert not ledger.holds
    [planned] = planned_ledgers(experiment)
    assert (planned.ledger.unaccounted, planned.ledger.holds) == ([TUNED], False)


def test_records_of_a_tuned_config_say_so(lab: Lab) -> None:
    experiment = config(lab, seed=None, tuned_on=TUNED_ON)
    task = plan(experiment)[0].task
    record = run_task(task, DataRef(experiment.card))
    assert record.ledger is not None
    assert (record.ledger["unpaid"], record.ledger["holds"]) == ([TUNED], False)


def test_keys_of_tuned_configs_alone_change(lab: Lab) -> None:
    plain, tuned = (plan(config(lab, tuned_on=tuned_on))[0].task for tuned_on in (None, TUNED_ON))
    assert "tuned" not in plain.to_json()
    assert tuned.to_json() == {**plain.to_json(), "tuned": True}
    assert type(plain).from_json(tuned.to_json()) == tuned
    assert tuned.key != plain.key


def test_a_card_of_another_name_holds_the_same_rows(lab: Lab) -> None:
    card = lab.folder / "renamed.yaml"
    card.write_text(
        (lab.folder / "tiny.yaml")
        .read_text(encoding="utf-8")
        .replace("name: tiny", "name: renamed")
    )
    experiment = config(lab, dataset="./renamed.yaml", tuned_on=TUNED_ON)
    with pytest.raises(DpreproError, match="shares no row with tiny, remove `tuned_on`"):
        look_ahead(experiment, Options(results=lab.results))
    [planned] = planned_ledgers(experiment)
    assert TUNED in planned.ledger.unaccounted


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"evaluation": "folds", "splits": 5},
        {"splits": 1},
        {"seed": None, "tuned_on": {**TUNED_ON, "seed": 0}},
        {"seed": 0, "tuned_on": {**TUNED_ON, "seed": None}},
    ],
)
def test_splits_that_chose_the_parameters_do_not_score_them(lab: Lab, keys: dict) -> None:
    experiment = config(lab, **{"tuned_on": TUNED_ON, **keys})
    options = Options(results=lab.results)
    with pytest.raises(
        DpreproError,
        match=r"tuned_on: .*another `seed`.*--allow-tuned.*the rows that chose; only the donors'",
    ):
        look_ahead(experiment, options)
    allowed = Options(results=lab.results, allow_tuned_splits=True)
    assert look_ahead(experiment, allowed).todo


@pytest.mark.parametrize(
    ("chose", "scores", "said"),
    [
        (7, 7, "of seed 7, so scores"),
        (0, None, "of seed 0 (as a null seed draws them, too), so scores"),
        (None, 0, "of seed 0 (as a null seed draws them, too), so scores"),
    ],
)
def test_the_seed_of_splits_that_chose_is_named(
    lab: Lab, chose: int | None, scores: int | None, said: str
) -> None:
    tuned = config(lab, seed=scores, tuned_on={**TUNED_ON, "seed": chose})
    with pytest.raises(DpreproError) as caught:
        check_tuned_splits(tuned)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "keys", [{"seed": 8}, {"seed": None}, {"evaluation": "test-set"}, {"tuned_on": None}]
)
def test_other_rows_or_splits_are_free(lab: Lab, keys: dict) -> None:
    check_tuned_splits(config(lab, **{"tuned_on": TUNED_ON, **keys}))
