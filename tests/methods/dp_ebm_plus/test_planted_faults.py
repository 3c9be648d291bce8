"""Five faults that an audit of DP-EBM+ did not find, planted one at a time.

Each is refused, or found by a check here, which passes without it.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers, PlusCurator
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from dprepro.methods.dp_ebm_plus.queries import (
    CodedHistogram,
    CodedResiduals,
    Residuals,
    Totals,
    totals_sensitivity,
)
from dprepro.privacy.curator_base import GaussianMechanism, listening
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.private_rows import PrivateRowsError
from dprepro.privacy.query import BudgetError
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, RANGE, table
from tests.methods.dp_ebm_plus.stub import BOTH, Events, of_all_rows, replay

ROWS = 200
EPOCHS = 4


def fit(loss):
    X, labels, targets = table(ROWS)
    if loss is LOGISTIC:
        return DPEBMPlusClassifier(n_epochs=EPOCHS, domain=DOMAIN).fit(X, labels)
    return DPEBMPlusRegressor(n_epochs=EPOCHS, domain=RANGE).fit(X, targets)


def noise_of_a_fit(loss):
    """Return the noise of each answer over its standard deviation, one after another."""
    X, labels, targets = table(ROWS)
    y, domain = (labels, DOMAIN) if loss is LOGISTIC else (targets, RANGE)
    exact = ExactAnswers.of(Rows(X, y.astype(float)), domain, loss)
    heard = Events()
    with listening(heard):
        fit(loss)
    return [
        (query, ((release.value - answer) / release.scale).ravel())
        for query, release, answer in replay(heard.events, exact)
    ]


def noise_of_sums(fit):
    """Return the noise of the sums of a fit, in one array."""
    sums = Residuals | CodedResiduals
    return np.concatenate([noise for query, noise in fit if isinstance(query, sums)])


def is_repeated(noise):
    """Return whether more numbers than two equal one before, by chance less than once in 10^8."""
    return np.unique(noise.round(9)).size < noise.size - 2


def every_number_has_noise_of_its_own(loss):
    """Return whether noise in sums is other than 0 and not repeated, and counts have some at times.

    Noise in a count is a whole number, and 0 in one fit of several.
    """
    fits = [noise_of_a_fit(loss) for _ in range(12)]
    counts = np.array(
        [np.concatenate([n for q, n in fit if type(q) is CodedHistogram]) for fit in fits]
    )
    sums = noise_of_sums(fits[0])
    assert sums.size > EPOCHS * 4
    return bool(counts.any(axis=0).all() and sums.all()) and not is_repeated(sums)


@BOTH
def test_without_a_fault_every_number_has_noise_of_its_own(loss):
    assert every_number_has_noise_of_its_own(loss)


@BOTH
def test_fault_1_a_bin_without_noise_is_found(loss, monkeypatch):
    add = NoiseSource.add_gaussian

    def silent(self, exact, scale, unit=1.0):
        at = np.arange(exact.shape[-1]) == 1
        return np.where(at, exact * unit, add(self, exact, scale, unit))

    monkeypatch.setattr(NoiseSource, "add_gaussian", silent)
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
    answer, drawn = GaussianMechanism.answer, {}

    def repeated(self, exact, query, unit=1.0):
        release = answer(self, exact, query, unit)
        place = type(query), getattr(query, "feature", None), exact.shape
        noise = drawn.setdefault(place, (release.value - exact * unit) / release.scale)
        return replace(release, value=exact * unit + release.scale * noise)

    monkeypatch.setattr(GaussianMechanism, "answer", repeated)
    assert is_repeated(noise_of_sums(noise_of_a_fit(loss)))


@BOTH
@pytest.mark.parametrize(
    "read", [lambda exact: exact.open()._counts[0], np.asarray, len, lambda exact: exact[0]]
)
def test_fault_4_shares_from_exact_counts_are_refused(read, loss, monkeypatch):
    answer = PlusCurator.answer

    def ask_by_exact_counts(self, query):
        if isinstance(query, Residuals | CodedResiduals):
            query = replace(query, share=query.share * np.max(read(self._exact)) / ROWS)
        return answer(self, query)

    monkeypatch.setattr(PlusCurator, "answer", ask_by_exact_counts)
    with pytest.raises(PrivateRowsError):
        fit(loss)


def part_over_charged(query, loss):
    """Return the norm of what a row whose target is out of range adds, over what is charged."""
    X, *_ = table(ROWS)
    rows = Rows(X.iloc[:1], np.array([1e4]))
    answer = ExactAnswers.of(rows, DOMAIN if loss is LOGISTIC else RANGE, loss).answer(query)
    return np.linalg.norm(answer.value) / query.charged


def totals(loss):
    return Totals(totals_sensitivity(loss.powers).stated, 1.0, loss.powers)


@BOTH
def test_fault_5_labels_not_clipped_are_found(loss, monkeypatch):
    assert part_over_charged(totals(loss), loss) == pytest.approx(1.0)
    monkeypatch.setattr(type(loss), "targets", lambda _, y, domain: np.full(y.size, 2**29))
    assert part_over_charged(totals(loss), loss) > 20


@BOTH
def test_fault_5_labels_not_clipped_do_no_harm_to_residuals(loss, monkeypatch):
    """The kernel clips residuals to what is charged, whatever the labels are."""
    far = np.int32(2**29)
    monkeypatch.setattr(type(loss), "targets", lambda _, y, domain: np.full(y.size, far))
    assert part_over_charged(of_all_rows(loss, 0.5), loss) == pytest.approx(1.0)
