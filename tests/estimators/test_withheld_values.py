"""What a private method refuses it names by feature and rule: its message may be published."""

import re

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dpboost.estimator import DPBoostClassifier, DPBoostRegressor

FEATURES = (NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b")))
ROWS = 37
CLASSIFIERS = (DPEBMClassifier, DPBoostClassifier)
REGRESSORS = (DPEBMRegressor, DPBoostRegressor)


def spoilt(place, value):
    """Return rows and labels with the value in row 23; "y" is the place of labels."""
    X = pd.DataFrame({"x": np.linspace(0, 1, ROWS), "c": ["a", "b"] * (ROWS // 2) + ["a"]})
    y = np.arange(ROWS) % 2
    if place == "y":
        y = y.astype(object if isinstance(value, str) else float)
        y[23] = value
    else:
        X[place] = X[place].astype(object) if isinstance(value, str) else X[place]
        X.loc[23, place] = value
    return X, y


def message_of(named, estimator, target, X, y):
    """Return what a refused fit says; no other error may show above it in a traceback."""
    with pytest.raises(ValueError, match=re.escape(named)) as caught:
        estimator(domain=Domain(FEATURES[: np.shape(X)[-1]], target)).fit(X, y)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


@pytest.mark.parametrize(
    ("estimator", "target"),
    [*((c, ("0", "1")) for c in CLASSIFIERS), *((r, (0.0, 1.0)) for r in REGRESSORS)],
)
@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("x", np.nan, "feature 'x' has missing values (NaN) and its domain allows none"),
        ("c", None, "feature 'c' has missing values (NaN) and its domain allows none"),
        (
            "c",
            "secret",
            "feature 'c' holds a category that is not in its domain; allowed: 'a', 'b'",
        ),
        ("x", np.inf, "Input x contains infinity"),
        ("y", "secret", "y must hold "),
        ("y", np.nan, "Input y contains NaN"),
    ],
)
def test_a_refusal_shows_neither_values_nor_rows_nor_counts(estimator, target, place, value, named):
    message = message_of(named, estimator, target, *spoilt(place, value))
    assert "X[" not in message  # who came by a card has no X
    for private in ("secret", "23", "37", " 1 "):
        assert private not in message.replace("codes 0 and 1 as", "")


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_a_label_outside_the_domain_is_not_shown(estimator):
    message = message_of("y must hold the domain's", estimator, ("0", "1"), *spoilt("y", 987.25))
    assert "987" not in message


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize(
    ("X", "y", "named"),
    [
        ([["0.5"], ["secret"], ["0.1"]], [0, 1, 0], "X: an array must hold numbers"),
        ([[0.5], [987j], [0.1]], [0, 1, 0], "X: Complex data not supported"),
        ([[0.5], [0.7], [0.1]], [0, 987j, 0], "y: Complex data not supported"),
        ([[0.5], [0.7], [0.1]], [[0, 987]] * 3, "y: should be a 1d array"),
        ([987.5, 0.7, 0.1], [0, 1, 0], "X: Expected 2D array"),
    ],
)
def test_arrays_of_other_types_and_shapes_are_refused_without_their_values(estimator, X, y, named):
    message = message_of(named, estimator, ("0", "1"), np.array(X), np.array(y))
    for private in ("secret", "987", "3"):
        assert private not in message


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_neither_rows_nor_labels_are_counted_aloud(estimator):
    X, y = spoilt("x", 0.5)
    for rows, labels, named in (
        (X, y[:-1], "X and y have inconsistent numbers of samples"),
        (X[[]], y, "X has no columns"),
    ):
        message = message_of(named, estimator, ("0", "1"), rows, labels)
        assert "36" not in message
        assert "37" not in message
