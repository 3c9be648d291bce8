"""Trees are drawn without rows; as published, rows at a candidate train on the other side."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.s_bdt.trees import Cells, draw_tree

NUMERIC = Cells.of(NumericFeature("x", 0, 1), 4, None)
CATEGORIES = Cells.of(CategoricalFeature("c", ("a", "b", "c")), 4, None)


def draws(cells, number=300, **settings):
    generator = np.random.default_rng(3)
    return [draw_tree(cells, generator=generator, **settings) for _ in range(number)]


def test_one_split_has_cells_up_to_a_candidate_on_the_left():
    found = {tuple(tree.trains) for tree in draws(NUMERIC, depth=1)}
    # Cell 2j + 1 is candidate j. A split at the last candidate leaves one cell on the right.
    assert found == {tuple([0] * (2 * j + 2) + [1] * (9 - 2 * j - 2)) for j in range(4)}


def test_training_and_prediction_agree_but_for_candidates_as_published():
    for tree in draws(NUMERIC, depth=3):
        np.testing.assert_array_equal(tree.trains, tree.predicts)
    differ = [tree.trains != tree.predicts for tree in draws(NUMERIC, depth=1, as_published=True)]
    assert {tuple(np.flatnonzero(each)) for each in differ} == {(1,), (3,), (5,), (7,)}


def test_a_category_goes_left_and_all_others_right():
    found = {tuple(tree.trains) for tree in draws(CATEGORIES, depth=1, as_published=True)}
    assert found == {(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1)}


@pytest.mark.parametrize("cells", [NUMERIC, CATEGORIES])
def test_leaves_are_numbered_from_0_on(cells):
    for tree in draws(cells, depth=3, as_published=True):
        assert {*tree.trains, *tree.predicts} == set(range(tree.leaves))


def test_a_constrained_tree_splits_only_what_its_parents_leave_open():
    """Of four candidates, two levels: after candidate 1, the left has one left and is a leaf."""
    kinds = {tuple(tree.trains) for tree in draws(NUMERIC, depth=2, constrained=True)}
    at_1 = {kind for kind in kinds if len({*kind[:4]} & {*kind[4:]}) == 0 and kind[0] == kind[3]}
    # Left of candidate 1 nothing splits; right of it, at candidate 2 or 3.
    assert {kind for kind in at_1 if len({*kind[4:]}) == 2} == {
        (0, 0, 0, 0, 1, 1, 2, 2, 2), (0, 0, 0, 0, 1, 1, 1, 1, 2),
    }  # fmt: skip
    # No node repeats the split of its parent, as others may.
    assert {tree.leaves for tree in draws(NUMERIC, depth=2, constrained=True)} == {3}
    assert min(tree.leaves for tree in draws(NUMERIC, depth=2)) == 2


def test_a_constrained_tree_leaves_the_side_of_a_category_alone():
    for tree in draws(CATEGORIES, depth=2, constrained=True):
        alone = [list(tree.trains).count(leaf) for leaf in range(tree.leaves)]
        assert alone.count(1) >= 1
        assert tree.leaves in (2, 3)


def test_a_draw_is_made_for_every_node_whatever_it_needs():
    """So the stream of public choices does not depend on them."""
    one, two = np.random.default_rng(0), np.random.default_rng(0)
    draw_tree(NUMERIC, 3, one, constrained=True)
    draw_tree(NUMERIC, 3, two)
    assert one.random() == two.random()


X = NumericFeature("x", 10, 20)
C = CategoricalFeature("c", ("a", "b"))


def test_candidates_are_equidistant_within_the_bounds_or_below_a_border():
    assert Cells.of(X, 4, None).candidates.tolist() == [10, 12.5, 15, 17.5]
    assert Cells.of(X, 4, 100).candidates.tolist() == [0, 25, 50, 75]
    assert Cells.of(C, 4, None).candidates.tolist() == []


def test_a_candidate_has_a_cell_of_its_own():
    cells = Cells.of(X, 2, None)  # 10 and 15
    values = pd.Series([9, 10, 11, 15, 16, np.nan])
    assert cells.encode(values).tolist() == [0, 1, 2, 3, 4, 0]
    assert cells.count == 5


def test_a_category_has_a_cell_and_all_others_share_one():
    cells = Cells.of(C, 2, None)
    assert cells.encode(pd.Series(["b", "a", "z", None])).tolist() == [1, 0, 2, 2]
    assert cells.count == 3


@pytest.mark.parametrize(
    ("feature", "values", "message"),
    [
        (C, ["a", "z"], "holds a category that is not in its domain"),
        (C, ["a", None], "has missing values"),
        (X, [1.0, np.nan], "has missing values"),
    ],
)
def test_rows_that_train_keep_to_the_domain(feature, values, message):
    cells = Cells.of(feature, 2, None)
    with pytest.raises(ValueError, match=message):
        cells.encode(pd.Series(values), refuse=True)
