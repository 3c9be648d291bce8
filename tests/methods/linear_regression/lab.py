"""Rows for linear regression, and a curator of any rows."""

import numpy as np

from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.inputs import Arrays
from dprepro.methods.entry import Setting
from dprepro.methods.linear_regression.curator import LinearCurator
from dprepro.methods.registry import get
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.sensitivity import REPLACE_ONE

BOUNDS = (10.0, 30.0)
DOMAIN = Domain((NumericFeature("a", -1, 1), NumericFeature("b", -1, 1)), BOUNDS)
COLUMNS = 3


def rows(n=4000, seed=0):
    """Return X (n, 3) in [-1, 1], its last column the constant, and y well inside `BOUNDS`."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (n, COLUMNS - 1)), np.ones(n)])
    return X, X @ [3.0, -2.0, 19.0] + rng.normal(0, 0.5, n)


def scaled(y):
    return (y - 20) / 10


def build(name, epsilon=1.0, seed=None, domain=DOMAIN):
    return get(name).build(Setting("regression", epsilon, 0.0, domain, seed))


def curator(X, y, epsilon=1.0, seed=None):
    """Return a curator of columns and a target whose public bounds are -1 and 1."""
    ledger = Ledger(epsilon, 0.0, REPLACE_ONE)
    return LinearCurator(Private(Arrays(X, y)), (-1.0, 1.0), ledger, seed, ())
