"""What a model file says of its origin and takes from the card, and what stays on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dprepro.additive.bins import FeatureBins
from dprepro.additive.file import save_model
from dprepro.additive.model import AdditiveModel
from dprepro.data.card import Card, card_names, load_card
from dprepro.data.domain import CategoricalFeature
from dprepro.data.register import write_own
from dprepro.estimators.contract import ledger_of
from dprepro.experiment.record import Task
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import owner_only

# What the person who asks for a fit decides, or the card or the method; nothing depends on rows.
_DECIDED = (
    "dataset", "method", "label", "params", "epsilon", "delta", "domain", "method_version",
    "unit", "rows_per_unit",
)  # fmt: skip
_OWN_TABLE = "of the user's own (--table); the dataset gives names, domain and labels"
_FORMAT = "dprepro local notes"
_NOTE = (
    "Not for release. Which rows of private data trained the model in the file of this name: its "
    "seed, its split, and the token of the data on this machine. `dprepro score` needs them."
)


def local_notes_path(model: Path) -> Path:
    """Return where the notes on a model file lie that are not for release.

    The name does not end as that of a model does, so that nobody takes the notes for one.
    """
    return model.with_name(f"{model.stem}.local-notes")


def why_not_for_release(model: AdditiveModel, is_private: bool) -> str:
    """Return why a model is not for release, in words; empty where its rows are public.

    Of private rows a model can be released if it has a ledger, and the ledger holds.
    """
    if not is_private:
        return ""
    ledger = ledger_of(model)
    if ledger is None:
        return "fitted to private rows without privacy"
    return "" if ledger.holds else "fitted to private rows, and its ledger does not hold"


def origin_of(
    model: AdditiveModel, config: str, task: Task, all_rows: bool, own_table: bool = False
) -> dict[str, Any]:
    """Return what the file of a model says of where it comes from; see `save_fitted`."""
    known = task.to_json()
    origin: dict[str, Any] = {"config": config}
    if all_rows or task.is_private:
        origin |= {name: known[name] for name in _DECIDED if name in known}
        origin |= _of_all_that_was_released(model, task)
        origin["rows"] = "all" if all_rows else "of one split"
    else:
        origin["task"] = known
    if own_table:
        origin["table"] = _OWN_TABLE
    if reason := why_not_for_release(model, task.is_private):
        origin["not_for_release"] = reason
    return origin


def _of_all_that_was_released(model: AdditiveModel, task: Task) -> dict[str, Any]:
    """Return the epsilon and delta of a measured model, and those of its fit, which are a part.

    Whoever reads of one epsilon takes it for what the file spends, measurement included. Without
    one a fit spends what its task says, and nothing is returned.
    """
    ledger = ledger_of(model)
    if model.measurement_ is None or ledger is None:
        return {}
    return {
        "epsilon": ledger.epsilon, "delta": ledger.delta,
        "fit_epsilon": task.epsilon, "fit_delta": task.delta,
    }  # fmt: skip


def save_fitted(
    model: AdditiveModel,
    config: str,
    task: Task,
    path: Path,
    all_rows: bool,
    own_table: bool = False,
) -> Path | None:
    """Write a model that was fitted for a task of `config`, to all rows or to the task's split.

    The file of a model of all rows, or of private rows, says only what was decided before a row was
    read; with `own_table`, also that the rows are not those of the dataset, but neither where they
    lie nor how many they are. What `dprepro score` needs to hold the right private rows out goes
    into a file beside it.

    Returns
    -------
    Path or None
        The file beside it, if there is one.

    Raises
    ------
    DpreproError
        If a file cannot be written.
    """
    origin = origin_of(model, config, task, all_rows, own_table)
    with owner_only("not_for_release" in origin):
        save_model(model, path, origin)
    if all_rows or not task.is_private:
        return None
    notes = local_notes_path(path)
    values = {"format": _FORMAT, "note": _NOTE, "version": 1, "task": task.to_json()}
    text = json.dumps(values, indent=1)
    try:
        write_own(notes, text + "\n")
    except OSError as error:
        raise DpreproError(f"cannot write {notes}: {error.strerror or error}") from error
    return notes


def trained_on(origin: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the task whose training rows a model has seen, as `Task.to_json` gives it.

    Parameters
    ----------
    origin
        What the model file at `path` says of where the model comes from.

    Raises
    ------
    DpreproError
        If it was fitted to all rows, or if the notes beside it are missing or of another model.
    """
    if isinstance(origin.get("task"), Mapping):
        return dict(origin["task"])
    if origin.get("rows") == "all":
        raise DpreproError(
            f"{path} was fitted to all rows, so no test rows are left to score it on. "
            "`dprepro fit` with `--split 0` fits a model that can be scored"
        )
    if "rows" not in origin:
        return {}
    notes = local_notes_path(path)
    try:
        values = json.loads(notes.read_text(encoding="utf-8"))
        task = values["task"] if values["format"] == _FORMAT else None
    except OSError as error:
        raise DpreproError(
            f"{notes} says which rows trained {path}, and cannot be read "
            f"({error.strerror or error}): put the file there, or fit the model again"
        ) from error
    except (ValueError, KeyError, TypeError):
        task = None
    if not isinstance(task, dict) or any(task.get(k) != origin.get(k) for k in _DECIDED):
        raise DpreproError(
            f"{notes} is damaged or belongs to another model than {path}: fit the model again"
        )
    return task


def take_card(model: AdditiveModel, card: Card) -> None:
    """Give a fitted model what a card says: names, and where missing values go."""
    take_names(model, card)
    take_fills(model, card.fill)


def take_names(model: AdditiveModel, card: Card) -> None:
    """Give a fitted model the names on the card; nothing is read from rows.

    A card that names the positive label alone gives the negative one as "not" and that name, as
    `Card.public_target` does. Units of measure go to the features of these names: a method may have
    made others of them.
    """
    model.target_name_ = card.target_title
    if card.task != "regression":
        model.labels_ = tuple(map(str, card.public_target or ())) or None
    features = {str(bins.feature.name) for bins in model.bins_}
    model.measured_in_ = {name: unit for name, unit in card.measured_in.items() if name in features}


def take_missing_names(model: AdditiveModel, dataset: str) -> None:
    """Give a loaded model without names those of the built-in card of its dataset, if there is one.

    Files of early versions hold no names.
    """
    if model.target_name_ is None and dataset in card_names():
        take_names(model, load_card(dataset))


def take_fills(model: AdditiveModel, fills: Mapping[str, str]) -> None:
    """Let missing values of new rows go where the card's ``fill`` put those of the fit.

    The rows of a fit are filled before the model sees them, so that it has no bin for missing
    values. A feature with a bin for nothing else keeps it.
    """
    model.bins_ = [
        _filled(bins, fills[name]) if (name := str(bins.feature.name)) in fills else bins
        for bins in model.bins_
    ]


def _filled(bins: FeatureBins, fill: str) -> FeatureBins:
    feature = bins.feature
    if isinstance(feature, CategoricalFeature):
        if fill not in feature.categories:
            return bins
        return replace(bins, missing_bin=int(bins.groups[feature.categories.index(fill)]))
    if bins.missing_bin > bins.cuts.size:
        return bins
    return replace(bins, missing_bin=int(np.searchsorted(bins.cuts, float(fill), side="right")))
