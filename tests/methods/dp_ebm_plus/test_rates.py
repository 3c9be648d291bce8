"""Shares of positive labels to expect, against integrals."""

import math

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.smoothing import (
    LINEAR,
    believable,
    evaluate,
    expected_response,
    expected_responses,
    lookup,
)
from scipy.integrate import quad
from scipy.special import expit


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
    table = expected_responses(intercept, deviation)
    for value in (-10.0, -3.0, -1.0, 0.4, 2.0, 8.0):
        found = lookup(table, np.array([value]))[:, 0]
        about = (intercept + value, deviation)
        expected = [quad(weighted, -12, 12, (*about, n), limit=200)[0] for n in (0, 1)]
        np.testing.assert_allclose(found, expected, rtol=within, atol=1e-12)


def test_between_the_nodes_of_the_table_the_rates_are_as_good():
    values = np.random.default_rng(0).uniform(-6, 6, 300)
    rates, slopes = lookup(expected_responses(-1.0, 0.0), values)
    np.testing.assert_allclose(rates, expit(values - 1), atol=6e-4)
    np.testing.assert_allclose(slopes, expit(values - 1) * expit(1 - values), atol=1e-3)


def test_beyond_the_table_rates_are_finite_and_slopes_positive():
    values = np.array([-1e300, -100.0, -24.0, 24.0, 100.0, 1e300])
    for intercept in (-9.0, 0.0, 9.0):
        rates, slopes = lookup(expected_responses(intercept, 1.0), values)
        np.testing.assert_allclose(rates, [0, 0, 0, 1, 1, 1], atol=1e-4)
        assert ((slopes > 0) & (slopes < 1e-4)).all()
    # 1 - sigmoid is 0 here, which nothing may be divided by.
    assert (lookup(expected_responses(40.0, 0.0), values)[1] > 0).all()


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("linear", [True, False])
def test_offsets_stand_one_in_each_stride(stride, linear):
    """As `smooth` has them, with noise between them: that is not read."""
    rng = np.random.default_rng(stride)
    table = LINEAR if linear else expected_responses(-1.0, 0.5)
    offsets, centre, counts = rng.normal(size=5), rng.normal(size=5), rng.uniform(1, 9, 5)
    x = np.full(5 * stride, np.nan)
    x[::stride] = offsets
    found = np.empty((2, 5))
    evaluate(x, centre, counts, table, found[0], found[1])
    np.testing.assert_allclose(found, counts * lookup(table, centre + offsets), rtol=1e-14)
    if linear:
        np.testing.assert_allclose(found, [counts * (centre + offsets), counts], rtol=1e-14)


# --- one rate, and what width of the scores agrees with it ----------------------------------------


@pytest.mark.parametrize(
    ("deviation", "within"), [(0.0, 1e-9), (0.5, 1e-5), (1.0, 1e-5), (2.0, 5e-3), (3.0, 5e-2)]
)
@pytest.mark.parametrize("intercept", [-7.0, -2.0, 0.0, 3.0])
def test_the_expected_rate_is_the_integral(intercept, deviation, within):
    expected = quad(weighted, -12, 12, (intercept, deviation, 0), limit=200)[0]
    assert expected_response(intercept, deviation) == pytest.approx(expected, rel=within)


@pytest.mark.parametrize("deviation", [0.0, 0.7, 3.0, 6.0])
@pytest.mark.parametrize("intercept", [-9.0, -2.0, 0.0, 3.0])
def test_the_expected_rate_is_what_tables_say_of_a_function_of_zero(intercept, deviation):
    table = expected_responses(intercept, deviation)
    found = lookup(table, np.zeros(1))[0, 0]
    assert expected_response(intercept, deviation) == pytest.approx(found, rel=1e-9)
    # So do shifted ones.
    found = lookup(table, np.array([2.0]))[0, 0]
    assert expected_response(intercept + 2, deviation) == pytest.approx(found, rel=1e-9)


def times_the_odds(intercept, deviation, start):
    """Return the odds of the rarer label that scores lead to, over those that there are."""
    rate = expected_response(intercept, deviation)
    return (rate / (1 - rate) / math.exp(start)) ** math.copysign(1, -intercept)


SCORES = [
    (-5.0, 1.0, -4.6, False),
    (-5.0, 3.0, -4.6, True),
    (-7.0, 2.5, -4.6, False),
    (-9.0, 8.0, -4.6, True),
    (-2.0, 0.5, -2.0, False),
    (-2.0, 4.0, -2.0, True),
    (-0.5, 3.0, -0.5, False),
    (-0.5, 20.0, -0.25, False),
]
"""An intercept, a deviation and a start, and whether that is too wide."""


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("intercept", "deviation", "start", "too_wide"), SCORES)
def test_scores_are_as_narrow_as_the_rate_demands(intercept, deviation, start, too_wide, side):
    intercept, start = side * intercept, side * start
    assert (times_the_odds(intercept, deviation, start) > 1.5) == too_wide
    found = believable(intercept, deviation, start)
    if too_wide:
        assert 0.1 < found < 0.9 * deviation
        assert times_the_odds(intercept, found, start) == pytest.approx(1.5, rel=1e-6)
    else:
        assert found == deviation


@pytest.mark.parametrize("deviation", [0.0, 0.3, 2.0, 8.0])
@pytest.mark.parametrize("start", [-6.0, -2.0, 0.0, 3.0])
@pytest.mark.parametrize("intercept", [-8.0, -3.0, -0.2, 1.0, 5.0])
def test_what_holds_of_one_label_holds_of_the_other(intercept, deviation, start):
    found = believable(intercept, deviation, start)
    assert 0 <= found <= deviation
    mirrored = believable(-intercept, deviation, -start)
    assert mirrored == pytest.approx(found, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("side", [1, -1])
def test_an_intercept_that_says_too_many_leaves_no_width(side):
    assert believable(-1.0 * side, 3.0, -4.0 * side) == pytest.approx(0, abs=1e-8)
    assert believable(-3.5 * side, 3.0, -4.0 * side) == pytest.approx(0, abs=1e-8)
    # It may say up to 1.5 times as many.
    assert 0.1 < believable(-3.61 * side, 3.0, -4.0 * side) < 1


@pytest.mark.parametrize("side", [1, -1])
def test_an_intercept_that_takes_the_rarer_label_for_the_other_leaves_all_width(side):
    """Width leads to more of the rarer label then: there are not too few."""
    for intercept, start in [(0.5, -0.5), (0.01, -4.0), (6.0, -4.0)]:
        assert believable(intercept * side, 3.0, start * side) == 3.0


def test_wider_scores_never_become_narrower():
    """They keep their width up to where there would be too many, and have that width beyond."""
    widths = np.linspace(0, 9, 91)
    found = np.array([believable(-6.0, width, -4.6) for width in widths])
    most = found[-1]
    assert 1 < most < 4
    np.testing.assert_allclose(found, np.minimum(widths, most), atol=1e-7)
    np.testing.assert_array_equal(found[widths < most], widths[widths < most])
    more = [believable(-6.0, 9.0, start) for start in np.linspace(-6.3, -0.5, 20)]
    assert (np.diff(more) >= 0).all()  # the commoner the label, the wider
    assert more[0] < 1 < 5 < more[-1]
