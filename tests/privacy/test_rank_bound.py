"""The bound on mu by ranks: its law, which mechanisms it covers, and how sharp it is."""

import numpy as np
import pytest

from dprepro.privacy.lower_bounds import Guesses, mu_by_ranks, mu_lower_bound

MU = 0.3


def drawn(generator, mu=MU, runs=1000, share=0.5):
    present = generator.random(runs) < share
    return generator.standard_normal(runs) + mu * present, present


@pytest.mark.parametrize(("share", "confidence"), [(0.5, 0.95), (0.2, 0.9)])
def test_it_exceeds_the_truth_as_rarely_as_is_said(share, confidence):
    """Of normals that differ by mu: of 1,200 bounds, 1 - confidence within four deviations."""
    generator = np.random.default_rng(0)
    bounds = [mu_by_ranks(*drawn(generator, share=share), confidence) for _ in range(1200)]
    risk = 1 - confidence
    too_high = np.mean(np.array(bounds) > MU)
    assert abs(too_high - risk) < 4 * np.sqrt(risk * confidence / 1200)


def told_at_once(generator, mu):
    """Says all in few runs: where |z| is large it gives its sign, else nothing."""
    scores, present = drawn(generator, mu)
    return np.where(np.abs(scores - mu / 2) > 1.5, np.sign(scores - mu / 2), 0.0), present


def told_in_one_bit(generator, mu):
    scores, present = drawn(generator, mu)
    return (scores > mu / 2).astype(float), present


@pytest.mark.parametrize("told", [told_at_once, told_in_one_bit])
def test_whatever_else_keeps_mu_is_not_refuted_more_often(told):
    generator = np.random.default_rng(1)
    bounds = [mu_by_ranks(*told(generator, MU), 0.95) for _ in range(300)]
    assert np.mean(np.array(bounds) > MU) < 0.05


def test_transforming_scores_changes_nothing():
    scores, present = drawn(np.random.default_rng(2))
    assert mu_by_ranks(scores, present, 0.95) == mu_by_ranks(np.exp(5 * scores), present, 0.95)


def test_it_is_as_sharp_as_guesses_with_half_as_many_runs_again():
    """Mean distance from mu, of twenty audits each: 1.645 / sqrt(n), over 0.399 or over 0.489."""
    generator = np.random.default_rng(3)
    ranks, guesses = [], []
    for _ in range(20):
        scores, present = drawn(generator, 0.24, 20_000)
        ranks.append(mu_by_ranks(scores, present, 0.95))
        said = scores > 0.12
        wrong = (said & ~present).sum(), (~said & present).sum()
        counted = Guesses(wrong[0], (~present).sum(), wrong[1], present.sum())
        guesses.append(float(mu_lower_bound(counted)))
    assert 0.24 - np.mean(ranks) == pytest.approx(0.0238, abs=0.008)
    assert 0.24 - np.mean(guesses) == pytest.approx(0.0292, abs=0.010)
    assert np.std(ranks) < np.std(guesses)


def test_without_a_difference_u_has_the_variance_of_mann_and_whitney():
    """m n (m + n + 1) / 12. Mu is refuted from 1.645 deviations above m n / 2 on."""
    m = n = 500
    present = np.arange(m + n) < m
    likely = m * n / 2 + 1.6448536 * np.sqrt(m * n * (m + n + 1) / 12)
    for won, refutes in ((int(likely), False), (int(likely) + 1, True)):
        each = won // m + (np.arange(m) < won % m)  # so many without it lie below
        scores = np.concatenate([each - 0.5, np.arange(n)])
        assert (mu_by_ranks(scores, present, 0.95) > 0) is refutes


def test_ends_of_the_range():
    present = np.arange(2000) % 2 == 1
    alike = np.zeros(2000)
    assert mu_by_ranks(alike, present, 0.95) == 0.0
    assert mu_by_ranks(present * 1.0, present, 0.95) == 1.0
    assert mu_by_ranks(alike, np.ones(2000, bool), 0.95) == 0.0
    with pytest.raises(ValueError, match="at least 1000 runs, got 999"):
        mu_by_ranks(np.zeros(999), present[:999], 0.95)
