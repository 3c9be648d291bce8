"""Weights of rows: smooth, in whole numbers, and how far one row moves them."""

from __future__ import annotations

import _pydecimal
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import optimize

from dprepro.methods.lazybb import sensitivity
from dprepro.methods.lazybb import weights as projection
from dprepro.methods.lazybb import weights as weighing
from dprepro.methods.lazybb.sensitivity import TOTAL, largest_weight, smooth_distance
from dprepro.methods.lazybb.weights import Weighing, _measure_of, smooth_weights

CASES = [
    (np.random.default_rng(s).normal(m, spread, n), density)
    for s, (m, spread, n, density) in enumerate(
        [(-1, 1, 50, 0.4), (-5, 3, 17, 0.9), (0, 0, 9, 0.3), (-2, 5, 200, 0.05), (-3, 2, 30, 1.0)]
    )
]


EACH = pytest.mark.parametrize(("log_measure", "density"), CASES)


def weights_of(log_measure: np.ndarray, density: float) -> np.ndarray:
    """Return the weights of rows of these measures, capped at 1, as shares of the whole."""
    measure = [int(np.ldexp(m, 96)) for m in np.exp(np.minimum(log_measure, 0))]
    weights = smooth_weights(measure, [1] * len(measure), density)
    return np.array(weights) / TOTAL


def reached(log_measure: np.ndarray, density: float) -> bool:
    """Whether the measure is dense enough as it is."""
    return bool(np.exp(np.minimum(log_measure, 0)).sum() >= density * log_measure.size)


def divergence(mu: np.ndarray, log_measure: np.ndarray) -> float:
    """KL of unnormalised measures."""
    logs = np.log(mu, out=np.zeros_like(mu), where=mu > 0)
    return float(np.sum(mu * (logs - log_measure) - mu + np.exp(log_measure)))


@EACH
def test_it_is_the_capped_measure_of_the_wanted_density(
    log_measure: np.ndarray, density: float
) -> None:
    expected = np.exp(np.minimum(log_measure, 0))
    if density == 1:
        expected = np.ones_like(log_measure)
    elif not reached(log_measure, density):
        least = density * log_measure.size
        log_factor = optimize.brentq(
            lambda c: np.exp(np.minimum(log_measure + c, 0)).sum() - least, 0, 100, xtol=1e-14
        )
        expected = np.exp(np.minimum(log_measure + log_factor, 0))
    np.testing.assert_allclose(weights_of(log_measure, density), expected / expected.sum())


@EACH
def test_no_other_dense_measure_is_nearer(log_measure: np.ndarray, density: float) -> None:
    rng = np.random.default_rng(0)
    least = density * log_measure.size
    projected = np.exp(np.minimum(log_measure, 0))
    if not reached(log_measure, density):
        projected = np.minimum(weights_of(log_measure, density) * least, 1.0)
    best = divergence(projected, log_measure)
    compared = 0
    for _ in range(200):
        other = np.clip(projected + rng.normal(0, rng.choice([1e-3, 0.1]), projected.size), 0, 1)
        other += (1 - other) * rng.uniform(0, 0.2)
        if other.sum() >= least:
            assert divergence(other, log_measure) >= best - 1e-9
            compared += 1
    if density == 1:
        # Only one measure is as dense, so there is none to compare with.
        np.testing.assert_allclose(projected, 1.0, rtol=1e-15)
    else:
        assert compared > 50


@EACH
def test_projecting_again_changes_nothing(log_measure: np.ndarray, density: float) -> None:
    projected = weights_of(log_measure, density)
    again = weights_of(np.log(projected / projected.max()), density)
    np.testing.assert_allclose(again, projected, rtol=1e-12, atol=2 / TOTAL)


