"""The page says all: a fit in plain NumPy, written from it, makes the same of the same answers."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.privacy.curator_base import listening
from tests.methods.dp_ebm_plus import rederived
from tests.methods.dp_ebm_plus.stub import Events

FEATURES = (
    NumericFeature("even", 0, 1, missing=True),
    NumericFeature("signed", -3, 2),
    NumericFeature("positive", 0.05, 80),
    CategoricalFeature("kind", ("a", "b", "unused"), missing=True),
    CategoricalFeature("side", ("left", "right")),
    NumericFeature("same", 3, 3),
)
LABELS, RANGE = ("no", "yes"), (-2.0, 6.0)
ROWS, DELTA = 2000, 1e-6
CLOSE = 1e-6
"""Of the largest value of a function. A score is a whole number of 2^-24."""


@cache
def recorded(labels, epsilon):
    """Return the domain of a table, what the package fits to it, and all noisy answers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "even": rng.random(ROWS),
            "signed": rng.normal(size=ROWS),
            "positive": np.exp(rng.normal(size=ROWS)),
            "kind": rng.choice(["a", "b"], ROWS).astype(object),
            "side": rng.choice(["left", "right"], ROWS, p=[0.9, 0.1]),
            "same": 3.0,
        }
    )
    signal = np.sin(6 * X["even"]) + (X["positive"] > 1) + (X["kind"] == "b") + X["signed"] / 2
    skewed = signal + np.exp(rng.normal(0, 0.5, ROWS)) - 1
    y = np.array(LABELS)[(rng.logistic(size=ROWS) < 2 * signal - 1).astype(int)]
    X.loc[rng.random(ROWS) < 0.2, "even"] = np.nan
    X.loc[rng.random(ROWS) < 0.1, "kind"] = None
    domain = Domain(FEATURES, LABELS if labels else RANGE)
    heard, kind = Events(), DPEBMPlusClassifier if labels else DPEBMPlusRegressor
    with listening(heard):
        model = kind(epsilon, DELTA, domain=domain, random_state=1).fit(X, y if labels else skewed)
    answers = [event[1].value for event in heard.events if isinstance(event, tuple)]
    return domain, model, answers


def gap(labels, epsilon):
    """Return by how much both fits differ at most, over the largest value of a function.

    It is infinite if the reader asks for other numbers, or has other bins.
    """
    domain, model, answers = recorded(labels, epsilon)
    left = iter(answers)

    def ask(size):
        answer = next(left)
        if answer.shape != (size,):
            raise EOFError
        return answer.copy()

    try:
        functions, intercept = rederived.fit(domain, epsilon, DELTA, ask)
    except EOFError:
        return np.inf
    assert next(left, None) is None
    width, middle = (1.0, 0.0) if labels else (RANGE[1] - RANGE[0], sum(RANGE) / 2)
    gaps = [abs(middle + width * intercept - model.intercept_)]
    for k, function in enumerate(functions):
        same = (function.cuts, model.bins_[k].cuts), (function.counts, model.bin_counts_[k])
        if not all(a.shape == b.shape and np.allclose(a, b, 1e-9, 0) for a, b in same):
            return np.inf
        gaps.append(np.abs(width * function.f - model.shape_functions_[k]).max())
        gaps.append(np.abs(width * function.band - model.shape_noise_[k]).max())
    return max(gaps) / max(np.abs(values).max() for values in model.shape_functions_)


@pytest.mark.parametrize("labels", [True, False], ids=["labels", "numbers"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_reader_of_the_page_finds_the_same_functions(labels, epsilon):
    assert gap(labels, epsilon) < CLOSE
    _, model, answers = recorded(labels, epsilon)
    assert len(answers) == 1 + len(FEATURES) + rederived.EPOCHS * (1 if labels else 3)
    width = 1.0 if labels else RANGE[1] - RANGE[0]
    assert max(np.abs(values).max() for values in model.shape_functions_) > 0.05 * width


@pytest.mark.parametrize(
    ("labels", "name", "value"),
    [
        (True, "HISTOGRAMS", 0.101),
        (True, "SEEN", 0.06),
        (True, "OWN", 0.51),
        (True, "RISING", 1.51),
        (True, "EFFECTS", 1.05 * rederived.EFFECTS),
        (True, "UNEVEN", 1.05 * rederived.UNEVEN),
        (False, "OF_SIZES", 0.21),
        (False, "OF_LEVEL", 0.11),
        (False, "OFFSET", 0.41),
    ],
)
def test_with_another_constant_the_reader_finds_others(labels, name, value, monkeypatch):
    monkeypatch.setattr(rederived, name, value)
    assert gap(labels, 0.1) > CLOSE
