"""Every estimator takes what equals a plain value for a parameter, and refuses the rest by name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from dataclasses import asdict
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import dprepro
from dprepro import Domain, NumericFeature
from dprepro.estimators.inputs import Parametrised, plain
from dprepro.methods.dpboost.variants import SOUND

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.integers(0, 2, (60, 2)).astype(float), columns=["a", "b"])
LABELS = (X["a"].to_numpy() > 0).astype(int)
FEATURES = (NumericFeature("a", 0, 1), NumericFeature("b", 0, 1))

QUICK = {
    "n_epochs": 2, "outer_bags": 1, "n_trees": 2, "trees_per_ensemble": 2, "rounds": 2,
    "epochs": 1, "n_maps": 2, "n_projected": 2, "teachers": 2, "partitions": 2, "steps": 2,
    "knots": 2, "n_estimators": 2, "epsilon": 2.0, "random_state": 1, "batch_size": 60,
}  # fmt: skip
WITHOUT_A_PACKAGE = {"ConvolutionalNetwork", "DPConvolutionalNetwork"}
"""Their parameters are checked, but they fit images where PyTorch is installed."""
BASES = ("DPEstimator", "ImageClassifier", "LocallyLinearMaps", "SampledEstimator")

PLAIN = (int, float, str, bool, type(None), dict, Domain)
FROM_NOISE = ("cannot be drawn", "mechanisms in the ledger spend more")
"""What is said where the parameters are in range, and no noise is found for all of them."""

WRONG = [
    True, None, "1", b"1", "no such choice", np.nan, np.inf, -np.inf, -1, 0, 10**400, 10**5000,
    1e39, 5e-324, 1j, Decimal(1), pd.NA, pd.NaT, np.datetime64("2020-01-01"),
    np.timedelta64(1, "ns"), [], [1], {}, (), np.ones(2), X, object(), int, lambda: 1,
]  # fmt: skip


def estimators() -> list[type]:
    for module in pkgutil.walk_packages(dprepro.__path__, "dprepro."):
        if module.name.endswith(("estimator", ".ebm", ".dp_ebm")):
            importlib.import_module(module.name)
    found, seen = [Parametrised], set()
    while found:
        for kind in found.pop().__subclasses__():
            found.append(kind)
            seen.add(kind)
    public = {kind for kind in seen if not kind.__name__.startswith("_")}
    bases = {seen_by_name(seen, name) for name in BASES}
    return sorted(public - bases, key=lambda kind: kind.__name__)


def seen_by_name(kinds: set[type], name: str) -> type:
    return next(kind for kind in kinds if kind.__name__ == name)


def made(kind: type, **change: Any) -> Any:
    """Return a small estimator, of a public domain if it takes one."""
    names = inspect.signature(kind).parameters
    target = (
        (0.0, 1.0)
        if "Regress" in kind.__name__ and kind.__name__ != "DPLogisticRegression"
        else ("0", "1")
    )
    quick = QUICK | {"domain": Domain(FEATURES, target)}
    return kind(**({name: value for name, value in quick.items() if name in names} | change))


def fitted(model: Any) -> Any:
    y = LABELS.astype(float) if is_regressor(model) else LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def outcome(model: Any) -> list[bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [model.predict(X)]
        if hasattr(model, "predict_proba"):
            found.append(model.predict_proba(X))
    return [np.asarray(array).tobytes() for array in found]


def refusal(model: Any) -> str:
    """Return why the parameters of a model are refused, or the empty text."""
    try:
        model.check_parameters()
    except ValueError as error:
        return str(error)
    return ""


def failure(model: Any) -> str:
    """Return why a model cannot be fitted, or the empty text."""
    try:
        outcome(fitted(model))
    except ValueError as error:
        return str(error)
    return ""


PARAMETERS = [(kind, name) for kind in estimators() for name in inspect.signature(kind).parameters]


def test_the_public_estimators_are_among_them():
    names = {name for name in dprepro.__all__ if name.endswith(("Classifier", "Regressor"))}
    assert names <= {kind.__name__ for kind in estimators()}
    assert len(estimators()) >= 24


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_every_parameter_has_a_kind(kind):
    own = set(inspect.signature(kind).parameters)
    assert own <= set(kind.kinds) == {
        name for base in kind.__mro__ if "__init__" in vars(base) and issubclass(base, Parametrised)
        for name in inspect.signature(base).parameters
    } | own  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), PARAMETERS, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_wrong_value_is_refused_by_name_or_fits(kind, name):
    for given in WRONG:
        model = made(kind, **{name: given})
        if refused := refusal(model):
            assert name in refused
            assert failure(model) == refused
        else:
            assert type(plain(model, name)) in PLAIN, given
            if kind.__name__ in WITHOUT_A_PACKAGE:
                continue
            said = failure(model)
            assert not said or name in said or any(text in said for text in FROM_NOISE), given
            refused = said
        if refused:
            with pytest.raises(NotFittedError):
                check_is_fitted(model)
        assert getattr(model, name) is given


def odd(value: Any) -> list[Any]:
    """Return what is equal to a plain value, and is none."""
    if isinstance(value, bool):
        return [np.bool_(value), np.array(value)]
    if isinstance(value, int):
        return [np.int16(value), np.uint64(value), np.array(value), pd.array([value], "Int64")[0]]
    if isinstance(value, float):
        same = [np.float64(value), np.array(value), np.longdouble(value), Fraction(value)]
        return [*same, *([np.float16(value)] if float(np.float16(value)) == value else [])]
    if isinstance(value, str):
        return [np.str_(value), Enum("Text", {"IT": value}, type=str).IT]
    return []


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_what_equals_a_plain_value_gives_the_same_bits(kind):
    if kind.__name__ in WITHOUT_A_PACKAGE:
        model = made(kind)
        for name, value in model.get_params().items():
            for given in odd(value):
                assert type(plain(made(kind, **{name: given}), name)) is type(value)
        return
    model = fitted(made(kind))
    expected, plain_values = outcome(model), model.get_params()
    for place in range(4):
        change = {
            name: odd(value)[place]
            for name, value in plain_values.items()
            if len(odd(value)) > place
        }
        same = fitted(made(kind, **change))
        assert outcome(same) == expected
        assert all(same.get_params()[name] is given for name, given in change.items())
        assert clone(same).get_params().keys() == change.keys() | plain_values.keys()
        if hasattr(model, "ledger_"):
            assert same.ledger_ == model.ledger_
            assert repr(asdict(same.ledger_)) == repr(asdict(model.ledger_))


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_a_fit_that_fails_leaves_nothing_fitted(kind):
    if kind.__name__ in WITHOUT_A_PACKAGE:
        model = made(kind)
        model.classes_ = LABELS
    else:
        model = fitted(made(kind))
        check_is_fitted(model)
    with pytest.raises(ValueError, match="y"):
        model.fit(X, None)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_variant_is_given_itself_or_by_name():
    kind = seen_by_name(set(estimators()), "DPBoostClassifier")
    assert outcome(fitted(made(kind, variant=SOUND))) == outcome(
        fitted(made(kind, variant="sound"))
    )


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_numbers_of_every_type_give_the_same_bits_and_dates_are_refused(kind):
    model = made(kind)
    y = LABELS.astype(float) if is_regressor(model) else LABELS
    dates = X.assign(a=pd.Timestamp("2020-01-01")), X.assign(a=pd.Period("2020", "Y"))
    for wrong in (*dates, dates[0].astype({"a": "date32[pyarrow]"})):
        with pytest.raises(ValueError, match="feature 'a' holds values of type"):
            model.fit(wrong, y)
    if kind.__name__ in WITHOUT_A_PACKAGE:
        return
    expected = outcome(fitted(model))
    for dtype in ("Int64", "Float32", "double[pyarrow]", np.longdouble):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert outcome(made(kind).fit(X.astype(dtype), y)) == expected


def test_a_number_is_no_domain():
    with pytest.raises(ValueError, match=r"domain must be a Domain, .*or None, got 1"):
        fitted(made(seen_by_name(set(estimators()), "DPEBMClassifier"), domain=1))


@pytest.mark.parametrize("name", ["LLMClassifier", "LazyBBClassifier", "DPLinearRegression"])
def test_sparse_columns_are_numbers(name):
    kind = seen_by_name(set(estimators()), name)
    model = fitted(made(kind))
    y = LABELS.astype(float) if is_regressor(model) else LABELS
    for dtype in ("Sparse[float]", pd.SparseDtype(float, 0.0)):
        same = made(kind).fit(X.astype(dtype), y)
        assert outcome(same) == outcome(model)
        assert np.array_equal(same.predict(X.astype(dtype)), model.predict(X))
