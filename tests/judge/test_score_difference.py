import math

import pytest

from dprepro.judge.statistics import score_difference


@pytest.mark.parametrize("score", [0.9, 1e-9, 60_000.0, -3.0])
def test_scores_that_differ_in_their_last_bits_are_equal(score):
    near = math.nextafter(math.nextafter(score, math.inf), math.inf)
    assert score_difference(score, near) == score_difference(near, score) == 0.0
    other = score * (1 + 1e-11)
    assert score_difference(score, other) == score - other != 0
    assert score_difference(other, score) == other - score


def test_zero_equals_nothing_but_itself():
    assert score_difference(0.0, 0.0) == 0.0
    assert score_difference(0.0, 1e-300) == -1e-300
