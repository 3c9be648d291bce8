"""Fit models of a config to keep or to look at, score them, and explain what they say of rows."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dprepro.additive.model import AdditiveModel
from dprepro.data import PRIVATE_PREFIX
from dprepro.data.card import load_card
from dprepro.data.dataset import Dataset
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.contract import Estimator, explains_rows
from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.method_names import name_meant, names_in_config
from dprepro.experiment.plan import PlannedTask, check_tuned_splits, narrow, plan
from dprepro.experiment.record import Task
from dprepro.experiment.worker import (
    DataRef,
    TableRef,
    fit_all_rows,
    fit_table,
    fit_task,
    rows_of,
    score_on_test_rows,
)
from dprepro.methods.registry import get
from dprepro.release.plot_data import BoostingRuns, Explained, Explanations
from dprepro.release.progress import shown_steps
from dprepro.release.provenance import take_card
from dprepro.rows.folder import StoreWarning
from dprepro.runtime.errors import DpreproError, publishable

if TYPE_CHECKING:
    from dprepro.methods.lazybb.estimator import LazyBBClassifier
    from dprepro.methods.privatree.estimator import PrivaTreeClassifier

_NONCE = secrets.token_hex(32)
# What decides which rows train and which test.
_ROWS = ("dataset", "seed", "split", "test_share", "evaluation", "data_fingerprint")


def choose_tasks(
    config: ExperimentConfig,
    methods: Sequence[str] = (),
    epsilons: Sequence[float] = (),
    split: int = 0,
    data_dir: Path | None = None,
    identify: bool = True,
) -> list[Task]:
    """Return the tasks of one split that can be run: methods, then epsilons, in the order given.

    Names of methods, where given, are methods or labels; without epsilons those of the config
    follow each other. `identify` is that of `plan`.

    Raises
    ------
    DpreproError
        On what `plan` and `narrow` refuse, if the config has no such split, or if nothing is left.
    """
    if not 0 <= split < config.splits:
        raise DpreproError(
            f"{config.name} has the splits 0 to {config.splits - 1}, and no split {split}"
        )
    planned = plan(config, data_dir, identify)
    methods = names_in_config(methods, (n for p in planned for n in (p.task.label, p.task.method)))
    chosen = narrow(planned, split + 1, methods, epsilons)
    tasks = [p.task for p in chosen if p.task.split == split and not p.skip]
    if not tasks:
        reasons = sorted({p.skip for p in chosen if p.skip}) or [
            f"{', '.join(methods)} has no such epsilon. It has: {_levels(planned, methods)}"
        ]
        raise DpreproError(f"{config.name}: nothing to fit: {'; '.join(reasons)}")
    return sorted(tasks, key=lambda task: (_place(methods, task), _level(epsilons, task)))


def choose_one(
    config: ExperimentConfig,
    method: str,
    epsilon: float | None = None,
    split: int = 0,
    data_dir: Path | None = None,
    identify: bool = True,
) -> Task:
    """Return the only task of one split that a method and an epsilon name.

    Raises
    ------
    DpreproError
        As `choose_tasks`, and if they name several: a label and an epsilon name one.
    """
    epsilons = [] if epsilon is None else [epsilon]
    tasks = choose_tasks(config, [method], epsilons, split, data_dir, identify)
    label = name_meant(method, {name for task in tasks for name in (task.label, task.method)})
    exact = [task for task in tasks if task.label == label] or tasks
    if len(exact) > 1:
        raise DpreproError(
            f"one model at a time, but several match: {'; '.join(map(describe, exact))}. "
            "Choose by --method with a label, and --epsilon"
        )
    return exact[0]


def _levels(planned: Sequence[PlannedTask], methods: Sequence[str]) -> str:
    """Return the privacy levels at which a config runs methods, in words."""
    levels = {entry.task.epsilon for entry in narrow(planned, 1, methods)}
    return ", ".join(f"{epsilon:g}" for epsilon in sorted(levels))


def _place(methods: Sequence[str], task: Task) -> int:
    return min(
        (i for i, name in enumerate(methods) if name in (task.label, task.method)), default=0
    )


def _level(epsilons: Sequence[float], task: Task) -> int:
    return epsilons.index(task.epsilon) if task.epsilon in epsilons else 0


def of_table(task: Task) -> Task:
    """Return a task as it is for a table of the user's own: its rows are private.

    A checksum on the card is that of the dataset's files, so none makes them public.
    """
    return replace(task, data_fingerprint=f"{PRIVATE_PREFIX}none")


def fit_one(
    task: Task,
    data: DataRef,
    all_rows: bool = False,
    table: TableRef | None = None,
    dataset: Dataset | None = None,
) -> Estimator:
    """Return the estimator of a task as a run fits it, without warnings but those of a store.

    With `all_rows`, or of the rows of a `table`, it is that of all rows; `dataset` has them if they
    have been read already.

    Raises
    ------
    DpreproError
        If the method refuses its parameters or its rows; the message quotes no private value.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", StoreWarning)
            if table is not None:
                return fit_table(task, data, table)
            return fit_all_rows(task, data, dataset) if all_rows else fit_task(task, data)
    except DpreproError:  # that of a table is a ValueError, too
        raise
    except ValueError as error:
        raise DpreproError(f"{describe(task)}: {publishable(error)}") from error


