import math

import pytest

from dprepro.results.metrics import level, level_in_words, with_level


@pytest.mark.parametrize(
    ("epsilon", "heading", "words", "title"),
    [
        (0.5, "0.5", "epsilon 0.5", "EBM, ε=0.5"),
        (8.0, "8", "epsilon 8", "EBM, ε=8"),
        (math.inf, "Non-Private", "non-private", "EBM"),
    ],
)
def test_a_level_reads_alike_wherever_it_stands(epsilon, heading, words, title):
    assert level(epsilon) == heading
    assert level_in_words(epsilon) == words
    assert with_level("EBM", epsilon) == title
