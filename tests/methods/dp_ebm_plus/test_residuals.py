"""How large residuals are follows from noisy counts of their sizes, and from nothing else."""

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer
from scipy.stats import laplace, multivariate_normal, norm

from dprepro.additive.model import LEVELS
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import booster as booster_module
from dprepro.methods.dp_ebm_plus import clipping
from dprepro.methods.dp_ebm_plus.booster import quantiles, residual_quantiles
from dprepro.methods.dp_ebm_plus.clipping import EDGES, HALF_CELL, MAGNITUDES, likely_shares
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import SQUARED
from dprepro.privacy.curator_base import listening
from dprepro.privacy.query import NoisyAnswer
from tests.methods.dp_ebm_plus.stub import Events, ask_for_bound, booster

ROWS = 20_000
NORMAL, LAPLACE = norm(0, 0.07), laplace(0, 0.05)


def shares_of(distribution):
    """Return the share of each cell of |residual|: 20 cells, the last one down to 0."""
    above = 2 * distribution.sf(np.append(EDGES[:-1], 0.0))
    return np.diff(above, prepend=0.0)


@pytest.mark.parametrize("distribution", [NORMAL, LAPLACE])
def test_exact_counts_give_the_quantiles_of_the_residuals(distribution):
    found = likely_shares(ROWS * shares_of(distribution), 1e-3, ROWS, 1e-3)
    np.testing.assert_allclose(found, shares_of(distribution), atol=2e-3)
    covered = 1 - 2 * distribution.sf(quantiles(found, LEVELS))
    assert np.abs(covered - LEVELS).max() < 0.012
    assert abs(covered[LEVELS == 0.9][0] - 0.9) < 0.006


