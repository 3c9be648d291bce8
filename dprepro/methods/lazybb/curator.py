"""The curator of LazyBB: rows, labels, margins and the smooth weights stay here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from dprepro.estimators.targets import read_labels
from dprepro.methods.lazybb import ADJACENCY
from dprepro.methods.lazybb.calibration import Rates
from dprepro.methods.lazybb.hypotheses import LeafWeights, Rule, Tree, errors
from dprepro.methods.lazybb.queries import (
    LabelQuery,
    Literals,
    RuleQuery,
    SmoothQuery,
    SplitQuery,
    column_names,
    read_literals,
)
from dprepro.methods.lazybb.rademacher import accuracy_bound
from dprepro.methods.lazybb.sensitivity import TOTAL
from dprepro.methods.lazybb.weights import Weighing
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import ExponentialMechanism, LaplaceMechanism, NoiseSource
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import Instruction, NoisyAnswer, SensitivityError
from dprepro.privacy.sensitivity import REPLACE_ONE

DIAGNOSTICS = (
    "advantages and margins on the training rows, and the bound made of them (diagnostics)"
)


class Hypothesis(Protocol):
    """What a round adds to the vote."""

    @property
    def columns(self) -> set[int]:
        """The columns it reads."""
        ...

    def outputs(self, literals: Literals) -> np.ndarray:
        """Return -1 or 1 for each row, int64 (n,)."""
        ...


@dataclass(frozen=True)
class BooleanRows:
    """The rows of a fit: columns, and the labels as -1 and 1, int64 (n,)."""

    literals: Literals
    signs: np.ndarray


def read_boolean_rows(model: Any, X: Any, y: Any) -> Private[BooleanRows]:
    """Return what a fit was given, wrapped; set ``classes_`` and ``column_names_``.

    Raises
    ------
    ValueError
        As `read_literals` and `read_labels`.
    """
    literals = read_literals(model, X, reset=True)
    model.classes_, labels = read_labels(
        model, pd.DataFrame(index=range(literals.rows)), y, model.domain
    )
    model.column_names_ = column_names(X, literals.columns)
    return Private(BooleanRows(literals, 2 * labels.astype(np.int64) - 1))


class Diagnostics(NamedTuple):
    """Exact figures of the training rows, which epsilon does not cover.

    `edges`: the advantage of each round, 1/2 less its weighted error, float64 (rounds,).
    `margins`: the mean vote times the label of each row, float64 (n,).
    """

    edges: np.ndarray
    margins: np.ndarray


@dataclass(frozen=True)
class Split(Instruction):
    """Cut a leaf of the round's tree: rows where the column is true move to a new leaf."""

    leaf: int
    column: int


@dataclass(frozen=True)
class Vote(Instruction):
    """End a round: weigh the rows of the next one by how this hypothesis judged them."""

    hypothesis: Hypothesis


class ExactRound:
    """The rows of a fit, and what a round knows of them without noise: for the curator alone.

    Parameters
    ----------
    rows, weighing
        See `LazyBBCurator`.
    diagnostics
        Whether to keep `edges`.

    Attributes
    ----------
    turn : int
        The rounds that ended.
    margins : int64 (n,)
        The votes so far times the label of each row.
    edges : list of float
        The advantage of each round that was weighed, 1/2 less its weighted error.
    """

    def __init__(self, rows: BooleanRows, weighing: Weighing, *, diagnostics: bool) -> None:
        self.literals, self._signs = rows.literals, rows.signs
        self._weighing, self._diagnostics = weighing, diagnostics
        self.turn = 0
        self.margins = np.zeros(rows.literals.rows, np.int64)
        self.edges: list[float] = []
        self._weights: np.ndarray | None = None
        self._leaves: LeafWeights | None = None

    def signed_weights(self) -> np.ndarray:
        """Return the weights of this round times the labels -1 and 1, int64 (n,)."""
        if self._weights is None:
            self._weights = self._signs * self._weighing.weights(self.margins, self.turn)
        return self._weights

    def tree(self) -> LeafWeights:
        """Return the leaves of this round's tree so far."""
        if self._leaves is None:
            self._leaves = LeafWeights(self.literals, self.signed_weights())
        return self._leaves

    def follow(self, instruction: Any) -> None:
        """Do what an instruction says."""
        if isinstance(instruction, Split) and self._leaves is not None:
            self._leaves.split(instruction.leaf, instruction.column)
        elif isinstance(instruction, Vote):
            # Anything else would be handed the rows.
            if type(instruction.hypothesis) not in (Rule, Tree):
                raise SensitivityError("only a Rule or a Tree votes: make one of the answers")
            self._end(instruction.hypothesis.outputs(self.literals))

    def _end(self, outputs: np.ndarray) -> None:
        if self._diagnostics and self._weights is not None:
            self.edges.append(float(self._weights @ outputs / (2 * TOTAL)))
        self.margins += self._signs * outputs
        self.turn += 1
        self._weights = self._leaves = None


