"""Low bits of Gaussian noise: is a released count 1 plus noise, or 0 plus noise?

`dp-ebm-gdp` at epsilon 1, delta 1e-6: 1,500 rows, five categorical features, and a canary that is
alone in a category of each. A tenth of epsilon is for the counts: all five together may tell both
tables apart with an advantage below 0.02 by honest means.
"""

import math

import pytest
from scipy import stats

from dprepro.privacy.composition import gdp_sigma
from dprepro.privacy.gdp import mu_of
from tests.attacks import exactly, releases, standin
from tests.attacks.evidence import Claims
from tests.attacks.low_bits import can_be_count
from tests.attacks.releases import DELTA, EPSILON, FITS, ROWS, RUNS

BINNING = 0.1 * EPSILON, DELTA / 2
FEATURES = 5
SCALE = gdp_sigma(FEATURES, *BINNING)
HONEST_ADVANTAGE = 2 * stats.norm.cdf(mu_of(*BINNING) / 2) - 1


pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def shipped():
    return {
        present: [releases.counts(present, seed) for seed in range(FITS)]
        for present in (False, True)
    }


def own_bin(present):
    """Return the noisy count below which a category is merged with others."""
    return (ROWS - (not present)) / 32


def claims(models, present):
    """Return the claims that the canary is there, or is not: no noise gives a count otherwise."""
    return Claims.of(
        lambda counts: any(not can_be_count(count, float(not present)) for count in counts),
        models[present],
        models[not present],
    )


def released_by(arithmetic):
    """Return what `releases.counts` does, made by `standin` or `exactly`."""
    return {
        present: [counts_of_a_model(arithmetic, present, seed) for seed in range(RUNS)]
        for present in (False, True)
    }


def counts_of_a_model(arithmetic, present, seed):
    drawn = [arithmetic.count(present, SCALE, FEATURES * seed + k) for k in range(FEATURES)]
    return [count for count in drawn if count.value >= own_bin(present)]


@pytest.mark.parametrize("present", [True, False])
def test_the_attack_succeeds_on_floating_point(present):
    found = claims(released_by(standin), present)
    assert found.wrong == 0
    assert found.right > 0.2 * RUNS
    assert found.delta(EPSILON) > 0.15


def check_failed(found):
    assert found.advantage <= HONEST_ADVANTAGE + 4 * found.error
    assert found.delta(EPSILON) <= DELTA


@pytest.mark.parametrize("present", [True, False])
def test_the_attack_fails_on_exact_noise(present):
    check_failed(claims(released_by(exactly), present))


@pytest.mark.audits
@pytest.mark.parametrize("present", [True, False])
def test_the_attack_fails_on_dp_ebm(shipped, present):
    check_failed(claims(shipped, present))


@pytest.mark.audits
@pytest.mark.parametrize("present", [True, False])
def test_the_attack_was_given_what_it_expects(shipped, present):
    counts = [count for counts in shipped[present] for count in counts]
    assert [count.scale for count in counts] == pytest.approx([SCALE] * len(counts))
    own = float(stats.norm.sf(own_bin(present), present, SCALE))
    share = len(counts) / (FEATURES * FITS)
    assert share == pytest.approx(own, abs=5 * math.sqrt(own / (FEATURES * FITS)))
    assert all(count.value >= own_bin(present) for count in counts)
