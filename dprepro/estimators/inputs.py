"""What every estimator takes: rows, labels or targets, a domain, and parameters.

Beside curators this is the one module that may open private rows: it checks them, and wraps them.
Parameters are declared once, checked by their kind, and plain during a fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, overload

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import assert_all_finite, validate_data

from dprepro.data.domain import Domain, TaskKind, as_floats, is_categorical
from dprepro.estimators.columns import (
    check_array,
    check_columns,
    check_finite,
    check_numbers,
    values_withheld,
)
from dprepro.estimators.contract import has_named_columns
from dprepro.estimators.targets import (
    check_target,
    labels_as_kept,
    public_classes,
    read_labels,
    read_targets,
    task_of_labels,
)
from dprepro.estimators.weights import read_weights
from dprepro.privacy.private_rows import Private
from dprepro.rows.chunked import ChunkedRows, CollectionRows, is_collection
from dprepro.rows.table import Table, is_table
from dprepro.runtime.arguments import Instance, Integer, Kind, OrNone

DOMAIN = Instance(Domain, "a Domain, as dprepro.Domain(features, target) makes it")

SEED = OrNone(Integer(0, 2**128 - 1))

SEED_OF_NUMPY = OrNone(Integer(0, 2**32 - 1))
"""Of generators that take no larger seed."""

JOBS = OrNone(Integer())

Fit = TypeVar("Fit", bound=Callable[..., Any])


class PrivacyWarning(UserWarning):
    """A fit read something from private rows that epsilon does not cover."""


@dataclass(frozen=True, repr=False)
class Rows:
    """The rows of a fit.

    Attributes
    ----------
    frame : (n, K)
        The features; see `read_frame`.
    targets : (n,)
        Classification: the labels as float32 codes 0, 1, .... Regression: float64.
    weights : int32 (n,) or None
        See `read_weights`; None if the fit was given none.
    """

    frame: pd.DataFrame
    targets: np.ndarray
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def part(self, rows: slice) -> Rows:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.frame.iloc[rows], self.targets[rows], weights)

    @property
    def names(self) -> list[Any]:
        """The names of the features."""
        return list(self.frame.columns)


Labels: TypeAlias = Literal["labels"]
"""A classification of two classes or of more: see `read_training_rows`."""

FitRows: TypeAlias = Rows | ChunkedRows[Rows] | CollectionRows[Rows]
"""The rows of a fit in memory, in a table that is read in chunks, or on a cluster."""


@dataclass(frozen=True, repr=False)
class Arrays:
    """The rows of a fit whose features are columns of one array.

    Attributes
    ----------
    features : (n, columns)
    targets : (n,)
    """

    features: Any
    targets: Any


def forget_fit(model: BaseEstimator) -> None:
    """Delete what an earlier fit found, so that no ledger stays with another fit's model."""
    for name in [name for name in vars(model) if name.endswith("_") and name[0] != "_"]:
        delattr(model, name)


@np.errstate(invalid="ignore")  # NumPy would tell that a missing value is a signalling NaN
def read_frame(model: BaseEstimator, X: Any, *, reset: bool) -> pd.DataFrame:
    """Return X as a DataFrame: numbers and categories of a DataFrame stay, arrays become numbers.

    With `reset`, as a fit calls it, the model first forgets an earlier fit.

    Raises
    ------
    ValueError
        On infinite values, no rows or columns, or columns other than those of the fit.
    """
    if reset:
        forget_fit(model)
    _refuse_table(X, model)
    check_columns(X)
    _check_order(model, X, reset)
    if not isinstance(X, pd.DataFrame):
        array = _read_array(model, X, reset)
        return pd.DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])])
    validate_data(model, X, reset=reset, skip_check_array=True)
    least = 2 if reset else 1
    if X.shape[1] == 0 or len(X) < least:
        raise ValueError(
            f"X has {'too few rows' if X.shape[1] else 'no columns'}: a minimum of {least} "
            "sample(s) and 1 feature(s) is required"
        )
    _refuse_infinite(X)
    return X


