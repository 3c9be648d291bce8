"""Robust sensitivities by brute force, over neighbouring rows and neighbouring weights.

A pair lives on n + 1 records: the first n are one dataset, the last n the other. What one lacks
weighs 0 there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dprepro.methods.lazybb.hypotheses import errors, split_gains
from dprepro.methods.lazybb.queries import Literals
from dprepro.methods.lazybb.sensitivity import (
    LEAF_WEIGHTS,
    ONE_RULE_ERROR,
    PUBLISHED_ONE_RULE_ERROR,
    SPLIT_GAIN,
    TOTAL,
    dropped_bits,
    error_sensitivity,
    gain_sensitivity,
    largest_weight,
    leaf_sensitivity,
    smooth_distance,
    unit_of,
)
from dprepro.methods.lazybb.weights import Weighing

Pair = tuple[Literals, np.ndarray, np.ndarray, float]
"""Columns of all records, signed whole weights of both datasets, zeta in the same units."""


def whole(weights: np.ndarray) -> np.ndarray:
    return np.rint(weights * TOTAL).astype(np.int64)


def pair_of(literals: Literals, first: np.ndarray, second: np.ndarray, signs: np.ndarray) -> Pair:
    weights = whole(first), whole(second)
    zeta = float(np.abs(weights[0] - weights[1]).sum() / 2)
    return literals, signs * weights[0], signs * weights[1], zeta


def random_pairs(count: int, seed: int) -> Iterator[Pair]:
    """Yield neighbours with distributions of total variation distance zeta."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, d = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        literals = Literals(rng.integers(0, 2, (n + 1, d)))
        signs = rng.choice([-1, 1], n + 1)
        if rng.random() < 0.5:  # the same record with its label changed
            same = rng.integers(0, 2, (n + 1, d))
            same[n] = same[0]
            literals, signs[n] = Literals(same), -signs[0]
        first, second = (np.append(rng.dirichlet(np.full(n, 0.3)), 0.0) for _ in range(2))
        second = second[::-1].copy()
        # On the way from one to the other weights move little; records change throughout.
        share = rng.choice([1.0, 0.1, 1e-3])
        if share < 1:
            second = (1 - share) * np.append(0.0, first[1:]) / max(1 - first[0], 1e-12)
            second[n] = 1 - second[:n].sum()
        yield pair_of(literals, first, second, signs)


def gains_of(literals: Literals, weights: np.ndarray) -> np.ndarray:
    return split_gains(weights.sum(axis=0), literals.sums(weights))


def flipped_record(zeta: float) -> Pair:
    """Return a record whose label changes, alike to one half by one column, to the other by two.

    Records: it and its other self; a crowd of its old label; a crowd of its new one.
    """
    literals = Literals(np.array([[1, 1], [1, 1], [1, 0], [0, 1]]))
    crowd, signs = (1 - zeta) / 2, np.array([1, -1, 1, -1])
    old, new = np.array([zeta, 0, crowd, crowd]), np.array([0, zeta, crowd, crowd])
    return pair_of(literals, old, new, signs)


def moves_of_gains(pair: Pair, leaves: np.ndarray) -> np.ndarray:
    """Return how far the gain of each column in each leaf moves, in units of zeta."""
    literals, *both, zeta = pair
    gains = []
    for signed in both:
        weights = np.column_stack([np.maximum(-signed, 0), np.maximum(signed, 0)])
        inside = [weights * (leaves == leaf)[:, None] for leaf in range(leaves.max() + 1)]
        gains.append(np.concatenate([gains_of(literals, part) for part in inside]))
    return (gains[1] - gains[0]) / zeta


