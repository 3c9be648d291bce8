"""What a row adds to a sum: within its bound at every score, and the same wherever it stands."""

import numpy as np
import pytest
from scipy.special import expit

from dprepro.methods.dp_ebm import kernel
from dprepro.methods.dp_ebm.losses import (
    COARSER,
    LARGEST,
    LIMIT,
    SCORE_BITS,
    label_part,
    largest_label_part,
    target_part,
)
from tests.methods.dp_ebm import lab

BOUNDS = [1, 2, 1000, LARGEST // 2, LARGEST // 2 + 1, 700_000, LARGEST - 1, LARGEST]


def grid():
    """Return margins: all near 0 and the limits, every 97th up to 17, some up to LIMIT."""
    near = np.arange(-3000, 3001)
    edges = [14 << SCORE_BITS, LIMIT, 2**24, 2**25]
    dense = np.arange(-(17 << SCORE_BITS), 17 << SCORE_BITS, 97)
    far = np.linspace(-LIMIT, LIMIT, 100_001).astype(np.int64)
    margins = np.concatenate(
        [near, *(sign * e + near for e in edges for sign in (1, -1)), dense, far]
    )
    return np.sort(np.clip(margins, -LIMIT, LIMIT)).astype(np.int32)


MARGINS = grid()


def written(margins, logistic, bound):
    out = np.empty(margins.size, np.int32)
    kernel._write_parts(margins, logistic, np.int32(bound), out)
    return out


def test_the_part_of_a_label_is_what_numpy_says_and_near_the_logistic_function():
    parts = written(MARGINS, True, LARGEST)
    np.testing.assert_array_equal(parts, lab.label_part(MARGINS, LARGEST))
    exact = LARGEST * expit(-np.ldexp(MARGINS.astype(float), -SCORE_BITS))
    assert np.abs(parts - exact).max() < 2
    assert parts.min() == 0
    assert parts.max() == LARGEST


@pytest.mark.parametrize("bound", BOUNDS)
def test_no_part_of_a_label_is_larger_than_any_bound(bound):
    parts = written(MARGINS[::7].copy(), True, bound)
    assert parts.min() >= 0
    assert parts.max() == bound


def test_the_largest_part_of_a_reach_holds_for_all_scores_within_it_and_is_no_looser():
    """So that clipping to it changes nothing: from margin -reach on no part is larger."""
    parts = written(MARGINS, True, LARGEST)
    from_here = np.maximum.accumulate(parts[::-1])[::-1]
    lower = MARGINS <= 0
    bounds = np.minimum(parts[lower].astype(int) + 1, LARGEST)
    assert (from_here[lower] <= bounds).all()
    for at in np.flatnonzero(lower)[:: lower.sum() // 2000]:
        reach = -int(MARGINS[at])
        assert from_here[at] <= largest_label_part(reach) <= from_here[at] + 1
        assert largest_label_part(reach) <= LARGEST


@pytest.mark.parametrize("bound", [1, 1000, LARGEST // 2, LARGEST, 2**27 - 1])
def test_the_part_of_a_target_is_its_residual_rounded_and_never_larger_than_the_bound(bound):
    most = 2**31 - 1
    near = np.arange(-50, 51)
    edges = np.concatenate([np.clip(e + near, -most - 1, most) for e in
                            (0, bound << 4, -(bound << 4), most, -most - 1)])  # fmt: skip
    residuals = np.concatenate([edges, np.linspace(-most, most, 10**6).astype(np.int64)])
    parts = written(residuals.astype(np.int32), False, bound)
    expected = np.clip(np.floor(residuals / 2**COARSER + 0.5), -bound, bound)
    np.testing.assert_array_equal(parts, expected)
    assert np.abs(parts).max() == bound


@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 63, 64, 65, 1000])
@pytest.mark.parametrize("logistic", [True, False])
def test_a_part_is_the_same_in_vectors_in_what_is_left_over_and_alone(n, logistic):
    rng = np.random.default_rng(n)
    margins = rng.integers(-(2**28), 2**28, n).astype(np.int32)
    alone = [
        (label_part if logistic else target_part)(np.int32(m), np.int32(LARGEST)) for m in margins
    ]
    np.testing.assert_array_equal(written(margins, logistic, LARGEST), alone)
