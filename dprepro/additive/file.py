"""Save fitted additive models as JSON and load them again: no code is in a file, none is run.

What a file says, its ledger included, is its author's word: a ledger shows what follows from the
answers listed, not that these were all. `dprepro.additive.record` says what is accepted.

Domain and settings alone decide whether a fit's model can be saved. So a private fit first makes
the largest model that they allow, writes it as a file has it, and reads that: no fit draws noise
and then leaves nothing.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy, deepcopy
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dprepro.additive.bins import MOST_GROUPS, FeatureBins, Pair, PairTerm
from dprepro.additive.editing import Edit, make_all_monotone, note_edits
from dprepro.additive.model import (
    PERCENTS,
    AdditiveClassifier,
    AdditiveModel,
    AdditiveRegressor,
    ResidualSizes,
)
from dprepro.additive.record import (
    FORMAT,
    INTERVALS,
    PREDICTION,
    PREDICTION_OF_CLASSES,
    PREDICTION_OF_COUNTS,
    PREDICTION_OF_PAIRS,
    CategoricalRecord,
    IntervalsRecord,
    ModelRecord,
    NumericRecord,
    PairRecord,
    checked_record,
    ledger_from_json,
    ledger_to_json,
    parse_strictly,
    refuse_countless,
)
from dprepro.additive.units import BEHIND, MOST_POWER, Powers, power_for, whole_numbers
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.contract import classes_of, has_named_columns, ledger_of
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.runtime.arguments import Instance, OrNone, refusal
from dprepro.runtime.arguments import path as plain_path
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import MEBIBYTE, NoFileError, appearing_complete, read_text

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
    """A classifier from a file."""


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
    >>> from dprepro import EBMClassifier
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

    Raises DpreproError if the model holds what a file cannot, or if a file of it would not be read.
    The message begins with `where`.
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
        **_kind_to_json(model),
        "classes": None if classes is None else classes.tolist(),
        **_names_to_json(model),
        "range": None if limits is None else list(limits),
        **({"link": "log"} if model.has_log_link else {}),
        "named_columns": has_named_columns(model),
        "units": model.powers_._asdict(),
        "intercept": _whole(np.array([model.intercept_]), model.powers_.intercept)[0],
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
        **({} if model.measurement_ is None else {"measurement": model.measurement_.to_json()}),
        "ledger": None if ledger is None else ledger_to_json(ledger),
        "origin": dict(origin),
    }


def _kind_to_json(model: AdditiveModel) -> dict[str, Any]:
    """Return the version, how to predict, and the task."""
    if model.several_classes:
        return {"version": 4, "prediction": PREDICTION_OF_CLASSES, "task": model.task}
    if model.has_log_link:
        return {"version": 5, "prediction": PREDICTION_OF_COUNTS, "task": model.task}
    return {
        "version": 3 if model.pairs_ else 2,
        "prediction": PREDICTION_OF_PAIRS if model.pairs_ else PREDICTION,
        "task": model.task,
    }


def _whole(values: np.ndarray, power: int) -> list[Any]:
    """Return `whole_numbers` of values, (n,), or of several classes (n, S) as n lists."""
    if values.ndim == 1:
        return whole_numbers(values, power)
    return [whole_numbers(each, power) for each in values]


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
        "values": _whole(model.shape_functions_[k], power),
        "counts": whole_numbers(model.bin_counts_[k], model.powers_.counts),
        "noise": None if noise is None else _whole(noise[k], power),
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
        model.labels_ = tuple(record.labels)
    model.measured_in_ = {
        f.name: f.measured_in for f in record.features if f.measured_in is not None
    }
    if record.range is not None:
        model.range_ = (record.range[0], record.range[1])
    if record.link is not None:
        model.log_link_ = True
    if record.intervals is not None:
        model.residual_sizes_ = _residual_sizes(record.intervals)
    model.measurement_ = record.measurement
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
    level = of_intercept * np.array(record.intercept)
    model.intercept_ = level if level.ndim else float(level)
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


_WHOLE = 2.0**30
"""Largest whole number of `units`."""

_ROOM = 2.0**60
"""No function, level or noise is so many times the size of the target's bounds, or of 1."""

LARGEST_KEPT_TARGET = 2.0**MOST_POWER * _WHOLE / _ROOM
"""About 7.9e261: the largest bound of a target that leaves room for the numbers of its models."""

ALLOWANCE = MEBIBYTE
"""Bytes for what a file says beside the model: ledger, origin, names of target and classes."""

_REHEARSAL: ContextVar[Callable[[AdditiveModel], None] | None] = ContextVar(
    "rehearsal", default=None
)


@contextmanager
def rehearsing(callback: Callable[[AdditiveModel], None]) -> Iterator[None]:
    """Let `callback` have the largest model of every private fit of this context, before its noise.

    What it raises ends the fit, which has then spent nothing.
    """
    token = _REHEARSAL.set(callback)
    try:
        yield
    finally:
        _REHEARSAL.reset(token)


