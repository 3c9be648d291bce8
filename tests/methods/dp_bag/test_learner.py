"""Teachers and student see numeric features in [0, 1], and may know one class only."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_bag.curator import encode, learn

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


def test_coefficients_are_the_solvers_rounded_to_a_grid():
    rng = np.random.default_rng(0)
    X = rng.random((200, 4))
    codes = (X[:, 0] + rng.random(200) > 1).astype(int)
    found, solved = learn(X, codes), LogisticRegression(solver="liblinear").fit(X, codes)
    for name in ("coef_", "intercept_"):
        rounded, exact = getattr(found, name), getattr(solved, name)
        assert (np.ldexp(rounded, 30) % 1 == 0).all()
        assert (np.ldexp(exact, 30) % 1 != 0).any()
        np.testing.assert_allclose(rounded, exact, rtol=0, atol=2.0**-31)
