"""Shares of positive labels to expect, against integrals."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from dprepro.ebm_plus.rates import LINEAR, evaluate, expected_rates, lookup


def weighted(z, middle, deviation, power):
    """Return sigmoid (1 - sigmoid)^power times the normal density."""
    odds = middle + deviation * z
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return expit(odds) * expit(-odds) ** power * density


@pytest.mark.parametrize(
    ("deviation", "within"), [(0.0, 1e-9), (0.5, 1e-5), (1.0, 1e-5), (2.0, 5e-3), (3.0, 5e-2)]
)
@pytest.mark.parametrize("intercept", [-7.0, -2.0, 0.0, 3.0])
def test_expected_rates_are_the_integrals(intercept, deviation, within):
    table = expected_rates(intercept, deviation)
    for value in (-10.0, -3.0, -1.0, 0.4, 2.0, 8.0):
        found = lookup(table, np.array([value]))[:, 0]
        about = (intercept + value, deviation)
        expected = [quad(weighted, -12, 12, (*about, n), limit=200)[0] for n in (0, 1)]
        np.testing.assert_allclose(found, expected, rtol=within, atol=1e-12)


def test_between_the_nodes_of_the_table_the_rates_are_as_good():
    values = np.random.default_rng(0).uniform(-6, 6, 300)
    rates, slopes = lookup(expected_rates(-1.0, 0.0), values)
    np.testing.assert_allclose(rates, expit(values - 1), atol=6e-4)
    np.testing.assert_allclose(slopes, expit(values - 1) * expit(1 - values), atol=1e-3)


def test_beyond_the_table_rates_are_finite_and_slopes_positive():
    values = np.array([-1e300, -100.0, -24.0, 24.0, 100.0, 1e300])
    for intercept in (-9.0, 0.0, 9.0):
        rates, slopes = lookup(expected_rates(intercept, 1.0), values)
        np.testing.assert_allclose(rates, [0, 0, 0, 1, 1, 1], atol=1e-4)
        assert ((slopes > 0) & (slopes < 1e-4)).all()
    # 1 - sigmoid is 0 here, which nothing may be divided by.
    assert (lookup(expected_rates(40.0, 0.0), values)[1] > 0).all()


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("linear", [True, False])
def test_offsets_stand_one_in_each_stride(stride, linear):
    """As `smooth` has them, with noise between them: that is not read."""
    rng = np.random.default_rng(stride)
    table = LINEAR if linear else expected_rates(-1.0, 0.5)
    offsets, centre, counts = rng.normal(size=5), rng.normal(size=5), rng.uniform(1, 9, 5)
    x = np.full(5 * stride, np.nan)
    x[::stride] = offsets
    found = np.empty((2, 5))
    evaluate(x, centre, counts, table, found[0], found[1])
    np.testing.assert_allclose(found, counts * lookup(table, centre + offsets), rtol=1e-14)
    if linear:
        np.testing.assert_allclose(found, [counts * (centre + offsets), counts], rtol=1e-14)
