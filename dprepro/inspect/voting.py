"""Fit votes of a config (LazyBB) to look at: the model itself, and how its boosting went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dprepro.config import ExperimentConfig
from dprepro.errors import DpreproError
from dprepro.experiment.circumstances import check_tuned_splits
from dprepro.experiment.record import Task
from dprepro.experiment.worker import score_on_test_rows
from dprepro.inspect.fitting import data_of, describe, fit_one
from dprepro.inspect.pictured import BoostingRuns
from dprepro.inspect.showing import shown_steps
from dprepro.lazybb import LazyBBClassifier


def fit_vote(
    config: ExperimentConfig,
    task: Task,
    data_dir: Path | None = None,
    allow_tuned_splits: bool = False,
) -> tuple[LazyBBClassifier, dict[str, float]]:
    """Return the vote of a task as a run fits it, and its metrics on the test rows.

    `allow_tuned_splits` as in `dprepro.experiment.run.Options`.

    Raises
    ------
    DpreproError
        If the method is no vote, or refuses its parameters or its rows, or on what
        `check_tuned_splits` refuses.
    """
    if not allow_tuned_splits:
        check_tuned_splits(config)
    data = data_of(config, data_dir)
    model = fit_one(task, data)
    if not isinstance(model, LazyBBClassifier):
        raise DpreproError(
            f"{task.method} is no vote of rules or trees: choose a method such as lazybb-1r"
        )
    return model, score_on_test_rows(model, task, data)


def run_boosting(
    config: ExperimentConfig,
    tasks: Sequence[Task],
    data_dir: Path | None = None,
    allow_tuned_splits: bool = False,
) -> BoostingRuns:
    """Fit tasks that differ in their split alone, with diagnostics.

    Raises
    ------
    DpreproError
        As `fit_vote`.
    """
    watched = [replace(task, params={**task.params, "diagnostics": True}) for task in tasks]
    models = [
        fit_vote(config, task, data_dir, allow_tuned_splits)[0]
        for task in shown_steps("fitting", watched, lambda task: f"split {task.split}")
    ]
    rows = min(len(model.margins_) for model in models)  # folds can differ by one row
    return BoostingRuns(
        describe(tasks[0]),
        np.array([model.edges_ for model in models]),
        np.array([model.margins_[:rows] for model in models]),
    )
