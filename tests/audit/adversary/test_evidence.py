"""The evidence is the likelihood ratio, and noise that is missing or repeated shows in it."""

import numpy as np
import pytest

from dprepro.audit.likelihood_ratio import (
    Answer,
    Choice,
    bare,
    log_chances,
    log_ratio,
    mu_squared,
    observed,
    repeated,
)

RUNS = 400
PARTS = (np.array([0.3, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.5, 0.1]))


def answers(present, noises):
    return [Answer("a", z + part * present, part) for z, part in zip(noises, PARTS, strict=True)]


@pytest.fixture(scope="module")
def noises():
    return np.random.default_rng(0).normal(size=(RUNS, 2, 4))


def test_normal_noise_gives_the_ratio_of_gaussian_privacy(noises):
    mu = np.sqrt(mu_squared(answers(1, noises[0])))
    assert mu == pytest.approx(np.sqrt(0.35))
    found = [[log_ratio(answers(present, z)) for z in noises] for present in (0, 1)]
    np.testing.assert_allclose(np.mean(found, axis=1), [-(mu**2) / 2, mu**2 / 2], atol=0.06)
    np.testing.assert_allclose(np.std(found, axis=1), mu, rtol=0.1)


def test_missing_noise_is_found(noises):
    silent = noises.copy()
    silent[:, 0, 0] = 0
    found = np.array([[bare(answers(present, z)) for z in silent] for present in (0, 1)])
    honest = np.array([bare(answers(1, z)) for z in noises])
    assert np.median(found[0]) < -5 < 5 < np.median(found[1])
    assert np.median(np.abs(honest)) < 1


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("place", [(1, 2), (0, 2)], ids=["the same place", "the same answer"])
def test_noise_that_is_used_twice_is_found(noises, sign, place):
    """In two answers at one place, or at two places of one answer."""
    again = noises.copy()
    at, of = ((1, 2), (0, 2)) if place == (1, 2) else ((1, 2), (1, 0))
    again[:, at[0], at[1]] = sign * again[:, of[0], of[1]]
    found = np.array([[repeated(answers(present, z)) for z in again] for present in (0, 1)])
    honest = np.array([repeated(answers(1, z)) for z in noises])
    assert np.median(found[0]) < -5 < 5 < np.median(found[1])
    assert np.mean(found[0] < found[1]) > 0.99
    assert np.median(np.abs(honest)) < 3


def test_laplace_noise_gives_no_more_than_the_part():
    noise = np.random.default_rng(0).laplace(size=2000)
    ratios = [Answer("a", np.array([z]), np.array([0.7]), "laplace").log_ratio for z in noise]
    assert max(ratios) == pytest.approx(0.7)
    assert min(ratios) == pytest.approx(-0.7)


def test_a_choice_is_as_likely_as_its_utility_says():
    chances = np.exp(log_chances(np.array([0.0, 2.0, 1000.0]), 2.0))
    assert chances.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        log_chances(np.array([0.0, 2.0]), 2.0), np.log([1 / (1 + np.e), np.e / (1 + np.e)])
    )


def test_what_is_observed_has_one_size(noises):
    few = [*answers(1, noises[0]), Choice("c", 0.25)]
    seen = observed(few, 5)
    assert seen.shape == (8,)
    assert seen[0] == pytest.approx(log_ratio(few))
    np.testing.assert_array_equal(seen[-3:], [0.25, 0, 0])
    assert seen[3] == pytest.approx(noises[0, 0, 0] + 0.3)
