"""Objective perturbation: the ingredients of its proof, by brute force over small neighbours."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit

from dprepro.methods.diffprivlib_adapter import Vector
from dprepro.methods.logistic.curator import CURVATURE, ObjectivePerturbation

SETTINGS = [(1.0, 1.0), (1.0, 10.0), (4.0, 1.0), (0.1, 1.0), (1.0, 0.01)]
"""(epsilon, penalty): the last two leave nothing for the noise unless the penalty is raised."""


def directions(count=16):
    angles = np.arange(count) * 2 * np.pi / count
    return np.column_stack([np.cos(angles), np.sin(angles)])


def rows_up_to(norm):
    return np.vstack([directions(8) * norm, directions(8) * norm / 2, np.zeros((1, 2))])


def worst_loss(mechanism, others, released):
    """Return the largest log ratio of densities over every exchange of a row."""
    rows = rows_up_to(mechanism.norm)
    tables = [np.vstack([others, row]) for row in rows]
    counts = np.ones(len(others) + 1)
    density = np.array([[mechanism.log_density(w, t, counts) for t in tables] for w in released])
    return float(np.ptp(density, axis=1).max())


def far_and_near():
    return np.vstack([directions() * size for size in (0.01, 0.3, 1.0, 3.0, 10.0, 100.0)])


@pytest.mark.parametrize(("epsilon", "penalty"), SETTINGS)
def test_no_exchange_of_rows_of_norm_one_changes_the_density_by_more_than_epsilon(epsilon, penalty):
    mechanism = ObjectivePerturbation(epsilon, penalty)
    assert mechanism.proved_epsilon == pytest.approx(epsilon)
    crowd = 30 * [[-1.0, 0.0]] + 30 * [[0.6, 0.8]]
    for others in (np.zeros((0, 2)), np.array([[1.0, 0.0]]), np.array(crowd)):
        assert worst_loss(mechanism, others, far_and_near()) <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_an_exchange_comes_close_to_what_the_noise_alone_may_cost(epsilon):
    """A crowd drives w to where both rows are wrong: then their gradients are opposite ones."""
    mechanism = ObjectivePerturbation(epsilon, 1.0)
    pair = [np.array([side, -0.3]) / math.hypot(1, 0.3) for side in (1.0, -1.0)]
    push, w = np.array([0.0, 1.0]), np.array([10.0, 60.0])
    # So many rows that this w needs no noise in their direction.
    counts = np.array([mechanism.strength * w[1] / expit(-w[1]), 1.0])
    one, other = (mechanism.log_density(w, np.array([push, row]), counts) for row in pair)
    assert abs(one - other) > 0.9 * mechanism.noise_epsilon


@pytest.mark.parametrize(("epsilon", "penalty"), SETTINGS)
def test_a_norm_above_one_breaks_the_librarys_promise_but_not_what_is_proved(epsilon, penalty):
    mechanism = ObjectivePerturbation(epsilon, penalty, norm=100.0)
    assert mechanism.proved_epsilon > epsilon
    released = np.vstack([far_and_near() / size for size in (1, 1e2, 1e4)])
    worst = worst_loss(mechanism, np.zeros((1, 2)), released)
    assert epsilon < worst <= mechanism.proved_epsilon + 1e-9


def test_the_density_has_the_noise_and_the_curvature_of_the_objective():
    """In one dimension, by differences: noise is the slope that it takes away at w."""
    mechanism, w, step = ObjectivePerturbation(1.0, 0.5), 0.7, 1e-3
    rows, counts = np.array([[1.0], [-0.4]]), np.array([2.0, 3.0])

    def objective(w):
        return counts @ np.logaddexp(0, -(rows[:, 0] * w)) + mechanism.strength * w**2 / 2

    below, at, above = (objective(w + k * step) for k in (-1, 0, 1))
    slope, curvature = (above - below) / (2 * step), (above - 2 * at + below) / step**2
    found = mechanism.log_density(np.array([w]), rows, counts)
    assert found == pytest.approx(math.log(curvature) - abs(slope) / mechanism.scale, rel=1e-5)


@pytest.mark.parametrize("norm", [1.0, 7.0])
def test_what_is_proved_counts_the_largest_determinant_twice(norm):
    """A row comes and another goes. At w = 0 a row of that norm has the largest curvature."""
    mechanism = ObjectivePerturbation(1.0, 0.5, norm)
    rows, counts = np.array([[norm], [-norm]]), np.array([0.5, 0.5])  # no slope at w = 0
    one, none = (mechanism.log_density(np.zeros(1), table, counts) for table in (rows, 0 * rows))
    assert mechanism.proved_epsilon == pytest.approx(mechanism.noise_epsilon + 2 * (one - none))


def test_gradients_and_curvature_are_bounded_as_the_proof_says():
    worst_gradient, worst_curvature = 0.0, 0.0
    for w in far_and_near():
        rows = rows_up_to(1.0)
        wrong = expit(-(rows @ w))
        gradients = -wrong[:, None] * rows
        shifts = [np.linalg.norm(a - b) for a, b in itertools.combinations(gradients, 2)]
        worst_gradient = max(worst_gradient, *shifts)
        curvatures = wrong * (1 - wrong) * np.linalg.norm(rows, axis=1) ** 2
        worst_curvature = max(worst_curvature, curvatures.max())
    assert 1.7 < worst_gradient <= ObjectivePerturbation(1.0, 1.0).gradient_sensitivity
    assert worst_curvature == pytest.approx(CURVATURE, rel=1e-3)
    assert worst_curvature <= CURVATURE


@pytest.mark.parametrize(("epsilon", "penalty"), SETTINGS)
@pytest.mark.parametrize("norm", [1.0, 7.0])
def test_the_library_draws_with_these_constants(epsilon, penalty, norm):
    """Its noise is what a linear objective gains; its ridge what the origin's neighbours do."""
    mechanism, n = ObjectivePerturbation(epsilon, penalty, norm), 50

    def noisy(seed):
        return Vector(
            epsilon=epsilon, dimension=3, alpha=penalty, function_sensitivity=CURVATURE,
            data_sensitivity=norm, n=n, random_state=seed,
        ).randomise(lambda w: 0.0)  # fmt: skip

    axes = np.eye(3)
    objective = noisy(0)
    ridge = n * (objective(axes[0]) + objective(-axes[0]))
    assert mechanism.strength == pytest.approx(penalty + ridge)
    noise = [[n * (f(axis) - f(-axis)) / 2 for axis in axes] for f in map(noisy, range(300))]
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.kstest(lengths, stats.gamma(3, scale=mechanism.scale).cdf).pvalue > 1e-3


def test_the_density_is_that_of_what_is_released():
    """In one dimension: minimisers with noise of the stated scale, against the density."""
    mechanism = ObjectivePerturbation(1.0, 0.5)
    rows, counts = np.array([[1.0], [-0.4]]), np.array([2.0, 3.0])
    rng = np.random.default_rng(0)
    noise = rng.exponential(mechanism.scale, 400) * rng.choice([-1, 1], 400)

    def released(b):
        def objective(w):
            losses = counts * np.logaddexp(0, -(rows @ w))
            return losses.sum() + mechanism.strength * w @ w / 2 + b * w[0]

        return minimize(objective, np.zeros(1), tol=1e-9).x[0]

    def density(w):
        return math.exp(mechanism.log_density(np.array([w]), rows, counts))

    grid = np.linspace(-60, 60, 4001)
    steps = [quad(density, a, b)[0] for a, b in itertools.pairwise(grid)]
    cumulated = np.append(0.0, np.cumsum(steps))
    sample = [released(b) for b in noise]
    found = stats.kstest(sample, lambda w: np.interp(w, grid, cumulated / cumulated[-1]))
    assert found.pvalue > 1e-3
