"""Sensitivities by brute force over small worst-case neighbours."""

import itertools
import json
import math

import numpy as np
import pytest

from dprepro.privacy.sensitivity import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZERO_OUT,
    Adjacency,
    histogram_sensitivity,
    leaf_sum_sensitivity,
)

CELLS = 3


def neighbours(rows, adjacency):
    """Every pair of neighbouring tables of up to 3 rows from `rows`; None is the null row."""
    tables = itertools.chain.from_iterable(
        itertools.combinations_with_replacement(rows, size) for size in range(3)
    )
    for table in tables:
        for row in rows:
            if adjacency == REPLACE_ONE:
                yield from (((*table, row), (*table, other)) for other in rows)
            elif adjacency == ZERO_OUT:
                yield (*table, row), (*table, None)
            else:
                yield (*table, row), table


def counts(table):
    return np.bincount([cell for cell in table if cell is not None], minlength=CELLS)


def leaf_sums(table):
    sums = np.zeros(CELLS)
    for row in table:
        if row is not None:
            sums[row[0]] += row[1]
    return sums


def worst(release, rows, adjacency):
    return max(
        float(np.linalg.norm(release(one) - release(other)))
        for one, other in neighbours(rows, adjacency)
    )


@pytest.mark.parametrize("adjacency", Adjacency)
def test_histogram_sensitivity_is_what_neighbours_reach(adjacency):
    reached = worst(counts, range(CELLS), adjacency)
    assert histogram_sensitivity(adjacency).stated == pytest.approx(reached)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("bound", [1.0, 0.5])
def test_leaf_sum_sensitivity_is_what_neighbours_reach(adjacency, bound):
    rows = list(itertools.product(range(CELLS), [-bound, 0.0, bound]))
    reached = worst(leaf_sums, rows, adjacency)
    assert leaf_sum_sensitivity(adjacency, bound).stated == pytest.approx(reached)


def test_the_replace_one_figure_is_the_same_under_every_relation():
    for adjacency in Adjacency:
        assert histogram_sensitivity(adjacency).replace_one == math.sqrt(2)
        assert leaf_sum_sensitivity(adjacency, 0.5).replace_one == 1.0


def test_a_multiple_of_a_release_has_a_multiple_of_its_sensitivity():
    scaled = leaf_sum_sensitivity(ZERO_OUT, 1.0) * 0.01
    assert (scaled.stated, scaled.replace_one) == (0.01, 0.02)


def test_an_unknown_relation_names_the_known_ones():
    with pytest.raises(ValueError, match=f"'{ZERO_OUT}', '{ADD_REMOVE}', '{REPLACE_ONE}', got 'x'"):
        histogram_sensitivity("x")


@pytest.mark.parametrize("text", ["zero-out", "add/remove-one", "replace-one"])
def test_a_relation_equals_its_text_and_is_written_as_it(text):
    member = Adjacency(text)
    assert member == text
    assert f"{member}" == str(member) == text
    assert json.loads(json.dumps({"adjacency": member})) == {"adjacency": text}


@pytest.mark.parametrize("other", ["neighbours", "", None, 1, ["zero-out"]])
def test_nothing_else_is_a_relation(other):
    with pytest.raises(ValueError, match=r"adjacency must be one of 'zero-out'.*, got"):
        Adjacency(other)