def _check_order(model: Any, X: Any, reset: bool) -> None:
    """Refuse columns in another order than in the fit, where scikit-learn checks no names.

    It checks them where all are texts. Others, such as numbers, are compared as the texts that a
    domain and a model file have of them. What is named otherwise goes by position, as an array.
    """
    names = list(map(str, X.columns)) if isinstance(X, pd.DataFrame) else []
    if reset:
        model._column_names = names
    known = vars(model).get("_column_names", [])
    if not has_named_columns(model) and names != known and sorted(names) == sorted(known):
        raise ValueError(
            f"X has its columns in another order than in the fit, {', '.join(known)}: reorder them"
        )


def _refuse_infinite(X: pd.DataFrame) -> None:
    for name in X.columns:
        if not is_categorical(X[name]):
            values = as_floats(X[name])
            with values_withheld():
                assert_all_finite(values, allow_nan=True, input_name=str(name))


def _refuse_table(X: Any, model: BaseEstimator | None = None) -> None:
    if is_table(X) or is_collection(X):
        who = "this method" if model is None else type(model).__name__
        raise ValueError(
            f"{who} takes rows in memory here, such as a DataFrame of pandas, got "
            f"{type(X).__name__}{' of Dask' if is_collection(X) else ''}. Only "
            "`fit` of DP-EBM (DPEBMClassifier, DPEBMRegressor) and of DP-EBM+ "
            "(DPEBMPlusClassifier, DPEBMPlusRegressor) reads tables in chunks or on a Dask cluster"
        )


def _read_array(model: BaseEstimator, X: Any, reset: bool) -> np.ndarray:
    with values_withheld("X"):
        array: np.ndarray = validate_data(
            model, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )  # fmt: skip
    return array


def checked(model: BaseEstimator, *arrays: Any, **settings: Any) -> Any:
    """Return what scikit-learn's `validate_data` returns; its errors quote no value here."""
    _refuse_table(arrays[0], model)
    check_columns(arrays[0])
    _check_order(model, arrays[0], settings.get("reset", True))
    check_numbers(arrays[0])
    for y in arrays[1:]:
        check_array("y", y)
        if settings.get("y_numeric") and np.ndim(y) == 1:
            check_finite("Input y", y)
    with values_withheld():
        return validate_data(model, _dense(arrays[0]), *arrays[1:], **settings)


def _dense(X: Any) -> Any:
    """Return a DataFrame without sparse columns, of which scikit-learn makes a sparse matrix."""
    if not isinstance(X, pd.DataFrame):
        return X
    sparse = {
        name: dtype.subtype for name, dtype in X.dtypes.items() if isinstance(dtype, pd.SparseDtype)
    }
    return X.astype(sparse) if sparse else X


def read_training_arrays(model: BaseEstimator, X: Any, y: Any) -> Private[Arrays]:
    """Return the numbers that a fit was given, float64, wrapped: a curator opens them.

    Raises
    ------
    ValueError
        On what is missing, infinite or not a number.
    """
    return Private(Arrays(*checked(model, X, y, dtype=np.float64, y_numeric=True)))


def check_rows(X: Any, y: Any) -> None:
    """Raise ValueError on rows that no library reads as numbers; the feature is named."""
    _refuse_table(X)
    check_columns(X)
    check_numbers(X)
    check_array("y", y)
    if y is not None and np.ndim(y) == 1 and pd.isna(np.asarray(y)).any():
        raise ValueError("Input y contains NaN: drop these rows or fill in their target")


def wrap_training_arrays(X: Any, y: Any, codes: bool = False) -> Private[Arrays]:
    """Return what a fit was given as it is, wrapped: a library that gets it will check it.

    With `codes` y must hold finite numbers: some libraries sort numbers and texts together.
    """
    check_rows(X, y)
    if codes:
        check_array("y", y)
        check_finite("Input y", y)
    return Private(Arrays(X, y))


@overload
def read_training_rows(
    model: Any, X: Any, y: Any, domain: Domain | None, task: TaskKind | Labels
) -> Private[Rows]: ...


@overload
def read_training_rows(
    model: Any,
    X: Any,
    y: Any,
    domain: Domain | None,
    task: TaskKind | Labels,
    weights: Any = None,
    *,
    in_chunks: Literal[True],
) -> Private[FitRows]: ...


