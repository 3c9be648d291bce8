"""A small problem for DPBoost, a curator of any rows, and the gains of given sums."""

import math

import numpy as np
import pandas as pd

from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dpboost.curator import DPBoostCurator
from dprepro.methods.dpboost.kernel import GAIN_UNIT, UNIT, gains_of
from dprepro.methods.dpboost.tree import FitSettings, Forest
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private


def params(**changes):
    settings = {
        "epsilon": 2.0, "n_trees": 50, "trees_per_ensemble": 50, "learning_rate": 0.1,
        "max_depth": 6, "ridge": 0.1,
    }  # fmt: skip
    return FitSettings(**settings | changes)


def problem(n=4000, seed=0, bins=(8, 8)):
    """Return whole numbers below `bins`, float64 (n, 2), and targets that follow them."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, b, n) for b in bins]).astype(float)
    targets = np.where(codes[:, 0] > 3, 0.6, -0.6) + 0.2 * (codes[:, 1] > 4)
    return codes, targets


def curator(variant, codes, targets, settings=None, seed=0, bins=(8, 8), **ledger):
    """Return a curator whose public bins are the whole numbers; targets lie in [-1, 1]."""
    frame = pd.DataFrame(codes, columns=["a", "b"])
    features = tuple(
        NumericFeature(name, -0.5, b - 0.5) if b > 1 else NumericFeature(name, 0.0, 0.0)
        for name, b in zip("ab", bins, strict=True)
    )
    settings = settings or params()
    book = Ledger(
        **{"epsilon": settings.epsilon, "delta": 0.0, "adjacency": variant.adjacency,
           "gaps": list(variant.gaps)} | ledger
    )  # fmt: skip
    return DPBoostCurator(
        Private(Rows(frame, targets)), Domain(features, (-1.0, 1.0)), (-1.0, 1.0), max(bins),
        settings, variant, book, seed,
    )  # fmt: skip


def scores_of(trees, codes, start=0):
    """Return the scores of rows with `codes`, int64 (n,) in units of the grid."""
    forest = Forest(codes, start)
    forest.add(*trees)
    return forest.scores(np.arange(len(codes)))


def encoded(made, codes):
    """Return the codes that the curator's bins give, uint8 (n, 2)."""
    columns = [bins.encode(codes[:, k]) for k, bins in enumerate(made.bins)]
    return np.column_stack(columns)


def of_cuts(bins, ridge):
    """Return what the gains of all cuts are without the parent's term, in whole units.

    `bins` are pairs (sum of gradients, rows). The kernel subtracts the parent's term, rounded down,
    from every gain.
    """
    histogram = np.array(bins)
    left_gradients, left_rows = np.ascontiguousarray(np.cumsum(histogram, axis=0)[:-1].T)
    gains = np.empty(left_rows.size, np.int64)
    gains_of(left_gradients, left_rows, *histogram.sum(axis=0).tolist(), ridge, gains)
    gradient, rows = histogram.sum(axis=0).tolist()
    score = (gradient * UNIT) * (gradient * UNIT) / (rows + ridge) if rows else 0.0
    return [gain + math.floor(score / GAIN_UNIT) for gain in gains.tolist()]
