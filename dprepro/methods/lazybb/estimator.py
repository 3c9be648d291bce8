"""LazyBB: Asadi, Carmosino, Jahanara, Rafiey, Salamatian, "Private boosted decision trees via
smooth re-weighting" (2022).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.estimators.base import DPEstimator, tagged
from dprepro.estimators.inputs import DOMAIN, SEED, fitting, plain
from dprepro.methods.lazybb import ADJACENCY
from dprepro.methods.lazybb.calibration import (
    CALIBRATIONS,
    ZETA_TWICE,
    Budget,
    check_calibration,
    is_private,
)
from dprepro.methods.lazybb.curator import (
    BooleanRows,
    ExactCurator,
    LazyBBCurator,
    read_boolean_rows,
)
from dprepro.methods.lazybb.hypotheses import Rule
from dprepro.methods.lazybb.learners import boost, make_learner
from dprepro.methods.lazybb.queries import Literals, read_literals
from dprepro.methods.lazybb.weights import MARGINS, Weighing
from dprepro.privacy.composition import ROUND_COMPOSITIONS, check_composition
from dprepro.privacy.private_rows import Private
from dprepro.runtime.arguments import INSIDE, SHARE, Both, Integer, Number, OneOf, OrNone, flag

BASES = ("1r", "topdown")
CONSTANT = "(constant)"


@tagged(multi_class=False)
@dataclass(eq=False, repr=False)
class LazyBBClassifier(ClassifierMixin, DPEstimator):
    """Smooth boosting of 1-Rules or small trees over Boolean columns; the model is a vote.

    Formal guarantee: epsilon-DP with ``composition="pure"``, else (epsilon, delta)-DP, under
    replace-one, for a public number of rows and public columns; none with ``calibration="code"``.
    ``epsilon=math.inf`` is the exact learner, without a ledger. Parameters count as public:
    epsilon does not cover a choice that was made by trying them on the same rows.

    Each of `rounds` rounds weighs the rows by exp(-lambda margin), projects to weights of at most 1
    / (kappa n), and asks for a hypothesis that does well on them. Since no row weighs more,
    neighbours have weights within zeta = 1 / (kappa n) of each other, and the noise of each choice
    follows from that (`lazybb.sensitivity`). Weights and noise are whole numbers, drawn and
    added up exactly: a seed gives the same model for the rows in any order and, with "pure", on any
    machine.

    Parameters
    ----------
    base : {"1r", "topdown"}
        1-Rules (Algorithm 3) or trees (Algorithm 2).
    rounds : int
        tau. An even number can end in a tie, which predicts ``classes_[0]``.
    learning_rate : float
        lambda, on the scale that `margin` says.
    density : float
        kappa, in (0, 1].
    epsilon, delta : float
        The budget. `delta` is used unless the composition is pure.
    splits : int
        Inner nodes of each tree; for "topdown".
    label_share : float
        The part of a tree's budget that its labels get, in (0, 1); for "topdown".
    composition : {"pure", "advanced", "zcdp"}
        How rounds share the budget: see `privacy.composition`.
    calibration : {"tight", "paper", "code"}
        "tight" is meant to spend all of epsilon. "paper" gives 1-Rules the eta of Theorem 7, which
        spends half of epsilon with "pure" composition, and less than "tight" with the others.
        "code" is for "topdown" and does as the authors' code: it divides the noise by zeta once
        too often and exceeds the budget. The ledger says what each spends.
    margin : {"signed", "agreements"}
        "signed" weighs as the paper says, "agreements" as the authors' code does. With
        "agreements" a `learning_rate` has the effect of half of it with "signed". The paper's
        Tables 5-7 follow from the parameters of its Tables 8-10 with "agreements" and a "tight"
        calibration: the mean difference is 0.7, 2.5 and 0.4 features on Adult, Cod-RNA and
        Mushroom. With "signed" and "paper" it is 1.5, 5.0 and 4.1.
    diagnostics : bool
        Also set ``edges_``, ``margins_`` and, in ``figures_``, ``rademacher_bound`` (for "1r"; see
        `lazybb.rademacher` for when it proves something). The ledger lists them as not
        covered by epsilon.
    domain : Domain or None
        What the columns were made from, and the labels. Epsilon does not cover its observed parts.
        None: the columns are public.
    random_state : int or None
        None seeds the noise from the operating system. An integer makes the fit repeatable: this
        is for experiments only, and the ledger says so.

    Attributes
    ----------
    hypotheses_ : list of Rule or Tree
        The hypotheses that vote, one for each round.
    votes_ : DataFrame
        For "1r": the model as the paper's Table 4 prints it. `votes` for ``classes_[1]`` where
        `feature` has that `value`, and as many against where not; a constant votes everywhere.
    figures_ : dict
        ``n_columns``, the distinct columns used; ``n_features``, the same, but for "1r" a column
        that votes both ways counts twice, as the paper's tables count (no other count meets them);
        and ``pct_features``, ``n_features`` in percent of all columns.
    column_names_ : list of (str, str)
        Feature and value of each column, as `BooleanEncoder` labels them, else its name and "1".
    ledger_ : Ledger
        Every noisy choice and the spent epsilon; private fits only.
    edges_ : ndarray
        With `diagnostics`: the exact advantage of each round on its weights, float64 (rounds,).
        Not private.
    margins_ : ndarray
        With `diagnostics`: the mean vote times the label of each training row, float64 (n,) in
        [-1, 1]. Not private.

    Raises
    ------
    ValueError
        On parameters out of range, entries other than 0 and 1, or labels that the domain rules out;
        without a public domain on other than two classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 8))
    >>> model = LazyBBClassifier(rounds=5, epsilon=1, random_state=0).fit(X, X[:, 3])
    >>> int(model.votes_["feature"].iloc[0][1:]), model.score(X, X[:, 3]) > 0.9
    (3, True)
    """

    kinds = MappingProxyType({
        "base": OneOf(BASES), "rounds": Integer(1), "learning_rate": Number(0), "density": SHARE,
        "epsilon": Both(Number(0, math.inf, "(]"), Number(1e-13, math.inf, "[]")),
        "delta": Number(0, 1), "splits": Integer(1),
        "label_share": INSIDE, "composition": OneOf(ROUND_COMPOSITIONS),
        "calibration": OneOf(CALIBRATIONS), "margin": OneOf(MARGINS), "diagnostics": flag,
        "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    base: str = "1r"
    _: KW_ONLY
    rounds: int = 25
    learning_rate: float = 0.4
    density: float = 0.4
    epsilon: float = 1.0
    delta: float = 0.0
    splits: int = 5
    label_share: float = 0.5
    composition: str = "pure"
    calibration: str = "tight"
    margin: str = "signed"
    diagnostics: bool = False
    domain: Domain | None = None
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> LazyBBClassifier:
        """Fit to X of 0 and 1, (n, d), and y (n,), the domain's labels or their codes.

        Without a public domain both labels have to occur.
        """
        private = read_boolean_rows(self, X, y)
        curator = self._curator(private)
        budget = Budget(
            self.epsilon, self.delta, self.composition, self.calibration, self.rounds, self.density
        )
        splits = self.splits if self.base == "topdown" else 0
        learner = make_learner(curator, budget, splits, self.label_share)
        self.hypotheses_ = boost(curator, learner, self.rounds)
        self.figures_ = self._count_features(curator.columns)
        if self.diagnostics:
            self.edges_, self.margins_ = curator.diagnose()
            if self.base == "1r":
                self.figures_["rademacher_bound"] = curator.accuracy_bound()
        return self

    def _curator(self, private: Private[BooleanRows]) -> LazyBBCurator:
        """Return the curator of the rows; one without noise where epsilon is infinite."""
        weighing = Weighing(self.learning_rate, self.density, self.margin)
        if not is_private(self.epsilon):
            return ExactCurator(private, weighing, diagnostics=self.diagnostics)
        self.ledger_ = self._new_ledger(
            ADJACENCY,
            [
                "number of rows",
                "labels",
                "which Boolean columns there are",
                "parameters, however they were chosen",
            ],
            delta=0.0 if self.composition == "pure" else self.delta,
            gaps=[ZETA_TWICE] if self.calibration == "code" else [],
        )
        return LazyBBCurator(
            private, weighing, self.ledger_, self.random_state, self._observed,
            diagnostics=self.diagnostics,
        )  # fmt: skip

    def _count_features(self, columns: int) -> dict[str, float]:
        used = set().union(*(h.columns for h in self.hypotheses_))
        signed = {h for h in self.hypotheses_ if isinstance(h, Rule) and h.column is not None}
        count = len(signed) if self.base == "1r" else len(used)
        return {
            "n_features": float(count),
            "pct_features": 100.0 * count / columns,
            "n_columns": float(len(used)),
        }

    @property
    def votes_(self) -> pd.DataFrame:
        """The model of 1-Rules as a table; see the class."""
        check_is_fitted(self)
        if plain(self, "base") != "1r":
            raise AttributeError("votes_ is for 1-Rules; trees are in hypotheses_")
        votes: dict[tuple[str, str], int] = {}
        for rule in self.hypotheses_:
            assert isinstance(rule, Rule)
            name = (CONSTANT, "") if rule.column is None else self.column_names_[rule.column]
            votes[name] = votes.get(name, 0) + rule.sign
        table = pd.DataFrame(
            [(count, *name) for name, count in votes.items()], columns=["votes", "feature", "value"]
        )
        order = table["votes"].abs().sort_values(ascending=False, kind="stable").index
        return table.loc[order].reset_index(drop=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the mean vote of each row, float64 (n,) in [-1, 1]: the normalised margin."""
        check_is_fitted(self)
        return self._mean_vote(read_literals(self, X, reset=False))

    def _mean_vote(self, literals: Literals) -> np.ndarray:
        votes = np.zeros(literals.rows)
        for hypothesis in self.hypotheses_:
            votes += hypothesis.outputs(literals)
        return votes / len(self.hypotheses_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with more votes for each row, (n,)."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def _check_together(self) -> None:
        check_calibration(self.calibration, self.base, self.composition)
        if is_private(self.epsilon):
            check_composition(self.composition, self.delta)


class OneRule(LazyBBClassifier):
    """A single 1-Rule: one round over equal weights, so zeta = 1 / n.

    Parameters are `epsilon`, `calibration`, `diagnostics`, `domain` and `random_state`, which mean
    what they do in `LazyBBClassifier`; so do attributes and errors. Formal guarantee: epsilon-DP
    under replace-one.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        calibration: str = "tight",
        diagnostics: bool = False,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            "1r", rounds=1, density=1.0, epsilon=epsilon, calibration=calibration,
            diagnostics=diagnostics, domain=domain, random_state=random_state,
        )  # fmt: skip


class TopDownTree(LazyBBClassifier):
    """A single tree: one round over equal weights, so zeta = 1 / n.

    Parameters are `splits`, `label_share`, `epsilon`, `diagnostics`, `domain` and `random_state`,
    which mean what they do in `LazyBBClassifier`; so do attributes and errors, but there are no
    ``votes_``. Formal guarantee: epsilon-DP under replace-one.
    """

    def __init__(
        self,
        *,
        splits: int = 5,
        label_share: float = 0.5,
        epsilon: float = 1.0,
        diagnostics: bool = False,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            "topdown", rounds=1, density=1.0, splits=splits, label_share=label_share,
            epsilon=epsilon, diagnostics=diagnostics, domain=domain, random_state=random_state,
        )  # fmt: skip