def test_rows_of_one_measure_weigh_the_same_in_one_group_or_in_many() -> None:
    alone = smooth_weights([9, 9, 9, 4, 4, 1], [1] * 6, 0.4)
    assert smooth_weights([4, 9, 1], [2, 3, 1], 0.4) == [alone[3], alone[0], alone[5]]
    assert smooth_weights([4, 9, 9, 1], [2, 1, 2, 1], 0.4) == [alone[3], *alone[:2], alone[5]]


def test_measures_of_thousands_of_bits_are_told_apart() -> None:
    weights = smooth_weights([3 << 20_000, 2, 1, 1], [1] * 4, 0.5)
    assert weights == [TOTAL // 2, TOTAL // 4, TOTAL // 8, TOTAL // 8]


MEASURES, MOST_ROWS = (1, 2, 7, 23, 10**6), 5
DENSITIES = (1.0, 0.75, 0.3, 0.1)


@pytest.fixture(params=[2**5, 2**7, TOTAL])
def total(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let all rows weigh so many units together: few, so that rounding is seen."""
    monkeypatch.setattr(projection, "TOTAL", request.param)
    monkeypatch.setattr(sensitivity, "TOTAL", request.param)
    return int(request.param)


def tables() -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield every table of a few rows, as the measures of its rows, with every density."""
    for rows in range(1, MOST_ROWS + 1):
        for table in combinations_with_replacement(MEASURES, rows):
            for density in DENSITIES:
                yield table, density


def by_measure(table: tuple[int, ...], density: float) -> dict[int, int]:
    counts = Counter(table)
    weights = smooth_weights(list(counts), list(counts.values()), density)
    return dict(zip(counts, weights, strict=True))


def test_the_whole_weight_is_given_and_no_row_gets_more_than_its_bound(total: int) -> None:
    least = 0
    for table, density in tables():
        weights = by_measure(table, density)
        assert all(0 <= w <= Fraction(total) / (Fraction(density) * len(table))
                   for w in weights.values())  # fmt: skip
        missing = total - sum(weights[m] for m in table)
        assert 0 <= missing < len(table)
        least = max(least, missing)
    assert least >= 2


def test_no_exchange_of_a_row_moves_weights_by_more_than_is_charged(total: int) -> None:
    """Over the records of both tables; in one of them no common record weighs less."""
    beyond_the_bound = 0
    for table, density in tables():
        before, cap = by_measure(table, density), largest_weight(density, len(table))
        for gone in set(table):
            common = list(table)
            common.remove(gone)
            for arrived in MEASURES:
                after = by_measure((*common, arrived), density)
                moves = [after[m] - before[m] for m in common]
                assert min(moves, default=0) >= 0 or max(moves, default=0) <= 0
                distance = sum(map(abs, moves)) + before[gone] + after[arrived]
                zeta = smooth_distance(density, len(table)) * total
                assert distance <= 2 * zeta * (1 + 1e-15)
                beyond_the_bound += distance > 2 * cap
    # Without the charge for rounding there would be tables beyond it.
    assert beyond_the_bound > 0


def test_the_distance_is_that_of_the_paper_and_a_little_more() -> None:
    for density, rows in ((0.25, 60), (1.0, 1000), (0.35, 45_222), (0.4, 500_000)):
        excess = smooth_distance(density, rows) * density * rows - 1
        assert 0 <= excess < 2.0**-20


def test_the_first_weights_are_equal() -> None:
    for margin in ("signed", "agreements"):
        weights = Weighing(0.5, 0.3, margin).weights(np.zeros(8, np.int64), 0)
        assert weights.dtype == np.int64
        assert (weights == TOTAL // 8).all()


def test_weights_fall_with_the_margin_and_are_capped() -> None:
    margins = np.arange(-2, 11, 2)
    weights = Weighing(0.7, 0.4).weights(margins, 10)
    assert (np.diff(weights) <= 0).all()
    assert weights[0] == largest_weight(0.4, 7)
    free = weights[weights < weights[0]]
    assert free.size > 3
    np.testing.assert_allclose(np.diff(np.log(free)), -0.7 * 2)


def test_counting_agreements_halves_the_learning_rate() -> None:
    odds = [0.05, 0.1, 0.15, 0.2, 0.2, 0.3]
    margins = np.random.default_rng(0).choice(np.arange(-5, 6, 2), 50, p=odds)
    counted = Weighing(0.8, 0.3, "agreements").weights(margins, 5)
    halved = Weighing(0.4, 0.3, "signed").weights(margins, 5)
    np.testing.assert_allclose(counted, halved)


def test_weights_far_below_the_smallest_double_are_told_apart() -> None:
    weights = Weighing(1.0, 0.5).weights(np.array([0, 5000, 5001, 5001]), 5001) / TOTAL
    share = np.exp([0.0, -1.0, -1.0])
    np.testing.assert_allclose(weights, [0.5, *(0.5 * share / share.sum())])


@pytest.mark.parametrize("rate", [1e300, 1e6, 1e-300, 0.0])
def test_learning_rates_out_of_reach_of_exp_do_no_harm(rate: float) -> None:
    weights = Weighing(rate, 0.4).weights(np.array([-3, -3, 1, 1, 3, 3]), 3)
    assert (np.diff(weights) <= 0).all()
    assert TOTAL - 6 < weights.sum() <= TOTAL
    assert (weights[0] == weights[-1]) == (rate < 1)


@pytest.mark.parametrize("halves", [-7, 0, 1, 2, 90, 4001])
@pytest.mark.parametrize("rate", [0.1, 0.45, 2.0])
def test_measures_are_the_exponential_to_ninety_bits(rate: float, halves: int) -> None:
    density = 0.35
    mantissa, shift = _measure_of(rate, density, halves)
    with localcontext() as context:
        context.prec = 80
        exact = min(Decimal(1), Decimal(density) * (-Decimal(rate) * halves / 2).exp())
        off = 1 - mantissa / Decimal(2) ** shift / exact
    assert 0 <= off + Decimal(2) ** -120 < Decimal(2) ** -90


def test_a_measure_does_not_depend_on_the_context_of_the_caller() -> None:
    expected = _measure_of(0.45, 0.35, 31)
    _measure_of.cache_clear()
    with localcontext() as context:
        context.prec = 3
        assert _measure_of(0.45, 0.35, 31) == expected


@pytest.mark.parametrize("halves", [-3, 1, 7, 90])
def test_another_decimal_arithmetic_gives_the_same_measures(
    halves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the standard library in Python alone; the usual one is in C."""
    assert _pydecimal.Decimal is not Decimal
    expected = _measure_of(0.45, 0.35, halves)
    monkeypatch.setattr(weighing, "Decimal", _pydecimal.Decimal)
    monkeypatch.setattr(weighing, "_DECIMAL", _pydecimal.Context(prec=weighing._DECIMAL.prec))
    monkeypatch.setattr(weighing, "_LARGEST", _pydecimal.Decimal(int(weighing._LARGEST)))
    assert _measure_of.__wrapped__(0.45, 0.35, halves) == expected


def test_weights_are_those_of_the_margins_in_any_order() -> None:
    rng = np.random.default_rng(0)
    margins, order = rng.integers(-9, 10, 500), rng.permutation(500)
    weighing = Weighing(0.45, 0.35)
    np.testing.assert_array_equal(
        weighing.weights(margins, 9)[order], weighing.weights(margins[order], 9)
    )


def test_weights_are_the_same_on_every_machine() -> None:
    """Recorded: no rounding of a processor or of a library takes part."""
    weights = Weighing(0.45, 0.35).weights(np.array([-3, -1, -1, 1, 1, 3, 3, 3]), 3)
    assert [int(w) for w in np.unique(weights)] == [
        37143428412949667, 91358092083526444, 224704647518004742, 409365740164935598,
    ]  # fmt: skip