@pytest.mark.parametrize(("noise", "allowed"), [(100.0, 0.012), (400.0, 0.03)])
@pytest.mark.parametrize("distribution", [NORMAL, LAPLACE])
def test_noisy_counts_give_them_on_average(noise, allowed, distribution):
    """At 400 the noise of a cell is 2 % of the rows."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(100):
        noisy = ROWS * shares_of(distribution) + rng.normal(0, noise, MAGNITUDES)
        rows = ROWS + rng.normal(0, noise)
        size = quantiles(likely_shares(noisy, noise, rows, noise), np.array([0.9]))
        covered.append(1 - 2 * distribution.sf(size[0]))
    assert abs(np.mean(covered) - 0.9) < allowed
    assert np.std(covered) < 8e-5 * noise + 0.004


def test_what_is_lost_in_noise_is_a_guess_within_the_range():
    rng = np.random.default_rng(1)
    found = likely_shares(rng.normal(0, 1e6, MAGNITUDES), 1e6, 100.0, 1e6)
    sizes = quantiles(found, LEVELS)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert 0 < sizes[0] < sizes[-1] <= 1


def test_quantiles_of_normal_residuals_are_exact_between_edges_and_never_fall():
    within = NORMAL.cdf(EDGES[2:12]) - NORMAL.cdf(-EDGES[2:12])
    assert quantiles(shares_of(NORMAL), within) == pytest.approx(EDGES[2:12], rel=1e-9)
    between = np.array([0.55, 0.7, 0.8, 0.9, 0.95])
    assert quantiles(shares_of(NORMAL), between) == pytest.approx(NORMAL.ppf((1 + between) / 2))
    gaps = np.zeros(MAGNITUDES)
    gaps[[4, 9]] = 0.49, 0.51
    sizes = quantiles(gaps, LEVELS)
    assert (np.diff(sizes) >= 0).all()
    assert EDGES[9] <= sizes[0] <= EDGES[8]
    assert EDGES[4] <= sizes[-1] <= EDGES[3]


def test_later_epochs_count_more_and_the_first_not_at_all(monkeypatch):
    learner, told = booster(np.zeros((1, 9), int), np.zeros(9), SQUARED), []
    monkeypatch.setattr(
        booster_module,
        "likely_shares",
        lambda *a, **b: told.append(a) or likely_shares(*a, **b),
    )
    learner.magnitudes = [NoisyAnswer(np.full(MAGNITUDES, value), 2.0) for value in (1e9, 3.0, 6.0)]
    assert residual_quantiles(learner) is not None
    ((counts, noise, *_),) = told
    assert counts == pytest.approx(np.full(MAGNITUDES, (3 + 2 * 6) / 3))
    assert noise == pytest.approx(2 * np.sqrt(1 + 4) / 3)


def test_one_epoch_says_nothing_of_where_it_led():
    learner = booster(np.zeros((1, 9), int), np.zeros(9), SQUARED)
    ask_for_bound(learner)
    assert residual_quantiles(learner) is None
    ask_for_bound(learner)
    assert residual_quantiles(learner).shape == LEVELS.shape


DOMAIN = Domain(
    tuple(NumericFeature(f"x{k}", 0, 1) for k in range(6)),
    (-6.0, 6.0),
)


def problem(rows, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((rows, 6)), columns=[f.name for f in DOMAIN.features])
    y = np.sin(6 * X["x0"]) + 2 * (X["x1"] > 0.5) + rng.standard_normal(rows)
    return X, y.to_numpy().clip(-6, 6)


@pytest.mark.parametrize(("rows", "epsilon", "allowed"), [(3000, 50.0, 0.012), (3000, 1.0, 0.03)])
def test_new_rows_are_covered_as_often_as_stated(rows, epsilon, allowed):
    """At epsilon 50 functions fit their rows; without `_optimism` 1.4 % too few are covered."""
    covered = {0.5: [], 0.9: []}
    for seed in range(4):
        model = DPEBMPlusRegressor(epsilon, domain=DOMAIN, random_state=seed)
        model.fit(*problem(rows, seed))
        X, y = problem(20_000, 100 + seed)
        for coverage, found in covered.items():
            lower, upper = model.predict_interval(X, coverage).T
            found.append(np.mean((lower <= y) & (y <= upper)))
    for coverage, found in covered.items():
        assert abs(np.mean(found) - coverage) < allowed


def test_the_intervals_ask_nothing_of_the_rows():
    """What the curator is asked and told is the same for a fit that leaves the sizes out."""
    heard = []
    X, y = problem(400, 0)
    for leave_out in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if leave_out:
                patch.setattr(
                    "dprepro.methods.dp_ebm_plus.algorithm.residual_quantiles", lambda *_: None
                )
            events = Events()
            with listening(events):
                model = DPEBMPlusRegressor(4.0, domain=DOMAIN, n_epochs=3, random_state=0)
                model.fit(X, y)
        assert (model.residual_sizes_ is None) == leave_out
        heard.append((len(events.events), model.ledger_.entries, model.intercept_))
    assert heard[0] == heard[1]


def test_the_shares_are_those_of_dense_algebra():
    """The sum over cells is done with a rank-one update: here with whole covariance matrices."""
    noise, rows, rows_noise = 60.0, 5000.0, 300.0
    noisy = 1.05 * rows * shares_of(LAPLACE) + np.random.default_rng(3).normal(0, noise, MAGNITUDES)
    weights, found = [], []
    for misfit in clipping._MISFITS:
        for q in clipping._densities():
            own = rows * q + (misfit * rows * q) ** 2
            covariance = np.diag(own + noise**2) + rows_noise**2 * np.outer(q, q)
            gap = noisy - rows * q
            weights.append(multivariate_normal(np.zeros(MAGNITUDES), covariance).logpdf(gap))
            n = max(rows + rows_noise**2 * q @ np.linalg.solve(covariance, gap), rows / 4)
            likely = np.maximum(n * q + own / (own + noise**2) * (noisy - n * q), 0)
            found.append(likely / likely.sum())
    weights = np.exp(np.array(weights) - np.max(weights))
    expected = weights @ np.array(found) / weights.sum()
    found = likely_shares(noisy, noise, rows, rows_noise)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_every_density_has_the_deviation_that_is_stated():
    shares = clipping._densities()
    stated = np.tile(clipping._DEVIATIONS, len(clipping._MIXTURES) + 1)
    assert shares.shape == (stated.size, MAGNITUDES)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    inside = (stated > 0.01) & (stated < 0.1)  # neither cut off at 1, nor in the last cell
    squares = shares @ (EDGES * HALF_CELL) ** 2
    np.testing.assert_allclose(np.sqrt(squares[inside]), stated[inside], rtol=0.06)
    flat = shares[: clipping._DEVIATIONS.size][clipping._DEVIATIONS > 0.05][0]
    assert flat[EDGES > 3 * 0.06].sum() < 1e-4


def test_the_optimism_is_that_of_free_means():
    """A bin whose own rows decide its value alone has one degree of freedom."""
    learner = booster(np.zeros((1, 12), int), np.zeros(12), SQUARED)
    (function,) = learner.functions
    assert booster_module._optimism(learner) == 0
    n = function.counts.size
    function.counts, function.uncertainty = np.full(n, 200.0 / n), np.zeros(n)
    function.decay = None
    learner.mean_square, learner.bound = 1e-6, 1.0
    # Effects far larger than what their sums leave unsure are not shrunk, so each bin is free.
    effects = 0.3 * np.cos(2.5 * np.arange(n))
    function.remember(Answer(function.counts * effects, 1e-9), np.zeros(n), 1.0)
    assert booster_module._optimism(learner) == pytest.approx(n / 200, rel=0.01)
    learner.functions = [function, function]
    assert booster_module._optimism(learner) == pytest.approx(2 * n / 200, rel=0.01)


def test_sizes_grow_by_the_optimism(monkeypatch):
    learner = booster(np.zeros((1, 12), int), np.linspace(-0.3, 0.3, 12), SQUARED)
    for _ in range(3):
        ask_for_bound(learner)
    monkeypatch.setattr(booster_module, "_optimism", lambda *_: 0.0)
    plain = residual_quantiles(learner)
    monkeypatch.setattr(booster_module, "_optimism", lambda *_: 0.1)
    np.testing.assert_allclose(residual_quantiles(learner), np.sqrt(1.2) * plain)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_rows_without_a_residual_do_not_hide_how_far_the_others_lie(share):
    """Of half as many rows in the last cell, a family without them makes residuals too small."""
    rng = np.random.default_rng(3)
    rows, noise = 10_000, 120.0
    normal = clipping.within_normal(np.append(np.inf, EDGES[:-1]) / 0.1)
    others = normal - np.append(clipping.within_normal(EDGES[:-1] / 0.1), 0.0)
    truth = (1 - share) * others + share * (np.arange(MAGNITUDES) == MAGNITUDES - 1)
    needed = quantiles(truth, np.array([0.9]))[0]
    found = {True: [], False: []}
    for _ in range(40):
        noisy = rows * truth + rng.normal(0, noise, MAGNITUDES)
        for exact, widths in found.items():
            shares = clipping.likely_shares(noisy, noise, rows, 0.0, exact=exact)
            widths.append(quantiles(shares, np.array([0.9]))[0] / needed)
    assert abs(np.mean(found[True]) - 1) < 0.05
    if share:
        assert abs(np.mean(found[False]) - 1) > abs(np.mean(found[True]) - 1)
