"""Bins, cuts, and the way of a row through a tree."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.privatree.bins import Cuts, Tree, below


def test_a_value_is_in_the_first_bin_whose_edge_it_does_not_exceed():
    bins = Bins.of(NumericFeature("x", 0, 10), 10)
    assert bins.edges.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    values = pd.Series([-5, 0, 1, 1.001, 9, 9.5, 10, 99])
    assert bins.encode(values).tolist() == [0, 0, 0, 1, 8, 9, 9, 9]
    assert bins.count == 10


def test_a_missing_value_has_the_last_bin():
    bins = Bins.of(NumericFeature("x", 0, 1, missing=True), 4)
    assert bins.count == 5
    assert bins.encode(pd.Series([0.1, np.nan, 1.0])).tolist() == [0, 4, 3]
    with pytest.raises(ValueError, match="missing values"):
        Bins.of(NumericFeature("x", 0, 1), 4).encode(pd.Series([np.nan]), refuse=True)


def test_a_category_is_its_own_bin():
    bins = Bins.of(CategoricalFeature("c", ("u", "v")), 10)
    assert bins.count == 2
    assert bins.encode(pd.Series(["v", "u", "w"])).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="not in its domain"):
        bins.encode(pd.Series(["w"]), refuse=True)
    missing = Bins.of(CategoricalFeature("c", ("u", "v"), missing=True), 10)
    assert missing.count == 3
    assert missing.encode(pd.Series(["u", None])).tolist() == [0, 2]


def test_a_feature_of_one_value_has_one_bin():
    assert Bins.of(NumericFeature("x", 2, 2), 10).count == 1
    assert Bins.of(CategoricalFeature("c", ()), 10).count == 1


def test_every_bin_is_a_cut():
    cuts = Cuts.of([Bins.of(NumericFeature("x", 0, 1), 3), Bins.of(NumericFeature("z", 1, 1), 3)])
    assert cuts.feature.tolist() == [0, 0, 0, 1]
    assert cuts.last.tolist() == [0, 1, 2, 0]
    assert cuts.starts.tolist() == [0, 3]
    assert len(cuts) == 4


def test_rows_go_left_up_to_the_cut_of_their_node():
    codes = np.array([[0, 1, 2, 2], [0, 1, 0, 1]])
    places = below(np.zeros(4, int), np.array([0]), np.array([1]), codes)
    assert places.tolist() == [0, 0, 1, 1]
    assert below(places, np.array([1, 1]), np.array([0, 0]), codes).tolist() == [0, 1, 2, 3]
    tree = Tree(np.array([0, 1, 1]), np.array([1, 0, 0]), np.array([0, 1, 1, 0]))
    assert tree.labels_of(codes).tolist() == [0, 1, 1, 0]