def weighted_choices(
    source: NoiseSource,
    shape: tuple[int, ...],
    *,
    releases: str,
    eta: float,
    robust_sensitivity: float,
) -> ExponentialMechanism:
    """Return choices of a given shape by the Weighted Exponential Mechanism, P ~ exp(eta utility).

    Each is (2 eta Delta, 0, zeta)-DP, Delta the robust sensitivity at zeta (Theorem 3). A constant
    added to all utilities changes no probability, so Delta may be half the largest difference
    between the moves of two candidates. One ledger entry covers all choices. A choice is drawn
    exactly, from utilities in whole numbers; see `NoiseSource.choose`.
    """
    return ExponentialMechanism(
        source,
        shape,
        releases=releases,
        epsilon=2 * eta * robust_sensitivity,
        sensitivity=robust_sensitivity,
        uses=math.prod(shape),
    )


def weighted_noisy_max(
    source: NoiseSource,
    shape: tuple[int, int, int],
    *,
    releases: str,
    eta: float,
    robust_sensitivity: float,
) -> LaplaceMechanism:
    """Return Weighted Return Noisy Max with noise Laplace(1 / eta), uses by groups by values.

    Of what it answers, the index of each group's largest value is released.
    `robust_sensitivity` is the L1 norm of what all values of a use can move by together: the
    noisy values might as well be released, and a use is (eta * robust_sensitivity, 0, zeta)-DP.
    For one group of two values that move by Delta each that is Theorem 4's 2 eta Delta. Groups of
    disjoint rows do not compose in parallel (section 9 says so): normalising moves the weights of
    all of them.
    """
    return LaplaceMechanism(
        source,
        shape,
        releases=releases,
        epsilon=eta * robust_sensitivity,
        sensitivity=robust_sensitivity,
        uses=shape[0],
    )


