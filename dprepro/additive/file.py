"""Save fitted additive models as JSON and load them again: no code is in a file, none is run.

What a file says, its ledger included, is its author's word: a ledger shows what follows from the
releases listed, not that these were all. `dprepro.additive.checking` says what is accepted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dprepro.additive.bins import FeatureBins
from dprepro.additive.checking import checked_record, parse_strictly, refuse_countless
from dprepro.additive.editing import Edit, note_edits
from dprepro.additive.intervals import ResidualSizes
from dprepro.additive.model import AdditiveClassifier, AdditiveModel, AdditiveRegressor
from dprepro.additive.pairs import Pair, PairTerm
from dprepro.additive.record import (
    FORMAT,
    INTERVALS,
    PREDICTION,
    PREDICTION_OF_PAIRS,
    CategoricalRecord,
    IntervalsRecord,
    ModelRecord,
    NumericRecord,
    PairRecord,
    ledger_from_json,
    ledger_to_json,
)
from dprepro.additive.units import Powers, whole_numbers
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.durable import appearing_complete
from dprepro.errors import DpreproError
from dprepro.estimators.contract import classes_of, has_named_columns, ledger_of
from dprepro.files import MEBIBYTE, NoFileError, read_text
from dprepro.plain import Instance, OrNone, refusal
from dprepro.plain import path as plain_path

MAX_BYTES = 128 * MEBIBYTE
"""Of a model file: what is larger is neither written nor read."""
_SAVED = "a fitted model of DP-EBM, DP-EBM+ or EBM, or one that was loaded"


class _Loaded(AdditiveModel):
    """A model from a file: it predicts and can be edited.

    Attributes
    ----------
    origin_
        What the file says of how the model came about.
    """

    origin_: dict[str, Any]
    _column_names: list[str]

    def fit(self, X: Any, y: Any) -> Any:
        """Raise `DpreproError`: the file says nothing about how to train."""
        raise DpreproError("a loaded model cannot be trained; fit a new one")


class LoadedClassifier(_Loaded, AdditiveClassifier):
    """A binary classifier from a file."""


class LoadedRegressor(_Loaded, AdditiveRegressor):
    """A regressor from a file."""


def save_model(
    model: AdditiveModel, path: str | Path, origin: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model with its edits and its ledger to `path`, which appears complete.

    Parameters
    ----------
    origin
        What is to be remembered of how the model came about: JSON values. By default what the file
        remembers that the model was loaded from.

    Raises
    ------
    DpreproError
        If the model holds what a file cannot, or the file cannot be written.
    ValueError
        If a parameter is of another type, or the model is not fitted.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dprepro.ebm import EBMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> model = EBMClassifier(n_epochs=5, outer_bags=1, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.json")
    ...     loaded = load_model(Path(folder) / "model.json")
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    path = plain_path("path", path)
    check_is_fitted(Instance(AdditiveModel, _SAVED)("model", model))
    text = encoded(model, f"cannot save {path}", OrNone(_json_values)("origin", origin))
    with appearing_complete(path) as unfinished:
        unfinished.write_bytes(text)


def encoded(
    model: AdditiveModel,
    where: str,
    origin: Mapping[str, Any] | None = None,
    spare: int = 0,
) -> bytes:
    """Return what a model's file holds, `spare` bytes less than it may; see `save_model`.

    Raises
    ------
    DpreproError
        If the model holds what a file cannot, or if a file of it would not be read. The message
        begins with `where`.
    """
    values = model_to_json(model, origin)
    checked_record(values, where)
    text = file_text(values)
    refuse_countless(text, where)
    data = text.encode("utf-8")
    if len(data) > MAX_BYTES - spare:
        raise DpreproError(
            f"{where}: its file could have {len(data) / MEBIBYTE:.0f} MiB, and no file of more "
            f"than {MAX_BYTES // MEBIBYTE} is written or read: leave out features, or choose "
            "fewer bins"
        )
    return data


def load_model(path: str | Path) -> LoadedClassifier | LoadedRegressor:
    """Return the model in a file that `save_model` wrote.

    Raises
    ------
    DpreproError
        If the file cannot be read, is not such a file or of another version, or if any field is
        missing, unknown, of the wrong type, not finite, or does not fit the rest.
    ValueError
        If `path` is no path.

    Examples
    --------
    See `save_model`.
    """
    path = plain_path("path", path)
    if os.path.isdir(path):  # noqa: PTH112 - no name is too long for it
        raise DpreproError(f"{path}: it is a folder. Name a model file in it, such as model.json")
    try:
        text = read_text(path, MAX_BYTES)
    except NoFileError as error:
        raise DpreproError(
            f"{path}: there is no such model file. `dprepro release CARD` and `dprepro fit CONFIG "
            "--output FILE` write one"
        ) from error
    return model_from_text(text, str(path))


def model_from_text(text: str | bytes, where: str = "model") -> LoadedClassifier | LoadedRegressor:
    """Return the model in the text of a file; `DpreproError` names `where` it fails."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    return model_from_json(parse_strictly(text, where), where)


