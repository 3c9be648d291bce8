from __future__ import annotations

import numpy as np
import pytest

from dprepro.experiment.config import load_config
from dprepro.experiment.worker import DataRef, run_task
from dprepro.release.fitting import choose_one, fit_vote, run_boosting
from dprepro.runtime.errors import DpreproError
from tests.lab import Lab

METHODS = [{"method": "lazybb-1r", "params": {"rounds": 5}}, "ebm", "lazybb-topdown"]


def config(lab: Lab, **keys: object):
    return load_config(lab.config(**{"methods": METHODS, "epsilons": [1, 4], **keys}))


def test_a_shown_vote_is_the_one_that_a_run_records(lab: Lab) -> None:
    experiment = config(lab)
    task = choose_one(experiment, "lazybb-1r", 4, split=1)
    model, metrics = fit_vote(experiment, task)
    record = run_task(task, DataRef(experiment.card))
    assert metrics["accuracy"] == record.metrics["accuracy"]
    assert len(model.votes_) >= record.metrics["n_columns"]


def test_diagnostics_cover_every_fit_round_and_row_and_leave_the_votes_alone(lab: Lab) -> None:
    experiment = config(lab, evaluation="folds")
    tasks = [choose_one(experiment, "lazybb-1r", 4, split) for split in (0, 1)]
    runs = run_boosting(experiment, tasks)
    assert runs.edges.shape == (2, 5)
    assert runs.margins.shape[0] == 2
    assert np.abs(runs.margins).max() <= 1
    model, _ = fit_vote(experiment, tasks[0])
    assert set(np.round(np.unique(runs.margins[0]) * 5)) <= {-5, -3, -1, 1, 3, 5}
    assert not hasattr(model, "margins_")


def test_what_is_no_vote_is_refused(lab: Lab) -> None:
    experiment = config(lab)
    with pytest.raises(DpreproError, match="ebm is no vote"):
        fit_vote(experiment, choose_one(experiment, "ebm"))
    with pytest.raises(DpreproError, match=r"one model at a time.*ε=1; lazybb-1r, ε=4"):
        choose_one(experiment, "lazybb-1r")
