"""PrivaTree: Vos, Vos, Li, Erkin, Verwer, "Differentially-private decision trees and provable
robustness to data poisoning", as its authors' code was when they printed its results (2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.data.domain import Domain
from dprepro.estimators.base import BinaryModel, DPEstimator
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    fitting,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.privatree import ADJACENCY
from dprepro.methods.privatree.bins import Tree
from dprepro.methods.privatree.curator import (
    NOISY_SIZE,
    Cut,
    Descend,
    LeafLabels,
    NodeSize,
    PrivaTreeCurator,
    gini_sensitivity,
)
from dprepro.runtime.arguments import EPSILON, INSIDE, Integer, OrNone, flag

_MOST_DEPTH, _MOST_BINS = 10, 1000


def grow(curator: PrivaTreeCurator, depth: int, as_published: bool) -> Tree:
    """Return a complete tree of so many levels of cuts, from what a curator answers."""
    chosen: list[int] = []
    for level in range(depth):
        nodes = range(2**level - 1, 2 ** (level + 1) - 1)
        chosen += [int(curator.cut(_query(curator, node, as_published)).value[0]) for node in nodes]
        curator.tell(Descend(np.array(chosen[nodes.start :])))
    labels = curator.labels(LeafLabels(0.5, 1.0)).value
    return Tree(curator.cuts.feature[chosen], curator.cuts.last[chosen], labels)


def _query(curator: PrivaTreeCurator, node: int, as_published: bool) -> Cut:
    """Return the query for the cut of a node, as published after its noisy number of rows."""
    if not as_published:
        return Cut(1.0, 1.0, node, divided=False)
    size = max(float(curator.size(NodeSize(1.0, 1.0, node)).value[0]), 1.0)
    return Cut(gini_sensitivity(size), 1.0, node, divided=True, gap=NOISY_SIZE)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivaTreeClassifier(BinaryModel, DPEstimator):
    """A decision tree for two labels, whose cuts and labels are chosen by permute-and-flip.

    Numeric features have bins of equal width, and a category's bin is its place among the
    categories. Each node is cut after some bin of some feature: that of the least weighted Gini
    impurity is the likeliest. All nodes above `max_depth` are cut, also if they hold no row. Each
    leaf gets a label, the most frequent the likeliest. Labels get the part of epsilon that
    `accepted_error` asks for, one half at most, and the levels of the tree share the rest equally.

    Formal guarantee: epsilon-DP under zero-out, where the domain is public. A row is in one node of
    each level, and in one leaf. The impurity of a cut is multiplied by the rows of its node: then a
    row moves it by less than 2, and that of all cuts in the same direction. The curator has the
    proof.

    With `as_published` it does as the authors' code, and nothing is guaranteed:

    - bins lie between the least and the largest value of the training rows, which the ledger lists;
    - the impurity is divided by the rows of the node. How far a row moves it follows from their
      number, for which a noisy one is taken, without a margin. Half of a level's budget pays for
      it. The ledger names the gap.

    There, noise on numbers of rows is two-sided geometric, here Laplace noise rounded to whole
    numbers.

    Parameters
    ----------
    max_depth : int
        Cuts from the root to each leaf, up to 10.
    n_bins : int
        Bins of a numeric feature.
    accepted_error : float
        The expected share of training rows whose leaf may get a wrong label by the noise.
    as_published : bool
        See above.
    epsilon : float
        The budget.
    domain : Domain or None
        Bounds, categories, labels; None reads them from the rows, which epsilon does not cover.
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    bins_ : list of Bins
        Of each feature.
    tree_ : Tree
        Cuts and labels, without counts.
    ledger_ : Ledger
        Permute-and-flip choices of cuts and labels; as published also numbers of rows.

    Raises
    ------
    ValueError
        On parameters out of range, values and labels that the domain rules out, or other than two
        labels.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> domain = Domain((NumericFeature("mean radius", 0, 40),
    ...                  NumericFeature("mean texture", 0, 50)), ("malignant", "benign"))
    >>> model = PrivaTreeClassifier(epsilon=5, max_depth=2, domain=domain, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    kinds = MappingProxyType({
        "max_depth": Integer(1, _MOST_DEPTH), "n_bins": Integer(1, _MOST_BINS),
        "accepted_error": INSIDE, "as_published": flag, "epsilon": EPSILON,
        "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    max_depth: int = 4
    n_bins: int = 10
    accepted_error: float = 0.01
    as_published: bool = False
    epsilon: float = 1.0
    domain: Domain | None = None
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> PrivaTreeClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes."""
        rows = read_training_rows(self, X, y, self.domain, "binary")
        self.domain_ = domain = resolve_domain_of(self, rows, "binary")
        ledger = self._new_ledger(
            ADJACENCY,
            ["number of rows", "labels", domain.is_public and "bounds and categories"],
            gaps=[NOISY_SIZE] if self.as_published else [],
        )
        curator = PrivaTreeCurator(
            rows, domain, self.max_depth, self.n_bins, self.accepted_error, self.as_published,
            ledger, self.random_state,
        )  # fmt: skip
        self.bins_: list[Bins] = curator.bins
        self.tree_ = grow(curator, self.max_depth, self.as_published)
        self.ledger_ = ledger
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return 1 where the label of a row's leaf is ``classes_[1]``, else 0: float64 (n,)."""
        frame = self._frame(X)
        codes = [
            bins.encode(frame[name]) for bins, name in zip(self.bins_, frame.columns, strict=True)
        ]
        return self.tree_.labels_of(np.stack(codes)).astype(np.float64)

    def _positive(self, scores: np.ndarray) -> np.ndarray:
        return scores

    @property
    def _middle(self) -> float:
        return 0.5
