"""Noise: its size is what the ledger says, whatever was asked for."""

import numpy as np
import pytest
from scipy import stats

from dprepro.privacy.ledger import ZERO_OUT, Ledger
from dprepro.privacy.mechanisms import NoiseSource


def draw(seed=0, size=20_000, noise_multiplier=5.0, sensitivity=0.3):
    ledger = Ledger(1.0, 1e-6, ZERO_OUT)
    noise = NoiseSource(ledger, seed).gaussian(
        (size,), releases="a sum", noise_multiplier=noise_multiplier, sensitivity=sensitivity,
        uses=3, budget=(1.0, 1e-6),
    )  # fmt: skip
    return noise, ledger


def test_noise_has_the_scale_that_the_ledger_states():
    noise, ledger = draw()
    (entry,) = ledger.entries
    assert entry.scale == pytest.approx(1.5)
    assert entry.noise_multiplier == pytest.approx(5.0)
    assert entry.uses == 3
    # A chi-square test of the variance and one of the shape, at levels no honest source fails.
    chi_square = (noise.size - 1) * noise.var(ddof=1) / entry.scale**2
    assert 1e-6 < stats.chi2.cdf(chi_square, noise.size - 1) < 1 - 1e-6
    assert stats.kstest(noise / entry.scale, "norm").pvalue > 1e-6


def test_the_same_seed_repeats_and_is_noted():
    first, ledger = draw(seed=7)
    second, _ = draw(seed=7)
    np.testing.assert_array_equal(first, second)
    assert ledger.unpaid


def test_no_seed_draws_afresh_and_leaves_nothing_unpaid():
    first, ledger = draw(seed=None)
    second, _ = draw(seed=None)
    assert not np.array_equal(first, second)
    assert ledger.unpaid == []


@pytest.mark.parametrize(
    ("noise_multiplier", "sensitivity"),
    [(0, 1), (-1, 1), (1, 0), (1, -1), (np.inf, 1), (np.nan, 1)],
)
def test_missing_noise_is_refused(noise_multiplier, sensitivity):
    with pytest.raises(ValueError, match="positive, finite multiplier and sensitivity"):
        draw(noise_multiplier=noise_multiplier, sensitivity=sensitivity)
