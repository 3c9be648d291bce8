"""Five faults that an audit of DP-EBM did not find, and one more, planted one at a time.

Each is refused, does no harm, or is found by a check of `test_curator`, which passes without it.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.methods.dp_ebm import curator as curator_module
from dprepro.methods.dp_ebm import estimator
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.methods.dp_ebm.losses import LogisticLoss
from dprepro.privacy.composition import TWO_PHASE_COMPOSITIONS, calibrate_two_phases
from dprepro.privacy.private_rows import PrivateRowsError
from dprepro.privacy.query import BudgetError
from dprepro.privacy.sampling import ExactSampler
from dprepro.privacy.sensitivity import ADD_REMOVE
from tests.methods.dp_ebm.test_curator import (
    CUTS,
    DOMAIN,
    FAR,
    every_number_has_noise_of_its_own,
    noise_of_counts,
    noise_of_steps,
    rows,
    worst_shift,
)

FOR_MANY_LEAVES = np.array([[2, 255, 255, 255], [1, 255, 255, 255]] * 3, np.uint8)


def plant_in_noise(monkeypatch, change):
    """Let every answer draw its noise and change it; of normal numbers every word."""
    gaussian, normals = ExactSampler.gaussian, ExactSampler.normals

    def changed_words(self, shape):
        words = normals(self, shape)
        return np.stack([change(words[..., i]) for i in range(words.shape[-1])], axis=-1)

    monkeypatch.setattr(ExactSampler, "gaussian", lambda *given: change(gaussian(*given)))
    monkeypatch.setattr(ExactSampler, "normals", changed_words)


def test_fault_1_a_bin_without_noise_is_found(monkeypatch):
    plant_in_noise(monkeypatch, lambda noise: noise * (np.arange(noise.shape[-1]) != 1))
    assert not every_number_has_noise_of_its_own(noise_of_counts())
    assert not every_number_has_noise_of_its_own(noise_of_steps())


@pytest.mark.parametrize("composition", TWO_PHASE_COMPOSITIONS)
def test_fault_2_a_forgotten_root_of_the_number_of_uses_is_refused(composition, monkeypatch):
    def forgetful(*given, boosting_queries, **more):
        noise = calibrate_two_phases(*given, boosting_queries=boosting_queries, **more)
        return replace(noise, boosting=noise.boosting / math.sqrt(boosting_queries))

    monkeypatch.setattr(estimator, "calibrate_two_phases", forgetful)
    frame, labels = rows()
    with pytest.raises(BudgetError, match="root of the uses"):
        DPEBMClassifier(composition=composition, domain=DOMAIN).fit(frame, labels)


def test_fault_3_the_same_noise_in_all_epochs_is_found(monkeypatch):
    plant_in_noise(monkeypatch, lambda noise: np.broadcast_to(noise[:1], noise.shape).copy())
    assert not every_number_has_noise_of_its_own(noise_of_steps())


class BinsByExactRows(DPEBMClassifier):
    """Merges cells into bins of a share of the exact number of rows."""

    def _number_of_rows(self, curator, histograms):
        return curator._exact.open().targets.size


class BinsByTheNumberOfRows(DPEBMClassifier):
    """The same, by asking for it."""

    def _number_of_rows(self, curator, histograms):
        return curator.number_of_rows()


class MeansByExactCounts(DPEBMClassifier):
    """Divides leaf sums by exact counts."""

    def _boost(self, curator, loss):
        self.bin_counts_ = curator._exact.open().counts
        super()._boost(curator, loss)


class ReadsAnAttribute(DPEBMClassifier):
    """Looks for counts in the attributes of the curator."""

    def _boost(self, curator, loss):
        self.bin_counts_ = [np.asarray(kept) for kept in vars(curator).values()]
        super()._boost(curator, loss)


@pytest.mark.parametrize(
    "cheat", [BinsByExactRows, BinsByTheNumberOfRows, MeansByExactCounts, ReadsAnAttribute]
)
def test_fault_4_shares_from_exact_counts_are_refused(cheat):
    frame, labels = rows()
    settings = {"n_epochs": 2, "domain": DOMAIN, "adjacency": ADD_REMOVE, "random_state": 0}
    assert DPEBMClassifier(**settings).fit(frame, labels).ledger_.entries
    with pytest.raises(PrivateRowsError):
        cheat(**settings).fit(frame, labels)


@pytest.mark.parametrize("cuts", [CUTS, FOR_MANY_LEAVES], ids=["3 leaves", "5 leaves"])
@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticLoss(adaptive=True), FAR], ids=str)
def test_fault_5_labels_not_clipped_do_no_harm(loss, cuts, monkeypatch):
    """The kernel takes the sign of a label, and clips other residuals to what is charged."""
    monkeypatch.setattr(type(loss), "whole", lambda _, labels: labels.astype(np.int32))
    assert 0.3 < worst_shift(loss, cuts) <= 1 + 1e-9


def test_residuals_not_clipped_are_found(monkeypatch):
    boost = curator_module.boost
    monkeypatch.setattr(
        curator_module,
        "boost",
        lambda codes, targets, given, *rest: boost(
            codes, targets, replace(given, bound=2**27 - 1), *rest
        ),
    )
    assert worst_shift(FAR) > 1.5