def read_training_rows(
    model: Any,
    X: Any,
    y: Any,
    domain: Domain | None,
    task: TaskKind | Labels,
    weights: Any = None,
    *,
    in_chunks: bool = False,
) -> Private[Any]:
    """Return what a fit was given, wrapped: a curator opens it. Classification sets ``classes_``.

    The task "labels" is that of two classes or of more, whichever `task_of_labels` says.

    With `in_chunks` X can also be a table, as `Table.open` takes it: a path, a dataset of pyarrow,
    or a `Table`. Then y is the name of its target column, and `domain` must be public. The result
    holds `ChunkedRows`, and the rows are read, and checked, when a curator asks for them. The same
    holds for `CollectionRows` of a Dask DataFrame or Array; see `CollectionRows.of`.

    `weights` are those of rows in memory, or None; the model's `largest_weight` is public.

    Raises
    ------
    ValueError
        As `read_frame`, and `read_labels` or `read_targets`; of a table, on what it lacks. On
        weights of other rows than those in memory, and as `read_weights`.
    """
    if weights is not None and (is_table(X) or is_collection(X)):
        raise ValueError(
            f"{type(model).__name__} takes sample_weight with rows in memory alone, but X is "
            f"{'a Dask collection' if is_collection(X) else 'a table that is read in chunks'}: "
            "read it into a DataFrame of pandas, or leave sample_weight out"
        )
    task = task_of_labels(y, domain) if task == "labels" else task
    if in_chunks and is_table(X):
        return Private(_chunked_rows(model, X, y, domain, task))
    if in_chunks and is_collection(X):
        return Private(_collection_rows(model, X, y, domain, task))
    # Labels of rows that a table has align nothing: rows and targets go by position.
    frame = read_frame(model, X, reset=True).reset_index(drop=True)
    if task == "regression":
        targets = read_targets(model, frame, y)
    else:
        model.classes_, targets = read_labels(model, frame, y, domain, task)
    if weights is not None:
        weights = read_weights(weights, len(frame), model.largest_weight)
    return Private(Rows(frame, targets, weights))


def _chunked_rows(
    model: Any, X: Any, y: Any, domain: Domain | None, task: TaskKind
) -> ChunkedRows[Rows]:
    """Set what a fit to a DataFrame sets, from names and types alone."""
    forget_fit(model)
    domain = _public(model, domain, "a table that is read in chunks", task)
    if not isinstance(y, str):
        raise ValueError(
            f"{type(model).__name__}: X is a table that is read in chunks, so y must be the name "
            f"of its target column, got {type(y).__name__}"
        )
    kind: Literal["numeric", "label"] = "numeric" if task == "regression" else "label"
    read = partial(_read_chunk, model, domain, task)
    table = Table.open(X)
    chunked = ChunkedRows(table, domain.features, y, kind, read, fit=_settings_of(model))
    validate_data(model, pd.DataFrame(columns=chunked.names), reset=True, skip_check_array=True)
    if task != "regression":
        none = np.empty(0, dtype=chunked.table.label_dtype(y))
        model.classes_ = labels_as_kept(public_classes(model, domain, none, task))
    return chunked


def _collection_rows(
    model: Any, X: Any, y: Any, domain: Domain | None, task: TaskKind
) -> CollectionRows[Rows]:
    """Set what a fit to rows in memory sets, from names and types alone."""
    forget_fit(model)
    domain = _public(model, domain, "a Dask collection", task)
    # A model without parameters travels to the workers: its seed, which tells all noise, stays.
    rows = CollectionRows.of(
        X, y, domain.features, partial(_read_chunk, type(model)(), domain, task)
    )
    validate_data(model, rows.features, reset=True, skip_check_array=True)
    if task != "regression":
        labels = public_classes(model, domain, np.asarray(rows.targets), task)
        model.classes_ = labels_as_kept(labels)
    return rows


def _public(model: Any, domain: Domain | None, what: str, task: TaskKind) -> Domain:
    if domain is None or not domain.is_public:
        raise ValueError(
            f"{type(model).__name__}: {what} needs a public domain, since nothing is read from the "
            "rows beforehand: pass domain=Domain(...) with bounds, categories, and labels or "
            "target range"
        )
    check_target(domain, task)
    return domain


