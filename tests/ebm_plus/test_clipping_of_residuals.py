"""A row never adds more to an answer of DP-EBM+ than the noise in it is scaled by.

The bound of an epoch follows from the functions when it begins. They move within it, and residuals
move past the bound: only the clip keeps a row's part at what is charged.
"""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.ebm_plus import booster as batch_boosting
from dprepro.ebm_plus import estimator as dp_ebm_plus
from dprepro.ebm_plus.booster import BatchBooster, answer_sensitivity
from dprepro.ebm_plus.kernel import residual_sums

FEATURES = tuple(CategoricalFeature(f"x{k}", ("a", "b")) for k in range(8))
"""Copies of one another: each moves as far as all of them should, in the first epoch."""

ROWS = 400


def contradicted(rows=ROWS):
    """Return features that nearly decide labels and numbers, and ten rows that contradict them."""
    codes = np.arange(rows) % 2
    codes[:10] = 0
    labels = codes.copy()
    labels[:10] = 1
    X = pd.DataFrame({f.name: pd.Categorical.from_codes(codes, ["a", "b"]) for f in FEATURES})
    return X, labels


def without(learner, function, row):
    """Return the learner and the function as they were, had the row (None: none) not been there."""
    learner, asked = copy.copy(learner), copy.copy(function)
    kept = np.arange(learner.targets.size) != (-1 if row is None else row)
    learner.targets, learner._scores = learner.targets[kept], learner._scores[kept]
    learner._pending = (learner._pending[0][kept], learner._pending[1])
    asked.codes = function.codes[kept]
    if function is learner.intercept:
        learner.intercept = asked
    return learner, asked


class Listening(BatchBooster):
    """Finds what some rows add to every answer, and what the noise in it is scaled by."""

    heard: list

    def _ask(self, function, share, noise):
        silent = np.zeros_like(noise)
        whole, deviation = BatchBooster._ask(*without(self, function, None), share, silent)
        charged = deviation / self._deviation * np.sqrt(share)
        for row in (0, 5, 200, 201):
            less, _ = BatchBooster._ask(*without(self, function, row), share, silent)
            updated = self._scores[row] + self._pending[1][self._pending[0][row]]
            guess = expit(float(updated)) if self.logistic else float(updated)
            residual = abs(float(self.targets[row]) - guess)
            self.heard.append((np.linalg.norm(whole - less), charged, residual, self.bound))
        return super()._ask(function, share, noise)


def listen(estimator, epsilon, target, monkeypatch, seed=0):
    heard = []
    monkeypatch.setattr(Listening, "heard", heard, raising=False)
    monkeypatch.setattr(dp_ebm_plus, "BatchBooster", Listening)
    X, labels = contradicted()
    y = labels if estimator is DPEBMPlusClassifier else np.where(labels, 3.0, -1.0)
    model = estimator(epsilon, n_epochs=4, domain=Domain(FEATURES, target), random_state=seed)
    model.fit(X, y)
    return np.array(heard).T


CASES = pytest.mark.parametrize(
    ("estimator", "target"),
    [(DPEBMPlusClassifier, ("0", "1")), (DPEBMPlusRegressor, (-1.0, 3.0))],
    ids=["labels", "numbers"],
)


@CASES
@pytest.mark.parametrize("epsilon", [2.0, 50.0])
def test_no_row_adds_more_than_is_charged_for(estimator, target, epsilon, monkeypatch):
    parts, charged, residuals, bounds = listen(estimator, epsilon, target, monkeypatch)
    assert parts.size == 4 * 9 * 4
    assert (parts <= charged * (1 + 1e-12)).all()
    # The test is one of the clip: residuals are beyond the bound, and parts as large as can be.
    beyond = residuals > 1.05 * bounds
    assert beyond.sum() >= 10
    assert (parts > 0.99 * bounds)[beyond].all()
    assert (parts / charged).max() > 0.999


def unclipped(scores, targets, last, change, codes, n_bins, bound, logistic):
    return residual_sums(scores, targets, last, change, codes, n_bins, np.float32(1), logistic)


@CASES
def test_without_the_clip_a_row_would_add_more(estimator, target, monkeypatch):
    monkeypatch.setattr(batch_boosting, "residual_sums", unclipped)
    parts, charged, *_ = listen(estimator, 50.0, target, monkeypatch)
    assert (parts / charged).max() > 1.1


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("bound", [0.3, 0.5, 0.52, 0.75])
def test_residuals_beyond_the_bound_are_summed_as_the_bound(bound, logistic):
    """As within an epoch: the change of a function takes rows past the bound."""
    scores = np.zeros(64, np.float32)
    last = (np.arange(64) % 2).astype(np.uint8)
    targets = np.where(np.arange(64) < 32, 1.0, 0.0).astype(np.float32)
    change = np.array([3.0, -3.0], np.float32)
    codes = np.arange(64, dtype=np.uint8)
    sums = residual_sums(scores, targets, last, change, codes, 64, np.float32(bound), logistic)
    residual = targets - (expit(scores) if logistic else scores)
    beyond = np.abs(residual) > bound
    assert beyond.sum() >= 32
    cut = np.float32(bound)
    np.testing.assert_array_equal(
        sums[0, beyond], (np.sign(residual) * np.trunc(cut * 2.0**24) / 2.0**24)[beyond]
    )
    paid = answer_sensitivity(bound, logistic=logistic)
    parts = np.linalg.norm(sums, axis=0)
    assert parts.max() <= answer_sensitivity(float(cut), logistic=logistic)
    assert parts[beyond].min() == pytest.approx(paid, rel=1e-6)
