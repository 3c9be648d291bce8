"""Teachers and student see numeric features in [0, 1], and may know one class only."""

import numpy as np
import pandas as pd

from dprepro.baselines.dp_bag.learner import encode, learn
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature

DOMAIN = Domain((NumericFeature("x", -2, 2), CategoricalFeature("c", ("a", "b"))), ("0", "1"))


def test_rows_are_scaled_by_their_bounds_and_categories_become_indicators():
    X = encode(pd.DataFrame({"x": [-2.0, 1.0, 9.0], "c": ["a", "b", "a"]}), DOMAIN)
    np.testing.assert_allclose(X, [[0, 1, 0, 1], [0.75, 0, 1, 1], [1, 1, 0, 1]])


def test_one_class_alone_is_what_it_says():
    X = np.zeros((3, 1))
    assert learn(X, np.array([1, 1, 1])).predict(X).tolist() == [1, 1, 1]


def test_two_classes_are_told_apart():
    X = np.repeat([[0.0], [10.0]], 20, axis=0)
    codes = np.repeat([0, 1], 20)
    assert learn(X, codes).predict(X).tolist() == codes.tolist()
