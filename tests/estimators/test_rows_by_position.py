"""X and y are rows by position, whatever pandas labels them with."""

from __future__ import annotations

import itertools
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.inputs import read_training_rows
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dpboost.estimator import DPBoostClassifier, DPBoostRegressor
from dprepro.methods.lazybb.estimator import LazyBBClassifier
from dprepro.methods.logistic.estimator import DPLogisticRegression
from dprepro.rows.readers import TableError

CITIES = ("a", "b", "c")
FEATURES = (NumericFeature("x", 0, 1), CategoricalFeature("c", CITIES))
CLASSES = Domain(FEATURES, ("no", "yes"))
NUMBERS = Domain(FEATURES, (0.0, 1.0))
N = 60


def rows(n: int = N) -> tuple[pd.DataFrame, pd.Series]:
    """Return rows whose target follows from the features, so that another pairing shows."""
    rng = np.random.default_rng(1)
    x = rng.random(n)
    codes = rng.integers(0, 3, n)
    X = pd.DataFrame({"x": x, "c": pd.Categorical.from_codes(codes, categories=list(CITIES))})
    return X, pd.Series((x + codes > 1.4).astype(int), name="y")


def indexes(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {
        "shuffled": rng.permutation(n), "repeated": np.arange(n) % 3, "gaps": np.arange(n) * 7,
        "reversed": np.arange(n)[::-1], "texts": [f"r{k}" for k in rng.permutation(n)],
        "levels": pd.MultiIndex.from_arrays([np.arange(n) % 2, rng.permutation(n)]),
        "missing": [np.nan] * n,
    }  # fmt: skip


ONE_HOT = ENCODINGS["symmetric"](CLASSES)
BOOLEAN = ENCODINGS["boolean"](CLASSES)
# With less budget, trees of so few rows say the same of any.
TREES: Any = {
    "epsilon": 1e4,
    "n_trees": 3,
    "trees_per_ensemble": 1,
    "max_depth": 2,
    "random_state": 3,
}
MODELS: dict[str, Any] = {
    "dp-ebm": lambda: DPEBMClassifier(2, domain=CLASSES, n_epochs=5, random_state=3),
    "dp-ebm regression": lambda: DPEBMRegressor(2, domain=NUMBERS, n_epochs=5, random_state=3),
    "dp-ebm observed": lambda: DPEBMClassifier(2, n_epochs=5, random_state=3),
    "ebm": lambda: EBMClassifier(n_epochs=5, outer_bags=1, random_state=3),
    "dp-ebm+": lambda: DPEBMPlusClassifier(2, domain=CLASSES, n_epochs=5, random_state=3),
    "dp-ebm+ regression": lambda: DPEBMPlusRegressor(2, domain=NUMBERS, n_epochs=5, random_state=3),
    "dpboost": lambda: DPBoostClassifier(domain=CLASSES, **TREES),
    "dpboost regression": lambda: DPBoostRegressor(domain=NUMBERS, variant="sound", **TREES),
    "lazybb": lambda: LazyBBClassifier(epsilon=1e4, domain=BOOLEAN.domain, random_state=3),
    "logistic": lambda: DPLogisticRegression(epsilon=2, data_norm=2, random_state=3),
}


def as_the_model_takes_it(name: str, X: pd.DataFrame) -> Any:
    if name == "lazybb":
        encoded = BOOLEAN.transform(X)
        return pd.DataFrame(encoded) if not isinstance(encoded, pd.DataFrame) else encoded
    if name == "logistic":
        return pd.DataFrame(ONE_HOT.transform(X))
    return X


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("index", indexes(1))
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_pairs_rows_by_position(name: str, index: str) -> None:
    X, y = rows()
    X = as_the_model_takes_it(name, X)
    wanted = outputs(MODELS[name]().fit(X, y), X)
    labelled = indexes(N)[index]
    for features, targets in [
        (X.set_axis(labelled), y),
        (X, y.set_axis(labelled)),
        (X.set_axis(labelled), y.set_axis(indexes(N)["reversed"])),
    ]:
        np.testing.assert_array_equal(outputs(MODELS[name]().fit(features, targets), X), wanted)
    moved = y.set_axis(X.index[::-1]).sort_index()
    assert not np.array_equal(outputs(MODELS[name]().fit(X, moved), X), wanted)


def outputs(model: Any, X: Any) -> np.ndarray:
    if isinstance(model, LazyBBClassifier):
        return np.asarray(model.decision_function(X))
    return np.asarray(
        model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("name", MODELS)
def test_lengths_that_differ_are_refused(name: str, more: int) -> None:
    X, y = rows()
    X = as_the_model_takes_it(name, X)
    longer = pd.concat([y, y]).iloc[: N + more]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MODELS[name]().fit(X, longer)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    labels=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    known=st.booleans(),
    named=st.booleans(),
)
def test_a_partition_of_dask_pairs_rows_by_position(
    labels: list[int], sizes: list[int], known: bool, named: bool
) -> None:
    X, y = rows(12)
    y = y.map(["no", "yes"].__getitem__).astype(object)
    stops = sorted({0, 12, *np.minimum(np.cumsum(sizes), 12).tolist()})
    given, targets = X.set_axis(labels), y.set_axis(list(range(12)))
    if named:
        given = given.assign(y=y.to_numpy())
    whole = [parted(given, stops), parted(targets, stops, known)]
    private = read_training_rows(
        DPEBMClassifier(domain=CLASSES), whole[0], "y" if named else whole[1], CLASSES, "binary",
        in_chunks=True,
    )  # fmt: skip
    collection: Any = private._Private__value  # type: ignore[attr-defined]
    found = [
        collection.reading(*dask.compute(a, b, scheduler="synchronous"))
        for a, b in collection.partitions
    ]
    frame = pd.concat([part.frame.astype(object) for part in found])
    assert frame.to_numpy().tolist() == X.astype(object).to_numpy().tolist()
    assert np.concatenate([part.targets for part in found]).tolist() == (y == "yes").tolist()


def parted(whole: Any, stops: list[int], known: bool = False) -> Any:
    """Return a Dask collection of these pieces, which says where they begin only if `known`."""
    pieces = [whole.iloc[a:b] for a, b in itertools.pairwise(stops)]
    divisions = [*stops[:-1], stops[-1] - 1] if known else None
    return dd.from_map(
        lambda k: pieces[k], range(len(pieces)), meta=whole.iloc[:0], divisions=divisions
    )


def test_partitions_of_other_lengths_are_refused() -> None:
    X, y = rows(12)
    y = y.map(["no", "yes"].__getitem__).astype(object)
    private = read_training_rows(
        DPEBMClassifier(domain=CLASSES), parted(X, [0, 5, 12]), parted(y, [0, 6, 12]),
        CLASSES, "binary", in_chunks=True,
    )  # fmt: skip
    collection: Any = private._Private__value  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        collection.reading(*dask.compute(*collection.partitions[0], scheduler="synchronous"))
    with pytest.raises(TableError, match="the same partitions"):
        read_training_rows(
            DPEBMClassifier(domain=CLASSES), parted(X, [0, 5, 12]),
            parted(y, [0, 12]), CLASSES, "binary", in_chunks=True,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "classes"),
    [([0, 1], [0, 1]), ([False, True], [False, True]), (["no", "yes"], ["no", "yes"])],
)
def test_labels_stored_as_objects_are_what_they_are(labels: list[Any], classes: list[Any]) -> None:
    """Whole numbers as objects were refused, although the message asked for numbers."""
    X = pd.DataFrame({"a": np.arange(10.0)})
    domain = Domain((NumericFeature("a", 0, 9),), ("no", "yes"))
    model = DPEBMClassifier(epsilon=1, delta=1e-3, domain=domain, random_state=1, n_epochs=2)
    assert model.fit(X, pd.Series(labels * 5, dtype=object)).classes_.tolist() == classes
