"""Every kind of column that pandas has either is read, or is refused by the feature's name."""

from __future__ import annotations

import datetime
import decimal
import fractions
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.columns import check_columns
from dprepro.methods.entry import Setting
from dprepro.methods.registry import all_methods

ROWS = 24
CODES = np.arange(ROWS) % 2
SECRET = "sEcReT"
WHEN = pd.to_datetime(CODES, unit="D")


def _objects(*values):
    made = np.empty(ROWS, dtype=object)
    made[:] = [values[k % len(values)] for k in range(ROWS)]
    return made


def _arrow(values, kind):
    return pd.arrays.ArrowExtensionArray(pa.array(values, kind))


READ = {
    "Int64": pd.array(CODES, dtype="Int64"),
    "Float64": pd.array(CODES, dtype="Float64"),
    "boolean": pd.array(CODES == 1, dtype="boolean"),
    "bool": CODES == 1,
    "arrow int": _arrow(CODES, pa.int64()),
    "arrow bool": _arrow(CODES == 1, pa.bool_()),
    "arrow decimal": _arrow([decimal.Decimal(int(k)) for k in CODES], pa.decimal128(5, 2)),
    "sparse": pd.arrays.SparseArray(CODES.astype(float)),
    "float16": CODES.astype(np.float16),
    "longdouble": CODES.astype(np.longdouble),
    "uint8": CODES.astype(np.uint8),
    "numbers as objects": _objects(0, True, decimal.Decimal(1), fractions.Fraction(1, 2), 1.0),
    "numbers as categories": pd.Categorical(CODES),
}
REFUSED = {
    "complex": CODES + 1j,
    "datetime": WHEN,
    "datetime with a zone": WHEN.tz_localize("UTC"),
    "timedelta": pd.to_timedelta(CODES, unit="D"),
    "period": WHEN.to_period("D"),
    "interval": pd.arrays.IntervalArray.from_breaks(range(ROWS + 1)),
    "categories of dates": pd.Categorical(WHEN),
    "arrow date": _arrow([datetime.date(2020, 1, 1)] * ROWS, pa.date32()),
    "arrow timestamp": _arrow([datetime.datetime(2020, 1, 1)] * ROWS, pa.timestamp("us")),
    "arrow list": _arrow([[1]] * ROWS, pa.list_(pa.int64())),
    "arrow struct": _arrow([{"a": 1}] * ROWS, pa.struct([("a", pa.int64())])),
    "arrow bytes": _arrow([b"1"] * ROWS, pa.binary()),
    "bytes": _objects(b"0", b"1"),
    "lists": _objects([0], [1]),
    "dicts": _objects({"a": 0}, {"a": 1}),
    "complex objects": _objects(0, 1j),
    "dates as objects": _objects(datetime.datetime(2020, 1, 1), SECRET),
}
NOT_NUMBERS = {
    "texts": _objects(SECRET, "1"),
    "beyond float": _objects(10**400, 0),
    "infinity": np.where(CODES, np.inf, 0),
    "longdouble beyond float": np.where(CODES, np.longdouble("1e400"), 0),
}


def _estimators():
    """Return one estimator of every class of ours that the registry builds, by name."""
    found = {}
    for method in all_methods().values():
        for task in sorted(method.tasks):
            if task == "multiclass" or method.requires is not None:
                continue
            labels = (0.0, 1.0) if task == "regression" else ("0", "1")
            domain = Domain((NumericFeature("age", 0, 1), NumericFeature("z", 0, 1)), labels)
            model = method.build(Setting(task, 1.0, 1e-6, domain, 0))
            if type(model).__module__.startswith("dprepro"):
                found.setdefault(type(model).__name__, model)
    return found


MODELS = _estimators()


def _table(values):
    return pd.DataFrame({"age": pd.Series(values), "z": CODES.astype(float)})


@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_names_the_feature_that_it_cannot_read(model):
    for kind, values in REFUSED.items():
        with pytest.raises(ValueError, match="'age'") as caught:
            MODELS[model].fit(_table(values), CODES)
        assert SECRET not in str(caught.value), kind


@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_names_the_feature_that_is_no_number(model):
    for kind, values in NOT_NUMBERS.items():
        if kind in ("texts", "beyond float") and model.startswith(("EBM", "Toy")):
            continue  # without a domain, these are categories
        with pytest.raises(ValueError, match=r"age|Boolean columns") as caught:
            MODELS[model].fit(_table(values), CODES)
        assert SECRET not in str(caught.value), kind


@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_refuses_a_target_of_no_use(model):
    X = _table(CODES.astype(float))
    more = {"mixed": _objects(SECRET, 1), "missing": _objects(None, None)}
    for kind, values in {**REFUSED, **more, "beyond": NOT_NUMBERS["beyond float"]}.items():
        with pytest.raises(ValueError, match=r"\by\b|[Ll]abel type|labels|1d array") as caught:
            MODELS[model].fit(X, pd.Series(values))
        assert SECRET not in str(caught.value), kind


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("model", ["AdaSSPRegressor", "PlainBoundedLinearRegression"])
def test_what_is_read_is_read_as_the_same_numbers(model, kind):
    plain = MODELS[model].fit(_table(CODES.astype(float)), CODES.astype(float))
    if kind != "numbers as objects":
        wanted = plain.predict(_table(CODES.astype(float)))
        fitted = MODELS[model].fit(_table(READ[kind]), CODES.astype(float))
        np.testing.assert_array_equal(fitted.predict(_table(READ[kind])), wanted)
    else:
        assert np.isfinite(plain.predict(_table(READ[kind]))).all()


@pytest.mark.parametrize("model", ["EBMRegressor", "WishartLinearRegression"])
def test_a_target_that_no_difference_can_be_had_of_is_refused(model):
    with pytest.raises(ValueError, match=r"Input y has values beyond .*: scale it"):
        MODELS[model].fit(_table(CODES.astype(float)), np.where(CODES, 1e308, -1e308))


def test_a_domain_without_ends_is_refused():
    domain = Domain((NumericFeature("age", 0, 1), NumericFeature("z", 0, 1)), (-np.inf, np.inf))
    with pytest.raises(ValueError, match="finite bounds"):
        MODELS["AdaSSPRegressor"].set_params(domain=domain).fit(_table(CODES * 1.0), CODES * 1.0)


def test_names_that_repeat_and_masked_arrays_are_refused():
    X = pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"])
    with pytest.raises(ValueError, match="two columns of X have the name 'a'"):
        check_columns(X)
    for array in (np.ma.masked_array(np.zeros((3, 2)), mask=True), np.zeros((3, 2)) + 1j):
        with pytest.raises(ValueError, match=re.compile("masked array|Complex")):
            check_columns(array)
    check_columns(np.zeros((3, 2)))
    check_columns([[1.0, 2.0]])
