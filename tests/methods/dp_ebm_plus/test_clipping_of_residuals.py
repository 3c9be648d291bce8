"""A row never adds more to an answer of DP-EBM+ than the noise in it is scaled by.

The bound of an epoch follows from releases, and residuals exceed it: those of labels that surprise,
of rows whose code is long, and for regression of rows whose score has moved since the epoch began.
Only the clip keeps a row's part at what is charged.
"""

import math
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
from dprepro.methods.dp_ebm_plus.kernel import from_units, residual_sums, to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, CodedResiduals, Residuals
from dprepro.methods.dp_ebm_plus.strategy import coded_sums
from dprepro.privacy.curator_base import listening
from tests.methods.dp_ebm_plus.stub import Events, replay

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
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 50.0])
def test_no_row_adds_more_than_is_charged_for(estimator, target, epsilon):
    """At 0.5 rows are few: then regression asks about the intercept, and about all features."""
    parts, charged, unclipped, bounds = listen(estimator, epsilon, target)
    of_labels = estimator is DPEBMPlusClassifier
    assert parts.size == 4 * 4 * (1 if of_labels else 2 if epsilon == 0.5 else 9)
    assert (parts <= charged * (1 + 1e-12)).all()
    # The test is one of the clip: residuals are beyond the bound, and parts as large as can be.
    beyond = unclipped > 1.05 * bounds
    assert beyond.sum() >= (6 if of_labels or epsilon == 0.5 else 10)
    assert (parts > 0.99 * bounds)[beyond].all()
    assert (parts / charged).max() > 0.999


def unclipped(scores, targets, last, change, codes, n_bins, bound, logistic):
    return residual_sums(scores, targets, last, change, codes, n_bins, 2**24, logistic)


def unlimited(scores, targets, codes_of, query, *more):
    return coded_sums(scores, targets, codes_of, replace(query, charged=1e6, bound=1e6), *more)


@CASES
def test_without_the_clip_a_row_would_add_more(estimator, target, monkeypatch):
    monkeypatch.setattr(curator, "residual_sums", unclipped)
    monkeypatch.setattr(curator, "coded_sums", unlimited)
    parts, charged, *_ = listen(estimator, 50.0, target)
    assert (parts / charged).max() > 1.1


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("bound", [0.3, 0.5, 0.52, 0.75])
def test_residuals_beyond_the_bound_are_summed_as_the_bound(bound, logistic):
    """As within an epoch: the change of a function takes rows past the bound."""
    scores = np.zeros(64, np.int32)
    last = (np.arange(64) % 2).astype(np.uint8)
    targets = to_units((np.arange(64) < 32) - (0.0 if logistic else 0.5))
    change = to_units([3.0, -3.0])
    codes = np.arange(64, dtype=np.uint8)
    cut = math.floor(bound * 2**24)
    sums = residual_sums(scores, targets, last, change, codes, 64, cut, logistic)
    scores = from_units(scores)
    residual = from_units(targets) - (expit(scores) if logistic else scores.clip(-0.5, 0.5))
    beyond = np.abs(residual) > bound
    assert beyond.sum() >= 32
    np.testing.assert_array_equal(sums[0, beyond], (np.sign(residual) * cut)[beyond])
    loss = LOGISTIC if logistic else SQUARED
    charged = loss.part_norm(bound)
    parts = np.linalg.norm(from_units(sums), axis=0)
    assert parts.max() <= charged
    assert parts[beyond].min() == pytest.approx(charged, rel=1e-6)
