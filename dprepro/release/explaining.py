"""Fit models of a config and explain their predictions of held-out rows.

Fit votes of a config (LazyBB) to look at: the model itself, and how its boosting went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier

from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.contract import Estimator, explains_rows
from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.ledger_disclosures import check_tuned_splits
from dprepro.experiment.record import Task
from dprepro.experiment.worker import rows_of, score_on_test_rows
from dprepro.methods.lazybb.estimator import LazyBBClassifier
from dprepro.methods.locally_linear.network import integrated_gradients, smoothed_gradients
from dprepro.release.fitting import data_of, describe, fit_one
from dprepro.release.plot_data import BoostingRuns, Explained, Explanations
from dprepro.release.progress import shown_steps
from dprepro.runtime.errors import DpreproError


def explain(
    config: ExperimentConfig,
    tasks: Sequence[Task],
    rows: Sequence[int],
    top: int,
    data_dir: Path | None = None,
) -> Explanations:
    """Fit each task's model and explain its predictions of some held-out rows.

    Parameters
    ----------
    tasks
        Of one split; their methods have maps (`dprepro.methods.locally_linear`) or are networks.
    rows
        Positions among the held-out rows.
    top
        How many maps of each row to return, the heaviest first.

    Raises
    ------
    DpreproError
        If there is no such row, a method refuses its parameters or its rows, or a model has neither
        maps nor gradients.
    """
    data = data_of(config, data_dir)
    held_out = rows_of(tasks[0], data, "unit-interval")
    size = len(held_out.y_test)
    for row in rows:
        if not 0 <= row < size:
            raise DpreproError(f"no held-out row {row}: rows count from 0, and there are fewer")
    inputs = held_out.X_test[list(rows)]
    labels = held_out.domain.target
    models = []
    for task in shown_steps("fitting", tasks, describe):
        model, names = fit_one(task, data), [str(name) for name in labels]
        models.append(_explain(describe(task), model, inputs, top, names))
    return Explanations(
        inputs,
        column_names(held_out.domain),
        tuple(str(labels[code]) for code in held_out.y_test[list(rows)]),
        tuple(models),
    )


def column_names(domain: Domain) -> tuple[str, ...]:
    """Return the names of the columns that the encoding "unit-interval" makes of a domain."""
    names = []
    for feature in domain.features:
        if isinstance(feature, CategoricalFeature):
            names += [f"{feature.name} = {category}" for category in feature.categories]
        else:
            names.append(feature.name)
    return tuple(names)


def _explain(
    title: str, model: Estimator, inputs: np.ndarray, top: int, labels: list[str]
) -> Explained:
    predicted = tuple(labels[int(code)] for code in model.predict(inputs))
    if isinstance(model, MLPClassifier):
        codes = np.searchsorted(model.classes_, model.predict(inputs))
        around = smoothed_gradients(model, inputs, codes, np.random.default_rng(0))
        vectors = np.stack([integrated_gradients(model, inputs, codes), around], axis=1)
        return Explained(title, predicted, vectors, (("integrated", "smoothed"),) * len(inputs))
    if not explains_rows(model):
        raise DpreproError(
            f"{title} has no filters to draw and no gradients: choose methods such as dp-llm, "
            "llm or mlp"
        )
    local = model.explain_local(inputs)
    weights = local.weights[:, :top]
    captions = tuple(tuple(f"{weight:.2f}" for weight in row) for row in weights)
    return Explained(title, predicted, local.filters[:, :top], captions)


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