def _read_chunk(
    model: Any, domain: Domain, task: TaskKind, frame: pd.DataFrame, y: pd.Series
) -> Rows:
    _refuse_infinite(frame)
    if task == "regression":
        return Rows(frame, read_targets(model, frame, y))
    return Rows(frame, read_labels(model, frame, y, domain, task)[1])


def _settings_of(model: Any) -> dict[str, str]:
    """Return the parameters of a fit that decide what it releases, as text."""
    parameters = {name: repr(value) for name, value in model.get_params().items()}
    return {"estimator": type(model).__name__, **parameters, "n_jobs": ""}


def resolve_domain_of(model: Any, private: Private[Any], task: TaskKind) -> Domain:
    """Return ``model.domain``; where it is None, warn and read one from the rows.

    To be called by ``fit`` itself: the warning points to the caller's caller.

    Raises
    ------
    ValueError
        If the domain describes another number of features or, for a DataFrame with names of its
        own, other features; or if its target is not of the task's kind.
    """
    rows: FitRows = private.open()
    if model.domain is None and isinstance(rows, Rows):
        warnings.warn(
            f"{type(model).__name__} got no domain and reads bounds, categories and target "
            "range from the training rows. Epsilon does not cover what it reads. "
            "State them: domain=Domain.from_frame(X, target=..., bounds=...), or "
            "domain=dprepro.load_domain(NAME) of a card.",
            PrivacyWarning,
            stacklevel=4,
        )
        y = rows.targets if task == "regression" else model.classes_[rows.targets.astype(int)]
        domain = Domain.observe(rows.frame, y, task)
        check_target(domain, task)
        return domain
    _check_features(model, rows.names)
    check_target(model.domain, task)
    return model.domain


def _check_features(model: Any, names: list[Any]) -> None:
    described = [feature.name for feature in model.domain.features]
    if len(described) != len(names):
        raise ValueError(
            f"X has {len(names)} columns but the domain describes {len(described)} features"
        )
    # An array has no names; a DataFrame's must match, or values would meet another's bounds. Names
    # that are numbers may be positions, but not those of other features.
    as_texts = list(map(str, names))
    if not has_named_columns(model) and (
        as_texts == described or sorted(as_texts) != sorted(described)
    ):
        return
    names = names if has_named_columns(model) else as_texts
    for column, name in zip(names, described, strict=True):
        if column != name:
            raise ValueError(
                f"X has column {column!r} where the domain describes feature {name!r}: "
                f"reorder or rename the columns, X[{described!r}]"
            )


class Parametrised:
    """An estimator that declares its parameters.

    As scikit-learn wants it, a constructor keeps what it is given, and `fit` checks it. While a fit
    runs, the attributes are plain numbers, texts and flags; afterwards they are what was given.

    Attributes
    ----------
    kinds
        Of every parameter, by its name.
    """

    kinds: ClassVar[Mapping[str, Kind]]

    def check_parameters(self) -> None:
        """Raise ValueError on parameters out of range."""
        with plain_parameters(self):
            pass

    def _check_together(self) -> None:
        """Raise ValueError on parameters, plain here, that do not go together."""


@contextmanager
def plain_parameters(model: Parametrised) -> Iterator[None]:
    """Let the parameters of a model be checked and plain in this context.

    Raises
    ------
    ValueError
        On parameters out of range.
    """
    attributes = vars(model)
    given = {name: attributes[name] for name in model.kinds}
    attributes.update({name: kind(name, given[name]) for name, kind in model.kinds.items()})
    try:
        model._check_together()
        yield
    finally:
        attributes.update(given)


def plain(model: Parametrised, name: str) -> Any:
    """Return a parameter as a plain value, for predictions: they change no attribute."""
    return model.kinds[name](name, vars(model)[name])


def fitting(fit: Fit) -> Fit:
    """Decorate the `fit` of a `Parametrised` estimator.

    It forgets an earlier fit and checks the parameters before it looks at rows. A fit that fails
    leaves nothing that is fitted.
    """

    @wraps(fit)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        forget_fit(self)
        try:
            with plain_parameters(self):
                return fit(self, *args, **kwargs)
        except BaseException:
            forget_fit(self)
            raise

    return cast("Fit", checked)