def fit_model(
    config: ExperimentConfig,
    task: Task,
    data_dir: Path | None = None,
    all_rows: bool = False,
    table: TableRef | None = None,
    dataset: Dataset | None = None,
) -> AdditiveModel:
    """Return the additive model of a task, as a run fits it; or fitted to all rows.

    It has the names that the card gives to target, classes and units of measure. The rows are those
    of `table`, where one is given (see `dprepro.experiment.worker.fit_table`), or all of `dataset`.

    Raises
    ------
    DpreproError
        If the method has no shape functions, or refuses its parameters or its rows.
    """
    require_shapes(config, [task])
    # The dataset's own files play no part where rows are given, so they are not looked at.
    is_given = table is not None or dataset is not None
    data = DataRef.of(config, data_dir) if is_given else data_of(config, data_dir)
    model = fit_one(task, data, all_rows, table, dataset)
    if not isinstance(model, AdditiveModel):
        raise DpreproError(f"{task.method} gave no additive model for these rows, so none is kept")
    take_card(model, load_card(config.card))
    return model


def require_shapes(config: ExperimentConfig, tasks: Iterable[Task]) -> None:
    """Raise DpreproError if the model of a task would have no shape functions, before any fit."""
    kind = load_card(config.card).task
    for task in tasks:
        if not get(task.method).makes(AdditiveModel, kind, task.params):
            raise DpreproError(
                f"{task.method} has no shape functions to save or draw: "
                "choose a method of additive models, such as dp-ebm-gdp or ebm"
            )


def describe(task: Task) -> str:
    """Return a task's label with its privacy level."""
    return task.budget.name(task.label)


def score_held_out(
    model: AdditiveModel,
    trained: Mapping[str, Any],
    config: ExperimentConfig,
    data_dir: Path | None = None,
    allow_tuned_splits: bool = False,
) -> dict[str, float]:
    """Return the metrics of a model on the test rows of the split whose training rows it saw.

    Parameters
    ----------
    trained
        The task that the model was fitted for, as `Task.to_json` gives it.
    allow_tuned_splits
        Score a tuned model on the very splits that its parameters were chosen by.

    Raises
    ------
    DpreproError
        If the config splits other data, or in another way: rows that trained the model could be
        among its test rows. Also if the model is for other columns, or tuned, and the config holds
        out the rows that chose its parameters, or does not say which these are.
    """
    if not allow_tuned_splits:
        _check_tuned(trained, config)
    split = trained.get("split")
    if isinstance(split, bool) or not isinstance(split, int):
        raise DpreproError(
            "the model does not say which rows it was fitted to, so no test rows are known"
        )
    task = next(
        (p.task for p in plan(config, data_dir) if p.task.split == split and not p.skip), None
    )
    here = {} if task is None else {"evaluation": task.evaluation, **task.to_json()}
    there = {"evaluation": "random", **trained}
    other = [name for name in _ROWS if here.get(name) != there.get(name)]
    if task is None or other:
        why = f"{', '.join(other)} differ{'s' * (len(other) == 1)}"
        raise DpreproError(
            f"the test rows of {config.name} are not those of the model ({why}): name the config "
            "that it was fitted with"
        )
    try:
        return score_on_test_rows(model, task, data_of(config, data_dir), encoding="frame")
    except ValueError as error:
        raise DpreproError(
            f"the model does not fit the rows of {task.dataset}: {publishable(error)}"
        ) from error


def _check_tuned(trained: Mapping[str, Any], config: ExperimentConfig) -> None:
    if trained.get("tuned") and config.tuned_on is None:
        raise DpreproError(
            f"the model's parameters were chosen by `dprepro tune`, and {config.name} does not say "
            "on which rows: name the config that it was fitted with, or score it anyway "
            "with --allow-tuned-splits"
        )
    check_tuned_splits(config)


def data_of(config: ExperimentConfig, data_dir: Path | None = None) -> DataRef:
    """Return where the dataset of a config is, and the state that it is in.

    The state is known to this process alone: it needs no register of private data.
    """
    return DataRef.of(config, data_dir, nonce=_NONCE)


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
    from sklearn.neural_network import MLPClassifier

    from dprepro.methods.locally_linear.network import integrated_gradients, smoothed_gradients

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
    from dprepro.methods.lazybb.estimator import LazyBBClassifier

    model, metrics = _fitted_and_scored(config, task, data_dir, allow_tuned_splits)
    if not isinstance(model, LazyBBClassifier):
        raise DpreproError(
            f"{task.method} is no vote of rules or trees: choose a method such as lazybb-1r"
        )
    return model, metrics


def fit_tree(
    config: ExperimentConfig,
    task: Task,
    data_dir: Path | None = None,
    allow_tuned_splits: bool = False,
) -> tuple[PrivaTreeClassifier, dict[str, float]]:
    """Return the tree of a task as a run fits it, and its metrics on the test rows.

    `allow_tuned_splits`, and what it raises, as `fit_vote`.
    """
    from dprepro.methods.privatree.estimator import PrivaTreeClassifier

    model, metrics = _fitted_and_scored(config, task, data_dir, allow_tuned_splits)
    if not isinstance(model, PrivaTreeClassifier):
        raise DpreproError(f"{task.method} is no single tree: choose a method such as privatree")
    return model, metrics


def _fitted_and_scored(
    config: ExperimentConfig, task: Task, data_dir: Path | None, allow_tuned_splits: bool
) -> tuple[Estimator, dict[str, float]]:
    if not allow_tuned_splits:
        check_tuned_splits(config)
    data = data_of(config, data_dir)
    model = fit_one(task, data)
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