def require_kept(
    model: AdditiveModel,
    domain: Domain,
    bins: Sequence[FeatureBins],
    noise: Sequence[tuple[float, int]],
    monotone: Mapping[str, str] | None = None,
    pairs: int = 0,
) -> None:
    """Refuse a fit whose model may be none that a file can hold. No row is read.

    Raises ValueError if it cannot be kept; the message says why and what to change.

    Parameters
    ----------
    model
        About to be fitted: it has its parameters, its ledger and, for labels, its classes.
    bins
        Of every feature as many as it may get.
    noise
        Noise multiplier and uses of each Gaussian mechanism that is going to be in the ledger.
    monotone
        The features that are going to be made so.
    pairs
        Most functions of pairs.
    """
    largest = _largest(model, domain, bins, pairs, monotone or {})
    try:
        make_all_monotone(largest, monotone)
    except DpreproError as error:
        raise ValueError(f"monotone: {error}") from error
    try:
        model_from_text(encoded(largest, "the model", spare=ALLOWANCE), "the model")
    except (DpreproError, TypeError) as error:
        raise ValueError(f"no file could hold the model, so it is not fitted: {error}") from error
    if rehearse := _REHEARSAL.get():
        ledger = ledger_of(largest)
        if ledger is not None and not ledger.entries:
            ledger.entries = [_entry(ledger, *each) for each in noise]
        rehearse(largest)


def _entry(ledger: Ledger, multiplier: float, uses: int) -> LedgerEntry:
    return LedgerEntry("gaussian", "planned", 1.0, "L2", multiplier, uses, ledger.budget)


def _largest(
    model: AdditiveModel,
    domain: Domain,
    bins: Sequence[FeatureBins],
    pairs: int,
    monotone: Mapping[str, str],
) -> AdditiveModel:
    """Return a copy of a model with all bins, each number with as many digits as a file writes."""
    found = copy(model)
    size = _size_of_target(domain)
    power = power_for([np.array([size * _ROOM])])
    most, least = math.ldexp(_WHOLE, power), math.ldexp(1 - _WHOLE, power)
    found.powers_ = Powers(power, power, 0)
    classes = classes_of(model)
    several = () if classes is None or classes.size == 2 else (classes.size,)
    found.intercept_ = np.full(several, least) if several else least
    found.bins_ = list(bins)
    found.bin_counts_ = [np.full(each.n_bins, _WHOLE) for each in bins]
    noise = math.ldexp(most, BEHIND)
    found.shape_noise_ = [np.full((each.n_bins, *several), noise) for each in bins]
    names = [str(each.feature.name) for each in bins]
    # Not as `monotone` asks, with two bins already, so that each edit changes something.
    lowest = [0 if monotone.get(name) == "decreasing" else 1 for name in names]
    found.shape_functions_ = [
        np.where(np.arange(each.n_bins) % 3 == place, -most, least)
        for each, place in zip(bins, lowest, strict=True)
    ]
    if several:
        found.shape_functions_ = [
            np.repeat(shape[:, None], *several, axis=1) for shape in found.shape_functions_
        ]
    couples = combinations(sorted(range(len(bins)), key=lambda k: -len(names[k])), 2)
    found.pairs_ = tuple(
        _largest_pair(sorted(couple), bins, least, noise) for couple in islice(couples, pairs)
    )
    found.edits_ = []
    if isinstance(found, AdditiveRegressor):
        lower, upper = (float(bound) for bound in domain.target)
        found.range_ = (lower, upper)
        if not found.has_log_link:
            found.residual_sizes_ = ResidualSizes(
                np.array(PERCENTS), np.full(len(PERCENTS), most), power
            )
    if (ledger := ledger_of(model)) is not None:
        found.ledger_ = deepcopy(ledger)
    return found


def _size_of_target(domain: Domain) -> float:
    """Return how large targets can be, at least 1: log odds have no unit. Raises ValueError."""
    if any(isinstance(value, str) for value in domain.target):
        return 1.0
    size = max(abs(float(bound)) for bound in domain.target)
    if size > LARGEST_KEPT_TARGET:
        raise ValueError(
            f"the target's bounds go beyond {LARGEST_KEPT_TARGET:.2g} in size, so a model file has "
            "no room for its functions and their noise: divide the target and its bounds by a "
            "constant"
        )
    return max(size, 1.0)


def _largest_pair(
    couple: Sequence[int], bins: Sequence[FeatureBins], least: float, noise: float
) -> PairTerm:
    first, second = (np.arange(bins[k].n_bins, dtype=np.uint8) % MOST_GROUPS for k in couple)
    pair = Pair(couple[0], couple[1], first, second)
    return PairTerm(
        pair, np.full(pair.shape, least), np.full(pair.shape, _WHOLE), np.full(pair.shape, noise)
    )
