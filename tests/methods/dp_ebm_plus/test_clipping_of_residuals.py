"""A row never adds more to an answer of DP-EBM+ than the noise in it is scaled by.

The bound of an epoch follows from releases, and residuals exceed it: those of labels that surprise,
of rows whose code is long, and for regression of rows whose score has moved since the epoch began.
Only the clip keeps a row's part at what is charged.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import curator
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import from_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, CodedResiduals, Residuals, Start
from dprepro.methods.dp_ebm_plus.sums import coded_sums
from dprepro.privacy.curator_base import listening
from tests.methods.dp_ebm_plus.stub import Events, exact_answers, replay

FEATURES = tuple(CategoricalFeature(f"x{k}", ("a", "b")) for k in range(8))
"""Copies of one another: each moves as far as all of them should, in the first epoch."""

ROWS = 400


def contradicted(rows=ROWS):
    """Return features that nearly decide the target, and ten rows that contradict them."""
    codes = np.arange(rows) % 2
    codes[:10] = 0
    labels = codes.copy()
    labels[:10] = 1
    X = pd.DataFrame({f.name: pd.Categorical.from_codes(codes, ["a", "b"]) for f in FEATURES})
    return X, labels


def length_of_code(query, row):
    """Return the norm of the vector that a residual of a single row is multiplied by."""
    if isinstance(query, Residuals):
        return 1.0
    numbers = []
    for code in query.codes:
        its_bin = 0 if code.feature == INTERCEPT else row._columns.codes[code.feature][0]
        bins = np.eye(code.n_bins) if code.mix is None else code.mix / 256
        numbers.append(code.weights * (bins[:, its_bin] - code.centre / 256))
    return np.linalg.norm(np.concatenate(numbers))


def listen(estimator, epsilon, target, seed=0):
    """Return, for some rows and every query of residuals: a row's part, what is charged, |r u|, c.

    u is a row's code, or 1 in a query for one function.
    """
    X, labels = contradicted()
    y = labels if estimator is DPEBMPlusClassifier else np.where(labels, 3.0, -1.0)
    domain, loss = (
        Domain(FEATURES, target),
        LOGISTIC if estimator is DPEBMPlusClassifier else SQUARED,
    )
    heard = Events()
    with listening(heard):
        estimator(epsilon, n_epochs=4, domain=domain, random_state=seed).fit(X, y)
    watched = (0, 5, 200, 201)
    rows = [ExactAnswers.of(Rows(X.iloc[[i]], y[[i]].astype(float)), domain, loss) for i in watched]
    found = []
    for query, _, *parts in replay(heard.events, *rows):
        if isinstance(query, Residuals | CodedResiduals):
            for row, part in zip(rows, parts, strict=True):
                score = float(from_units(row._columns.scores[0]))
                guess = expit(score) if loss is LOGISTIC else min(max(score, -0.5), 0.5)
                residual = abs(float(from_units(row._columns.targets[0])) - guess)
                unclipped = residual * length_of_code(query, row)
                found.append((np.linalg.norm(part), query.charged, unclipped, query.bound))
    return np.array(found).T


CASES = pytest.mark.parametrize(
    ("estimator", "target"),
    [(DPEBMPlusClassifier, ("0", "1")), (DPEBMPlusRegressor, (-1.0, 3.0))],
    ids=["classification", "regression"],
)


@CASES
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_no_row_adds_more_than_is_charged_for(estimator, target, epsilon):
    parts, charged, unclipped, bounds = listen(estimator, epsilon, target)
    of_labels = estimator is DPEBMPlusClassifier
    assert parts.size == 4 * 4 * (1 if of_labels else 2)
    assert (parts <= charged * (1 + 1e-12)).all()
    # The test is one of the clip: residuals are beyond the bound, and parts as large as can be.
    beyond = unclipped > 1.05 * bounds
    assert beyond.sum() >= 4
    assert (parts > 0.99 * bounds)[beyond].all()
    assert (parts / charged).max() > 0.999


@CASES
def test_without_the_clip_a_row_would_add_more(estimator, target, monkeypatch):
    def unlimited(*rows):
        *first, query, changes, kind, weights = rows
        return coded_sums(*first, replace(query, charged=1e6, bound=1e6), changes, kind, weights)

    monkeypatch.setattr(curator, "coded_sums", unlimited)
    parts, charged, *_ = listen(estimator, 0.5, target)
    assert (parts / charged).max() > 1.1


@pytest.mark.parametrize("bound", [0.1, 0.3, 0.7, 2**-4.5, 0.5])
def test_bounds_are_rounded_down_to_the_kernels_precision(bound):
    exact = exact_answers(np.zeros((1, 1), int), np.array([0.5]), SQUARED)
    exact.follow(Start(-(2**24)))
    for feature in (INTERCEPT, 0):
        found = exact.answer(Residuals(bound, 1.0, feature, bound)).value[0]
        assert bound * (1 - 1e-6) < found <= bound