class LazyBBCurator(Curator):
    """Holds the rows of a fit; answers for one round after the other.

    Parameters
    ----------
    private
        What the fit was given. Its numbers of rows and columns count as public.
    weighing
        How margins become weights.
    ledger, seed, observed
        See `Curator`.
    diagnostics
        Whether `diagnose` may be asked; the ledger then lists what it gives.
    """

    relations = frozenset({REPLACE_ONE})

    def __init__(
        self,
        private: Private[BooleanRows],
        weighing: Weighing,
        ledger: Ledger,
        seed: int | None,
        observed: Sequence[str],
        *,
        diagnostics: bool = False,
    ) -> None:
        if diagnostics:
            ledger.unaccounted.append(DIAGNOSTICS)
        super().__init__(ledger, seed, observed)
        self._weighing, self._diagnostics = weighing, diagnostics
        exact = ExactRound(private.open(), weighing, diagnostics=diagnostics)
        self._exact = Private(exact)

    @property
    def rows(self) -> int:
        """The number of rows, n."""
        return self._exact.open().literals.rows

    @property
    def columns(self) -> int:
        """The number of Boolean columns, d."""
        return self._exact.open().literals.columns

    def enter(self, rates: Rates) -> None:
        """Enter the noise of all rounds.

        Raises
        ------
        BudgetError
            If all rounds would spend more than the ledger states, and no gap is named.
        SensitivityError
            If a gap is named that the ledger does not list.
        """
        self._choices = weighted_choices(
            self._source,
            (rates.rounds, rates.splits) if rates.splits else (rates.rounds,),
            releases=rates.choice.releases,
            eta=rates.choice.eta,
            robust_sensitivity=rates.choice.sensitivity,
        )
        if rates.labels is not None:
            self._labels = weighted_noisy_max(
                self._source,
                (rates.rounds, rates.splits + 1, 2),
                releases=rates.labels.releases,
                eta=rates.labels.eta,
                robust_sensitivity=rates.labels.sensitivity,
            )
        self._require_budget(rates.gap)

    def choose_rule(self, query: RuleQuery) -> NoisyAnswer:
        """Return the 1-Rule of this round, an integer."""
        self._check_density(query)
        exact = self._exact.open()
        quality = -errors(exact.literals, exact.signed_weights())
        return self._announce(query, self._pick((exact.turn,), quality >> query.dropped, query))

    def choose_split(self, query: SplitQuery) -> NoisyAnswer:
        """Return the next split of this round's tree, an integer; see `SplitQuery`."""
        self._check_density(query)
        exact = self._exact.open()
        tree = exact.tree()
        use, quality = (exact.turn, tree.leaves - 1), tree.gains().ravel()
        return self._announce(query, self._pick(use, quality >> query.dropped, query))

    def label_leaves(self, query: LabelQuery) -> NoisyAnswer:
        """Return the label of each leaf of this round's tree, int64 (leaves,) of -1 and 1."""
        self._check_density(query)
        exact = self._exact.open()
        weights = exact.tree().weights()
        if len(weights) > query.leaves:
            raise SensitivityError(
                f"the tree has {len(weights)} leaves, the query charges for {query.leaves}"
            )
        noisy = self._noisy(exact.turn, weights >> query.dropped, query)
        labels = 2 * np.argmax(noisy.value, axis=1) - 1
        return self._announce(query, NoisyAnswer(labels, noisy.scale))

    def diagnose(self) -> Diagnostics:
        """Return exact figures of the rounds so far, which the ledger lists.

        Raises
        ------
        SensitivityError
            If it does not: the curator was not made for diagnostics.
        """
        if not self._diagnostics:
            raise SensitivityError("exact figures are not listed: make the curator for diagnostics")
        exact = self._exact.open()
        return Diagnostics(np.array(exact.edges), exact.margins / exact.turn)

    def accuracy_bound(self) -> float:
        """Return `rademacher.accuracy_bound` of a vote of 1-Rules; raises as `diagnose`."""
        exact = self._exact.open()
        return accuracy_bound(exact.literals, self.diagnose().margins, exact.turn)

    def _pick(self, use: tuple[int, ...], quality: np.ndarray, query: SmoothQuery) -> NoisyAnswer:
        return self._choices.choose(use, quality, query, query.unit)

    def _noisy(self, turn: int, weights: np.ndarray, query: SmoothQuery) -> NoisyAnswer:
        return self._labels.answer(turn, weights, query, query.unit)

    def _check_density(self, query: SmoothQuery) -> None:
        if (query.density, query.rows) != (self._weighing.density, self.rows):
            raise SensitivityError("the rows are weighed with another density than the query has")

    def _follow(self, instruction: Any) -> None:
        self._exact.open().follow(instruction)


class ExactCurator(LazyBBCurator):
    """A curator without noise, for the exact learner: it promises nothing and keeps no ledger."""

    def __init__(
        self, private: Private[BooleanRows], weighing: Weighing, *, diagnostics: bool
    ) -> None:
        nothing = Ledger(math.inf, 0.0, ADJACENCY)
        super().__init__(private, weighing, nothing, None, (), diagnostics=diagnostics)

    def enter(self, rates: Rates) -> None:
        """Enter nothing: there is no noise."""

    def _pick(self, use: tuple[int, ...], quality: np.ndarray, query: SmoothQuery) -> NoisyAnswer:
        return NoisyAnswer(np.asarray(np.argmax(quality)), 0.0)

    def _noisy(self, turn: int, weights: np.ndarray, query: SmoothQuery) -> NoisyAnswer:
        return NoisyAnswer(weights, 0.0)
