from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment.config import load_config
from dprepro.experiment.record import Task
from dprepro.experiment.worker import DataRef, run_task
from dprepro.release import fitting
from dprepro.release.fitting import choose_tasks, describe, fit_model, score_held_out
from dprepro.runtime.errors import DpreproError
from tests.lab import Lab

METHODS = ["ebm", {"method": "dp-ebm-gdp", "params": {"n_epochs": 20}}, "logistic"]


def config(lab: Lab, **keys: object):
    return load_config(lab.config(**{"methods": METHODS, "epsilons": [1, 4], **keys}))


def test_tasks_come_in_the_order_asked_for(lab: Lab) -> None:
    tasks = choose_tasks(config(lab), ["dp-ebm-gdp", "ebm"], [4, 1], split=2)
    assert [(t.label, t.epsilon) for t in tasks] == [
        ("dp-ebm-gdp", 4.0),
        ("dp-ebm-gdp", 1.0),
        ("ebm", math.inf),
    ]
    assert {t.split for t in tasks} == {2}
    assert [describe(t) for t in tasks][1:] == ["dp-ebm-gdp, ε=1", "ebm"]
    assert len(choose_tasks(config(lab))) == 4


@pytest.mark.parametrize("evaluation", ["random", "folds"])
def test_a_kept_model_is_the_one_that_a_run_records(lab: Lab, evaluation: str) -> None:
    experiment = config(lab, evaluation=evaluation)
    (task,) = choose_tasks(experiment, ["dp-ebm-gdp"], [4], split=1)
    model = fit_model(experiment, task)
    metrics = score_held_out(model, task.to_json(), experiment)
    assert metrics == run_task(task, DataRef(experiment.card)).metrics


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, "seed differ"),
        ({"split": 9}, "name the config"),
        ({"split": None}, "does not say which rows"),
        ({"split": True}, "does not say which rows"),
        ({"dataset": "other", "test_share": 0.5}, "dataset, test_share differ"),
        ({"evaluation": "folds"}, "evaluation differ"),
        ({"data_fingerprint": ""}, "data_fingerprint differ"),
    ],
)
def test_rows_that_may_have_trained_a_model_do_not_score_it(
    lab: Lab, change: dict, message: str
) -> None:
    experiment = config(lab)
    (task,) = choose_tasks(experiment, ["dp-ebm-gdp"], [4])
    model = fit_model(experiment, task)
    with pytest.raises(DpreproError, match=message):
        score_held_out(model, {**task.to_json(), **change}, experiment)


def test_a_tuned_model_is_not_scored_by_the_rows_that_chose_its_parameters(lab: Lab) -> None:
    tuned_on = {"dataset": "tiny", "evaluation": "folds", "seed": 7, "splits": 3}
    experiment = config(lab, tuned_on=tuned_on)
    (task,) = choose_tasks(experiment, ["ebm"])
    model, trained = fit_model(experiment, task), task.to_json()
    with pytest.raises(DpreproError, match=r"too good.*--allow-tuned-splits"):
        score_held_out(model, trained, experiment)
    assert "auc" in score_held_out(model, trained, experiment, allow_tuned_splits=True)
    # The config that was tuned holds out the same rows, and does not know whether these chose.
    with pytest.raises(DpreproError, match=r"does not say on which rows.*fitted with"):
        score_held_out(model, trained, config(lab))
    later = config(lab, seed=8, tuned_on=tuned_on)
    (task,) = choose_tasks(later, ["ebm"])
    assert "auc" in score_held_out(fit_model(later, task), task.to_json(), later)


def test_a_model_of_other_columns_is_refused(lab: Lab) -> None:
    experiment = config(lab)
    (task,) = choose_tasks(experiment, ["dp-ebm-gdp"], [4])
    model = fit_model(experiment, task)
    model.feature_names_in_ = np.array(["a", "z"], dtype=object)
    with pytest.raises(DpreproError, match="does not fit the rows of tiny"):
        score_held_out(model, task.to_json(), experiment)


def test_nothing_is_fitted_where_there_is_no_function_to_show(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit of private rows is a release, also if nobody sees the model."""
    fitted: list[Task] = []
    monkeypatch.setattr(fitting, "fit_one", lambda task, *_: fitted.append(task))
    path = lab.config(methods=["logistic"])
    (task,) = choose_tasks(load_config(path), ["logistic"])
    with pytest.raises(DpreproError, match="no shape functions"):
        fit_model(load_config(path), task)
    drawn = CliRunner().invoke(app, ["plot", "shapes", str(path)])
    assert "logistic has no shape functions" in str(drawn.exception)
    assert "PRIVATE DATA" not in drawn.output
    assert not fitted


def test_what_cannot_be_fitted_is_said(lab: Lab) -> None:
    experiment = config(lab)
    with pytest.raises(DpreproError, match="splits 0 to 2, and no split 3"):
        choose_tasks(experiment, split=3)
    (task,) = choose_tasks(experiment, ["logistic"])
    with pytest.raises(DpreproError, match="no shape functions"):
        fit_model(experiment, task)
    (task,) = choose_tasks(experiment, ["dp-ebm-gdp"], [4])
    with pytest.raises(DpreproError, match="dp-ebm-gdp, ε=4: max_bins must be"):
        fit_model(experiment, replace(task, params={"max_bins": 0}))
    with pytest.raises(DpreproError, match=r"nothing to fit: .* not installed"):
        choose_tasks(config(lab, methods=["lacks-module"]))
    with pytest.raises(DpreproError, match=r"dp-ebm-gdp has no such epsilon\. It has: (\d|, )+$"):
        choose_tasks(experiment, ["dp-ebm-gdp"], [math.inf])
