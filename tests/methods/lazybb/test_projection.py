"""The projection: optimal, and in whole numbers never further apart than is charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import optimize

from dprepro.methods.lazybb import weights as projection
from dprepro.methods.lazybb.weights import smooth_weights
from dprepro.privacy import smooth_sensitivity
from dprepro.privacy.smooth_sensitivity import TOTAL, largest_weight, smooth_distance

CASES = [
    (np.random.default_rng(s).normal(m, spread, n), density)
    for s, (m, spread, n, density) in enumerate(
        [(-1, 1, 50, 0.4), (-5, 3, 17, 0.9), (0, 0, 9, 0.3), (-2, 5, 200, 0.05), (-3, 2, 30, 1.0)]
    )
]
EACH = pytest.mark.parametrize(("log_measure", "density"), CASES)

# --- it is the projection -------------------------------------------------------------------------


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


# --- what is proved of it -------------------------------------------------------------------------

MEASURES, MOST_ROWS = (1, 2, 7, 23, 10**6), 5
DENSITIES = (1.0, 0.75, 0.3, 0.1)


@pytest.fixture(params=[2**5, 2**7, TOTAL])
def total(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let all rows weigh so many units together: few, so that rounding is seen."""
    monkeypatch.setattr(projection, "TOTAL", request.param)
    monkeypatch.setattr(smooth_sensitivity, "TOTAL", request.param)
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