def _json_values(name: str, given: object) -> dict[str, Any]:
    """Return a mapping of texts to JSON values, in which scalars of NumPy are numbers."""
    if isinstance(given, Mapping) and all(isinstance(key, str) for key in given):
        with suppress(TypeError, ValueError):
            values: dict[str, Any] = json.loads(
                json.dumps(dict(given), default=np.generic.item, allow_nan=False)
            )
            return values
    raise refusal(name, "a mapping of texts to JSON values", given)


def file_text(values: Any) -> str:
    """Return JSON values as a model file spells them."""
    return json.dumps(values, allow_nan=False, indent=1, ensure_ascii=False) + "\n"


def model_to_json(model: AdditiveModel, origin: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a fitted model as JSON values."""
    ledger, classes = ledger_of(model), classes_of(model)
    power = model.powers_.functions
    limits = model.range_ if isinstance(model, AdditiveRegressor) else None
    if origin is None:
        origin = model.origin_ if isinstance(model, _Loaded) else {}
    return {
        "format": FORMAT,
        "version": 3 if model.pairs_ else 2,
        "prediction": PREDICTION_OF_PAIRS if model.pairs_ else PREDICTION,
        "task": "regression" if classes is None else "binary",
        "classes": None if classes is None else classes.tolist(),
        **_names_to_json(model),
        "range": None if limits is None else list(limits),
        "named_columns": has_named_columns(model),
        "units": model.powers_._asdict(),
        "intercept": whole_numbers(np.array([model.intercept_]), model.powers_.intercept)[0],
        "features": [_feature_to_json(model, k) for k in range(len(model.bins_))],
        **(
            {"pairs": [_pair_to_json(model, pair) for pair in model.pairs_]} if model.pairs_ else {}
        ),
        "edits": [
            {
                "feature": edit.feature,
                "action": edit.action,
                "detail": edit.detail,
                "before": whole_numbers(np.array(edit.before), power),
                "after": whole_numbers(np.array(edit.after), power),
            }
            for edit in model.edits_
        ],
        **_intervals_to_json(model),
        "ledger": None if ledger is None else ledger_to_json(ledger),
        "origin": dict(origin),
    }


def _intervals_to_json(model: AdditiveModel) -> dict[str, Any]:
    """Return how wide prediction intervals are, if the model knows."""
    found = model.residual_sizes_ if isinstance(model, AdditiveRegressor) else None
    if found is None:
        return {}
    return {
        "intervals": {
            "about": INTERVALS,
            "power": found.power,
            "percents": found.percents.tolist(),
            "sizes": whole_numbers(found.sizes, found.power),
        }
    }


def _names_to_json(model: AdditiveModel) -> dict[str, Any]:
    """Return what the data call target and classes, as far as it is known."""
    labels = None if model.labels_ is None else list(model.labels_)
    known = {"target": model.target_name_, "labels": labels}
    return {key: value for key, value in known.items() if value is not None}


def _feature_to_json(model: AdditiveModel, k: int) -> dict[str, Any]:
    bins, noise = model.bins_[k], model.shape_noise_
    feature, power = bins.feature, model.powers_.functions
    if isinstance(feature, NumericFeature):
        kind: dict[str, Any] = {
            "kind": "numeric",
            "lower": feature.lower,
            "upper": feature.upper,
            "cuts": bins.cuts.tolist(),
        }
    else:
        kind = {
            "kind": "categorical",
            "categories": list(feature.categories),
            "groups": bins.groups.tolist(),
            **({"ordered": True} if feature.ordered else {}),
        }
    measured_in = model.measured_in_.get(str(feature.name))
    return {
        "name": str(feature.name),
        **({} if measured_in is None else {"measured_in": measured_in}),
        **kind,
        "missing": feature.missing,
        "missing_bin": bins.missing_bin if bins.missing_bin >= 0 else None,
        "labels": list(bins.labels),
        "values": whole_numbers(model.shape_functions_[k], power),
        "counts": whole_numbers(model.bin_counts_[k], model.powers_.counts),
        "noise": None if noise is None else whole_numbers(noise[k], power),
    }


def _pair_to_json(model: AdditiveModel, term: PairTerm) -> dict[str, Any]:
    pair, power = term.pair, model.powers_.functions
    first, second = (str(model.bins_[k].feature.name) for k in (pair.first, pair.second))
    return {
        "first": first,
        "second": second,
        "first_groups": pair.first_groups.tolist(),
        "second_groups": pair.second_groups.tolist(),
        "values": whole_numbers(term.values.ravel(), power),
        "counts": whole_numbers(term.counts.ravel(), model.powers_.counts),
        "noise": None if term.noise is None else whole_numbers(term.noise.ravel(), power),
    }


def model_from_json(values: Any, where: str = "model") -> LoadedClassifier | LoadedRegressor:
    """Return the model that `model_to_json` described; `DpreproError` names `where` it fails."""
    record = checked_record(values, where)
    model = LoadedRegressor() if record.task == "regression" else LoadedClassifier()
    if record.classes is not None:
        # An array of texts drops a NUL at the end.
        ends_in_nul = any(str(label).endswith("\0") for label in record.classes)
        model.classes_ = np.array(record.classes, dtype=object if ends_in_nul else None)
    model.target_name_ = record.target
    if record.labels is not None:
        model.labels_ = (record.labels[0], record.labels[1])
    model.measured_in_ = {
        f.name: f.measured_in for f in record.features if f.measured_in is not None
    }
    if record.range is not None:
        model.range_ = (record.range[0], record.range[1])
    if record.intervals is not None:
        model.residual_sizes_ = _residual_sizes(record.intervals)
    model.bins_ = [_bins(feature) for feature in record.features]
    _read_numbers(model, record)
    model.n_features_in_ = len(record.features)
    model._column_names = [feature.name for feature in record.features]
    if record.named_columns:
        model.feature_names_in_ = np.array([f.name for f in record.features], dtype=object)
    if record.ledger is not None:
        model.ledger_ = ledger_from_json(record.ledger)
        note_edits(model)
    model.origin_ = dict(record.origin)
    return model


def _read_numbers(model: _Loaded, record: ModelRecord) -> None:
    """Set functions, counts, intercept and edits: what a file has, times its units."""
    given = record.units
    unit, of_intercept, of_counts = (
        (1.0, 1.0, 1.0) if given is None
        else (2.0**given.functions, 2.0**given.intercept, 2.0**given.counts)
    )  # fmt: skip
    features = record.features
    model.shape_functions_ = [unit * np.array(feature.values) for feature in features]
    model.bin_counts_ = [of_counts * np.array(feature.counts) for feature in features]
    noise = [feature.noise for feature in features if feature.noise is not None]
    model.shape_noise_ = [unit * np.array(deviations) for deviations in noise] or None
    places = {feature.name: k for k, feature in enumerate(features)}
    model.pairs_ = tuple(_pair(pair, places, unit, of_counts) for pair in record.pairs or ())
    model.intercept_ = of_intercept * record.intercept
    model.edits_ = [
        Edit(
            e.feature, e.action, e.detail,
            tuple((unit * np.array(e.before)).tolist()), tuple((unit * np.array(e.after)).tolist()),
        )
        for e in record.edits
    ]  # fmt: skip
    model.powers_ = (
        Powers.of(model.shape_functions_, np.array([model.intercept_]), model.bin_counts_)
        if given is None
        else Powers(given.functions, given.intercept, given.counts)
    )


def _residual_sizes(record: IntervalsRecord) -> ResidualSizes:
    sizes = np.ldexp(np.array(record.sizes, dtype=float), record.power)
    return ResidualSizes(np.array(record.percents), sizes, record.power)


def _pair(record: PairRecord, places: dict[str, int], unit: float, of_counts: float) -> PairTerm:
    pair = Pair(
        places[record.first], places[record.second],
        np.array(record.first_groups, np.uint8), np.array(record.second_groups, np.uint8),
    )  # fmt: skip
    values, counts = (
        factor * np.array(numbers, dtype=float).reshape(pair.shape)
        for factor, numbers in ((unit, record.values), (of_counts, record.counts))
    )
    noise = None if record.noise is None else unit * np.array(record.noise).reshape(pair.shape)
    return PairTerm(pair, values, counts, noise)


def _bins(record: NumericRecord | CategoricalRecord) -> FeatureBins:
    missing_bin = -1 if record.missing_bin is None else record.missing_bin
    labels = tuple(record.labels)
    if isinstance(record, NumericRecord):
        numeric = NumericFeature(record.name, record.lower, record.upper, record.missing)
        cuts = np.array(record.cuts, dtype=float)
        return FeatureBins(numeric, cuts, np.empty(0, dtype=np.int64), labels, missing_bin)
    categories = tuple(record.categories)
    categorical = CategoricalFeature(record.name, categories, record.missing, record.ordered)
    groups = np.array(record.groups, dtype=np.int64)
    return FeatureBins(categorical, np.empty(0), groups, labels, missing_bin)