def test_boosting_keeps_neighbours_within_zeta() -> None:
    """Any hypotheses in common: the union of two neighbours' weights differs by 1 / (kappa n)."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(3000):
        n, rounds = int(rng.integers(2, 12)), int(rng.integers(0, 8))
        density = float(rng.uniform(0.1, 1.0))
        weighing = Weighing(
            rng.choice([0.2, 1.0, 3.0]), density, rng.choice(["signed", "agreements"])
        )
        margins = rng.choice(np.arange(-rounds, rounds + 1, 2), n + 1)
        first = np.append(weighing.weights(margins[:n], rounds), 0)
        second = np.append(0, weighing.weights(margins[1:], rounds))
        distance = int(np.abs(first - second).sum())
        assert distance <= 2 * largest_weight(density, n) + n
        largest = max(largest, distance / (2 * TOTAL * smooth_distance(density, n)))
    assert largest > 0.999


def test_errors_move_by_zeta_and_complements_the_other_way() -> None:
    largest = widest = 0.0
    for literals, first, second, zeta in random_pairs(4000, seed=1):
        moves = (errors(literals, second) - errors(literals, first)) / zeta
        largest = max(largest, np.abs(moves).max())
        widest = max(widest, np.ptp(moves))
    assert largest == pytest.approx(ONE_RULE_ERROR, abs=1e-6)
    assert widest == pytest.approx(2 * ONE_RULE_ERROR, abs=1e-6)
    assert 2 * largest == pytest.approx(PUBLISHED_ONE_RULE_ERROR, abs=1e-6)


def test_a_choice_of_splits_pays_for_eight_zeta_at_most() -> None:
    rng = np.random.default_rng(2)
    for pair in random_pairs(4000, seed=3):
        leaves = rng.integers(0, 3, pair[0].rows)
        assert np.ptp(moves_of_gains(pair, leaves)) <= 2 * SPLIT_GAIN * (1 + 1e-6)


def test_eight_zeta_are_reached() -> None:
    moves = moves_of_gains(flipped_record(1e-5), np.zeros(4, dtype=int))
    assert np.ptp(moves) == pytest.approx(2 * SPLIT_GAIN, rel=1e-3)


def test_a_single_gain_can_move_by_more_than_lemma_15_says() -> None:
    """Almost 8 zeta: a record of a small pure leaf changes to the label of all the others."""
    zeta, small = 1e-4, 0.0066
    literals = Literals(np.array([[1], [1], [1], [0]]))
    rest = 1 - small - zeta
    old, new = np.array([zeta, 0, small, rest]), np.array([0, zeta, small, rest])
    pair = pair_of(literals, old, new, np.array([1, -1, 1, -1]))
    assert np.abs(moves_of_gains(pair, np.zeros(4, dtype=int))).max() > 7.5


def test_the_weights_of_all_leaves_move_by_two_zeta_together() -> None:
    rng = np.random.default_rng(4)
    largest = 0.0
    for literals, first, second, zeta in random_pairs(4000, seed=5):
        cells = rng.integers(0, 3, literals.rows) * 2
        sums = [
            np.bincount(cells + (signed > 0), np.abs(signed), minlength=6)
            for signed in (first, second)
        ]
        largest = max(largest, np.abs(sums[0] - sums[1]).sum() / zeta)
    assert largest == pytest.approx(LEAF_WEIGHTS, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 2.0**-8.5, 2.0**-8, 0.01, 1.0, 3e5])
def test_noise_of_any_scale_can_be_drawn_in_the_unit_it_gets(scale: float) -> None:
    unit = unit_of(dropped_bits(scale))
    assert scale / unit < 2.0**52
    assert unit == 1 / TOTAL or scale / unit >= 2.0**51


@pytest.mark.parametrize("density", [1.0, 0.5, 0.1])
def test_the_distance_of_weights_follows_from_the_density(density):
    """1 / (kappa n), and what rounding to units adds."""
    assert smooth_distance(density, 1000) == pytest.approx(1 / (density * 1000), rel=1e-6)


def test_what_rounding_adds_is_charged_beside_what_neighbours_move() -> None:
    zeta, unit = 2.0**-20, 2.0**-30
    assert error_sensitivity(zeta, unit) == zeta + unit
    assert gain_sensitivity(zeta, unit) == 4 * zeta + 2.0**-48 + unit
    assert leaf_sensitivity(zeta, unit, 5) == 2 * zeta + 2 * 5 * unit
