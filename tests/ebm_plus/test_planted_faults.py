"""Five faults that an audit of DP-EBM+ did not find, planted one at a time.

Each is refused, or found by a check here, which passes without it.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.ebm_plus.curator import ExactAnswers, PlusCurator
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.ebm_plus.queries import INTERCEPT, Residuals, Totals, totals_sensitivity
from dprepro.estimators.inputs import Rows
from dprepro.privacy.private import PrivateRowsError
from dprepro.privacy.release import BudgetError, GaussianUses, listening
from tests.ebm_plus.plus_table import DOMAIN, RANGE, table
from tests.ebm_plus.stub import Events, replay

ROWS = 200
EPOCHS = 4
BOTH = pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=["classification", "regression"])


def fit(loss):
    X, labels, targets = table(ROWS)
    if loss is LOGISTIC:
        return DPEBMPlusClassifier(n_epochs=EPOCHS, domain=DOMAIN).fit(X, labels)
    return DPEBMPlusRegressor(n_epochs=EPOCHS, domain=RANGE).fit(X, targets)


def every_number_has_noise_of_its_own(loss):
    """Return whether all noise of a fit, in units of its scale, is other than 0 and different."""
    X, labels, targets = table(ROWS)
    y, domain = (labels, DOMAIN) if loss is LOGISTIC else (targets, RANGE)
    exact = ExactAnswers(Rows(X, y.astype(float)), domain, loss)
    heard = Events()
    with listening(heard):
        fit(loss)
    noise = np.concatenate(
        [
            ((release.value - answer) / release.scale).ravel()
            for _, release, answer in replay(heard.events, exact)
        ]
    )
    assert noise.size > EPOCHS * 4
    return bool((noise != 0).all()) and np.unique(noise.round(9)).size == noise.size


@BOTH
def test_without_a_fault_every_number_has_noise_of_its_own(loss):
    assert every_number_has_noise_of_its_own(loss)


@BOTH
def test_fault_1_a_bin_without_noise_is_found(loss, monkeypatch):
    draw = GaussianUses._draw

    def silent(self, query, shape):
        factor, noise = draw(self, query, shape)
        return factor, noise * (np.arange(shape[-1]) != 1)

    monkeypatch.setattr(GaussianUses, "_draw", silent)
    assert not every_number_has_noise_of_its_own(loss)


@BOTH
def test_fault_2_a_forgotten_root_of_the_number_of_uses_is_refused(loss, monkeypatch):
    enter = PlusCurator._gaussian

    def forgetful(self, *, noise_multiplier, uses, **more):
        return enter(self, noise_multiplier=noise_multiplier / math.sqrt(uses), uses=uses, **more)

    monkeypatch.setattr(PlusCurator, "_gaussian", forgetful)
    with pytest.raises(BudgetError, match="root of the uses"):
        fit(loss)


@BOTH
def test_fault_3_the_same_noise_in_all_epochs_is_found(loss, monkeypatch):
    draw, drawn = GaussianUses._draw, {}

    def repeated(self, query, shape):
        factor, noise = draw(self, query, shape)
        place = type(query), getattr(query, "feature", None), shape
        return factor, drawn.setdefault(place, noise)

    monkeypatch.setattr(GaussianUses, "_draw", repeated)
    assert not every_number_has_noise_of_its_own(loss)


@BOTH
@pytest.mark.parametrize(
    "read", [lambda exact: exact.open()._counts[0], np.asarray, len, lambda exact: exact[0]]
)
def test_fault_4_shares_from_exact_counts_are_refused(read, loss, monkeypatch):
    answer = PlusCurator.answer

    def ask_by_exact_counts(self, query):
        if isinstance(query, Residuals):
            query = replace(query, share=query.share * np.max(read(self._exact)) / ROWS)
        return answer(self, query)

    monkeypatch.setattr(PlusCurator, "answer", ask_by_exact_counts)
    with pytest.raises(PrivateRowsError):
        fit(loss)


def part_over_charged(query, loss):
    """Return the norm of what a row whose target is out of range adds, over what is charged."""
    X, *_ = table(ROWS)
    rows = Rows(X.iloc[:1], np.array([1e4]))
    answer = ExactAnswers(rows, DOMAIN if loss is LOGISTIC else RANGE, loss).answer(query)
    return np.linalg.norm(answer) / query.charged


def totals(loss):
    return Totals(totals_sensitivity(loss.powers), 1.0, loss.powers)


@BOTH
def test_fault_5_labels_not_clipped_are_found(loss, monkeypatch):
    assert part_over_charged(totals(loss), loss) == pytest.approx(1.0)
    monkeypatch.setattr(type(loss), "targets", lambda _, y, domain: y.astype(np.float32))
    assert part_over_charged(totals(loss), loss) > 1000


@BOTH
def test_fault_5_labels_not_clipped_do_no_harm_to_residuals(loss, monkeypatch):
    """The kernel clips residuals to what is charged, whatever the labels are."""
    monkeypatch.setattr(type(loss), "targets", lambda _, y, domain: y.astype(np.float32))
    query = Residuals(loss.part_norm(0.5), 1.0, INTERCEPT, 0.5, loss)
    assert part_over_charged(query, loss) == pytest.approx(1.0)
