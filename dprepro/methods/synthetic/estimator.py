"""What practitioners do in the place of a private learner: private synthetic rows, and any learner.

The rows are those of MST: McKenna, Miklau, Sheldon, "Winning the NIST contest: a scalable and
general approach to differentially private synthetic data" (2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature, TaskKind
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.base import DPEstimator, FrameModel, tagged
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    fitting,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.estimators.targets import target_range, task_of_labels
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.synthetic import ADJACENCY
from dprepro.methods.synthetic.curator import SyntheticCurator
from dprepro.methods.synthetic.mst import drawn_cells, learn
from dprepro.privacy.private_rows import Private
from dprepro.runtime.arguments import DELTA, EPSILON, Both, Integer, Number, OrNone

LEARNER = "lightgbm"
"""The method of the registry that learns from synthetic rows, with its defaults."""

_EPSILON = Both(EPSILON, Number(1e-3, 1e3, "[]"))
"""For less or more the accountant cannot show that rho is what (epsilon, delta) leave."""


@dataclass(eq=False, repr=False, kw_only=True)
class _Synthetic(DPEstimator, FrameModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "n_bins": Integer(2, 1000), "epsilon": _EPSILON, "delta": DELTA, "domain": OrNone(DOMAIN),
        "random_state": SEED,
    })  # fmt: skip

    n_bins: int = 32
    epsilon: float = 1.0
    delta: float = 1e-6
    domain: Domain | None = None
    random_state: int | None = None

    def _train(self, rows: Private[Any], domain: Domain, task: TaskKind, target: Bins) -> None:
        self.domain_ = domain
        self.ledger_ = self._new_ledger(
            ADJACENCY,
            [
                "names, types and number of features",
                domain.is_public and "bounds, categories and target range or labels",
                "that there are at least two rows"
                + ("" if domain.is_public else ", and labels that occur"),
            ],
        )
        columns = [*(Bins.of(feature, self.n_bins) for feature in domain.features), target]
        curator = SyntheticCurator(rows, domain, columns, self.ledger_, self.random_state)
        model, places = learn(curator, [each.count for each in columns])
        self.pairs_ = list(model.tables)
        self.columns_ = columns
        self.cells_ = drawn_cells(model, places, curator.public_generator)
        seed = int(curator.public_generator.integers(2**31))
        X, y = self.synthetic_rows()
        setting = Setting(task, np.inf, 0.0, domain, seed)
        made = registry.get(LEARNER).build(setting)
        if task != "regression":
            y = self.cells_[:, -1]
            if np.unique(y).size < 2:
                made = DummyClassifier()
        self.learner_ = made.fit(self._encoded(X), y)

    def synthetic_rows(self) -> tuple[pd.DataFrame, Any]:
        """Return X (rows, K) and y (rows,), with the labels or numbers of the domain.

        A number is the middle of its bin.
        """
        *features, target = (
            bins.decode(own) for bins, own in zip(self.columns_, self.cells_.T, strict=True)
        )
        names = [feature.name for feature in self.domain_.features]
        return pd.DataFrame(dict(zip(names, features, strict=True))), target

    def _encoded(self, X: pd.DataFrame) -> Any:
        named = X.set_axis([feature.name for feature in self.domain_.features], axis=1)
        return ENCODINGS[registry.get(LEARNER).encoding](self.domain_).transform(named)


@tagged(poor_score=True, multi_class=True)
class SyntheticClassifier(ClassifierMixin, _Synthetic):
    """LightGBM with its defaults, trained on private synthetic rows.

    Numbers are cut into bins of equal width between their public bounds, and a missing value has a
    bin of its own. The label is one more column. Then, as MST does it,

    1. all columns' counts of rows are released with Gaussian noise. Cells whose noisy count is
       below three standard deviations are merged to one from then on;
    2. a spanning tree of pairs of columns is chosen, pair by pair, by the exponential mechanism:
       the score of a pair is the L1 distance of its counts from those of independent columns;
    3. the counts of its pairs are released with Gaussian noise;
    4. rows are drawn from a distribution whose columns depend on each other along this tree alone,
       as many as the noisy counts say, 2^20 at most. Merged cells are divided evenly.

    Each of the first three gets a third of rho, into which (epsilon, delta) is converted (Canonne,
    Kamath, Steinke 2020, Proposition 12).

    A number of a synthetic row is the middle of its bin: then LightGBM cuts at edges of bins, and
    invents no order within one. It predicts for rows as they are, with no bins.

    Here it is not as the authors' code: their estimate is the likeliest by a mirror descent for all
    counts together. Here counts of columns are the means of all that say something of them, and
    then the nearest that are not below 0; counts of a pair are the nearest with these of its
    columns (`tree_model`). Noise is exact.

    Formal guarantee: (epsilon, delta)-DP under add/remove-one, given a public domain. The number of
    rows is private.

    Parameters
    ----------
    n_bins : int
        Bins of a number, from 2 to 1000.
    epsilon, delta : float
        The privacy budget; epsilon from 0.001 to 1000.
    domain : Domain or None
        Bounds, categories, labels or target range; None reads them from the rows, which epsilon
        does not cover.
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    pairs_ : list of (int, int)
        The tree: pairs of columns, by their numbers; the target is the last column.
    columns_ : list of Bins
        The bins of each column.
    cells_ : int64 (rows, K + 1)
        The synthetic rows; see `synthetic_rows`.
    learner_
        The model that was trained on them.
    ledger_ : Ledger
        Counts of columns, choices of pairs, counts of pairs.

    Raises
    ------
    ValueError
        On parameters out of range, and values and labels that the domain rules out.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> domain = Domain((NumericFeature("mean radius", 0, 40),
    ...                  NumericFeature("mean texture", 0, 50)), ("malignant", "benign"))
    >>> model = SyntheticClassifier(epsilon=8, domain=domain, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    @fitting
    def fit(self, X: Any, y: Any) -> SyntheticClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes."""
        rows = read_training_rows(self, X, y, self.domain, "labels")
        task = task_of_labels(self.classes_, self.domain)
        domain = resolve_domain_of(self, rows, task)
        labels = tuple(map(str, range(len(self.classes_))))
        self._train(rows, domain, task, Bins.of(CategoricalFeature("target", labels), 0))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of all classes, float64 (n, classes)."""
        frame = self._frame(X)
        found = np.zeros((len(frame), len(self.classes_)))
        found[:, self.learner_.classes_] = self.learner_.predict_proba(self._encoded(frame))
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of each row, (n,)."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]


@tagged(poor_score=True)
class SyntheticRegressor(RegressorMixin, _Synthetic):
    """LightGBM with its defaults, trained on private synthetic rows; see `SyntheticClassifier`.

    The target is cut into bins of its public range, too, and clipped to it. It is the middle of its
    bin in a synthetic row.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> SyntheticRegressor:
        """Fit to X (n, K) and targets y (n,)."""
        rows = read_training_rows(self, X, y, self.domain, "regression")
        domain = resolve_domain_of(self, rows, "regression")
        target = NumericFeature("target", *target_range(domain))
        self._train(rows, domain, "regression", Bins.of(target, self.n_bins))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) in the target's unit, within the target's bounds."""
        frame = self._frame(X)
        found: np.ndarray = np.clip(
            self.learner_.predict(self._encoded(frame)), *target_range(self.domain_)
        )
        return found
