"""A user's file of methods whose ledgers say more, or less, than their code does."""

from __future__ import annotations

from pathlib import Path

from tests.lab import CARD

SOURCE = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from dprepro.methods.entry import Guarantee, Method
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.guarantee_status import Noise


class Fake:
    entries, unaccounted, holds, epsilon = ("a count",), [], True, 1.0
    def summary(self):
        return {"epsilon": 1.0, "true_epsilon": 0.1, "adjacency": "zero-out", "holds": True}


class Kinder(Ledger):
    def spent_epsilon(self, adjacency=None):
        return 0.1


class Share(ClassifierMixin, BaseEstimator):
    # The noisy share of the second class, for every row: a row moves the count by 1.
    def __init__(self, epsilon, seed, kind):
        self.epsilon, self.seed, self.kind = epsilon, seed, kind

    def fit(self, X, y):
        scale, count = 1 / self.epsilon, int(np.sum(y))
        self.ledger_ = (Kinder if self.kind == "kinder" else Ledger)(self.epsilon, 0.0, "zero-out")
        if self.kind in ("ours", "undrawn"):
            noise = NoiseSource(self.ledger_, self.seed)
            noise.enter_laplace(releases="a count", epsilon=self.epsilon, sensitivity=1.0)
            if self.kind == "ours":
                count = float(noise.add_laplace(np.asarray(count), scale))
        else:
            self.ledger_.add(LedgerEntry("laplace", "a count", 1.0, "L1", scale, 1,
                                         (self.epsilon, 0.0)))
            seed = 5 if self.kind == "fixed" else self.seed
            drawn = np.random.default_rng(seed).laplace(scale=scale)
            count += {"none": 0, "smaller": drawn / 8}.get(self.kind, drawn)
        if self.kind == "fake":
            self.ledger_ = Fake()
        self.classes_, self.share_ = np.array([0, 1]), count / len(y)
        return self

    def decision_function(self, X):
        return np.full(len(X), self.share_) + np.asarray(X)[:, 0]

    def predict(self, X):
        return (self.decision_function(X) > 0.5).astype(int)


def method(kind):
    return Method("my-" + kind, kind, frozenset({"binary"}), Guarantee.PURE, "zero-out", (), "me",
                  lambda setting, **p: Share(setting.epsilon, setting.seed, kind),
                  takes_epsilon=True, keeps_ledger=True, encoding="unit-norm", noise=Noise.EXACT)


KINDS = ("numpy", "none", "fixed", "smaller", "fake", "kinder", "ours", "undrawn")
METHODS = [method(kind) for kind in KINDS]
"""
_CONFIG = """
dataset: tiny.yaml
metric: auc
domain: public
splits: 2
seed: {seed}
epsilons: [1]
delta: 1e-6
methods: [{methods}]
"""


def write(folder: Path, *kinds: str, seed: str = "null") -> Path:
    """Write the methods, a card with rows and a config of these kinds; return the config."""
    (folder / "methods").mkdir(exist_ok=True)
    (folder / "methods" / "mine.py").write_text(SOURCE)
    (folder / "tiny.yaml").write_text(CARD)
    rows = "".join(f"{i / 10 - 3},{'uv'[i % 2]},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    (folder / "tiny.csv").write_text("a,b,y\n" + rows)
    config = folder / "mine.yaml"
    names = ", ".join(f"my-{kind}" for kind in kinds)
    config.write_text(_CONFIG.format(seed=seed, methods=f"{names}, dp-logistic-fair"))
    return config
