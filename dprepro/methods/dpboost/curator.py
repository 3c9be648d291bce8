"""The curator of DPBoost: bins, gradients, subsets and leaves stay here; trees come out noisy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dprepro.data.domain import CategoricalFeature, Domain, refuse_undeclared
from dprepro.estimators.inputs import Rows
from dprepro.methods.dpboost import constant_draws
from dprepro.methods.dpboost.bins import (
    FeatureCuts,
    as_numbers,
    observed_cuts,
    public_cuts,
)
from dprepro.methods.dpboost.kernel import GAIN_UNIT, LARGEST_GRADIENT, UNIT, grow, truncated, whole
from dprepro.methods.dpboost.sensitivity import MAX_ROWS, gain_sensitivity
from dprepro.methods.dpboost.subsets import Subsets, expected_shares
from dprepro.methods.dpboost.tree import FitSettings, Forest, Tree, max_leaves
from dprepro.methods.dpboost.variants import BIN_EDGES, Variant
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import ExponentialMechanism, LaplaceMechanism, in_units
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, Instruction, NoisyAnswer, Query
from dprepro.privacy.sampling.sampler import dyadic
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT

MEAN_OF_TARGET = "mean of the target"


@dataclass(frozen=True)
class SplitQuery(Query):
    """All splits of the next tree, by exponential choices among all cuts.

    Attributes
    ----------
    bound
        Rows whose gradient exceeds it take no part.
    complete
        Whether all cuts are possible whatever rows there are. If not, a row more or less can make
        a cut possible, which no finite sensitivity covers.
    """

    bound: float
    complete: bool

    @property
    def enforced(self) -> float:
        """3 b^2 and what rounding adds; see `gain_sensitivity`."""
        return gain_sensitivity(self.bound) if self.complete else math.inf


@dataclass(frozen=True)
class LeafQuery(Query):
    """The value of every leaf of the tree that was just split, see `leaf_means`.

    Attributes
    ----------
    bound
        See `SplitQuery`; the rows are those that chose the splits.
    ridge
        lambda.
    clip
        c: values lie in [-c, c].
    independent
        Whether rows draw their trees independently of each other. If not, a row more or less
        exchanges others, which no sensitivity of one row covers.
    """

    bound: float
    ridge: float
    clip: float
    independent: bool

    @property
    def enforced(self) -> float:
        """min(b / (1 + lambda) + one unit, 2 c); see `leaf_sensitivity`."""
        if not self.independent:
            return math.inf
        return min(self.bound / (1 + self.ridge) + UNIT, 2 * self.clip)


@dataclass(frozen=True)
class Start(Instruction):
    """The score from which all rows start."""

    score: float


@dataclass(frozen=True)
class AddTree(Instruction):
    """Add a released tree to the scores of all rows."""

    tree: Tree


@dataclass(eq=False)
class ExactRows:
    """The rows of a fit, and what their tree so far comes to without noise: for the curator alone.

    Attributes
    ----------
    codes : uint8 (n, K)
        Bin of every row.
    targets : int64 (n,)
        Scaled to the variant's `scale`, in units of `kernel.UNIT`.
    feature_order
        See `constant_draws.feature_order`; empty where draws are not constant.
    forest
        What the trees so far make of each row. A row's score is computed when the row is drawn:
        within an ensemble that happens to most rows once.
    subsets
        Of the ensemble that is being grown.
    sums, counts : int64 (leaves,)
        Of the gradients, and of the rows, in each leaf of the last tree.
    """

    codes: np.ndarray
    targets: np.ndarray
    feature_order: list[int]
    forest: Forest = field(init=False)
    subsets: Subsets = field(init=False)
    sums: np.ndarray = field(init=False)
    counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.forest = Forest(self.codes)

    def gradients(self, rows: np.ndarray) -> np.ndarray:
        """Return F - y of `rows`, int64 (m,), each once: int64 (m,)."""
        return self.forest.scores(rows) - self.targets[rows]

    def follow(self, instruction: Start | AddTree) -> None:
        """Do what an instruction says."""
        if isinstance(instruction, Start):
            self.forest = Forest(self.codes, int(whole(np.array(instruction.score))))
        else:
            self.forest.add(instruction.tree)


class DPBoostCurator(Curator):
    """Holds the rows of a fit; answers for one tree after the other, splits first, then leaves.

    Parameters
    ----------
    private
        What the fit was given.
    domain
        With the target bounds `target_range`, to which targets are clipped before they are scaled
        to the variant's `scale`.
    max_bins
        Bins a feature.
    ledger, seed
        See `Curator`.

    Attributes
    ----------
    bins : list of FeatureCuts
        Made from the domain, or read from the rows: the ledger then lists them.

    Raises
    ------
    ValueError
        If the rows hold values that the domain rules out, or there are more than `MAX_ROWS`.
    BudgetError
        If all splits and leaves together would spend more than the ledger states.
    """

    relations = frozenset({ZERO_OUT, ADD_REMOVE})

    def __init__(
        self,
        private: Private[Rows],
        domain: Domain,
        target_range: tuple[float, float],
        max_bins: int,
        params: FitSettings,
        variant: Variant,
        ledger: Ledger,
        seed: int | None,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        rows = private.open()
        if len(rows.frame) > MAX_ROWS:
            raise ValueError(f"a fit takes {MAX_ROWS:,} rows at most: give a sample of yours")
        self._params, self._variant = params, variant
        self.bins, codes, order = self._bin(rows, domain, max_bins)
        self._bin_starts = np.cumsum([0, *(b.n_bins for b in self.bins)], dtype=np.int64)
        targets = truncated(_scaled(rows.targets, target_range, variant.scale))
        self._exact = Private(ExactRows(codes, targets, order))
        self._enter_mechanisms()
        self._shares = expected_shares(
            params.learning_rate, params.trees_per_ensemble, variant.equal_parts
        )
        self._grown, self._answered = 0, True

    def _enter_mechanisms(self) -> None:
        """Enter the noise of all splits and leaves.

        The nodes of one level and the trees of one ensemble hold disjoint rows: a row takes part in
        `max_depth` splits and one leaf an ensemble (Li et al. 2020, sections 4.2 and 4.3).
        """
        params, variant = self._params, self._variant
        leaves, ensembles = max_leaves(params, variant), params.n_ensembles
        constant = None
        if variant.constant_draws:
            constant = constant_draws.ConstantNoise(params.n_trees * leaves).add_laplace
            self._uniforms = constant_draws.uniform_sequence()
            self._source.ledger.note_floating_point("noise of leaves, and choices of splits")
        self._choices = ExponentialMechanism(
            self._source,
            (params.n_trees,),
            releases="feature and cut of each split, by its gain",
            epsilon=variant.split_share * params.epsilon / (ensembles * params.max_depth),
            sensitivity=gain_sensitivity(1.0, variant.gain(params.ridge)),
            uses=ensembles * params.max_depth,
        )
        self._leaves = LaplaceMechanism(
            self._source,
            (params.n_trees, leaves),
            constant,
            releases="value of each leaf, in units of its tree's sensitivity",
            epsilon=params.epsilon / (2 * ensembles),
            sensitivity=1.0,
            uses=ensembles,
        )
        self._require_budget()

    def mean_target(self) -> float:
        """Return the mean of the scaled targets, rounded to the grid; the ledger lists it."""
        self._read_exactly(MEAN_OF_TARGET)
        targets = self._exact.open().targets
        return float(np.rint(int(targets.sum()) / targets.size)) * UNIT

    def splits(self, query: SplitQuery) -> NoisyAnswer:
        """Return the nodes of the next tree: feature, cut and left child, int64 (3, nodes).

        Raises
        ------
        BudgetError
            If all trees of the ledger are grown.
        ValueError
            If the bound on gradients is 512 or more.
        """
        scale, state = self._choices.hand_to_kernel((self._grown,), query)
        exact = self._exact.open()
        rows = self._next_rows(exact, query.bound)
        codes, gradients = exact.codes[rows].T.copy(), exact.gradients(rows)
        in_gains, params = in_units(scale, GAIN_UNIT), self._params
        least = 0 if query.complete else self._variant.min_rows
        most = max_leaves(params, self._variant)
        if self._variant.constant_draws:
            feature, cut, left, sums, counts = constant_draws.grow(
                codes, gradients, self._bin_starts, exact.feature_order, self._uniforms, in_gains,
                params.ridge, params.max_depth, most, least,
            )  # fmt: skip
        else:
            feature, cut, left, sums, counts = grow(
                codes, gradients, self._bin_starts, state, *dyadic(in_gains), params.ridge,
                params.max_depth, most, least, query.complete,
            )  # fmt: skip
        is_leaf = feature < 0
        exact.sums, exact.counts, self._bound = sums[is_leaf], counts[is_leaf], query.bound
        self._numbers = constant_draws.leaf_numbers(feature, left)
        self._grown += 1
        self._answered = False
        return self._announce(query, NoisyAnswer(np.stack([feature, cut, left]), scale))

    def leaf_values(self, query: LeafQuery) -> NoisyAnswer:
        """Return the noisy values of the leaves of the tree just split, float64 (leaves,).

        Raises
        ------
        BudgetError
            If they were answered already, or the rows were not bounded as the query says.
        """
        if self._answered or query.bound != self._bound:
            raise BudgetError("leaf values follow the splits of their tree, once, with its bound")
        exact = self._exact.open()
        if query.independent and not exact.subsets.independent:
            raise BudgetError("rows draw their trees in fixed numbers here, not independently")
        self._answered = True
        means = leaf_means(exact.sums, exact.counts, query.ridge, query.clip)
        if not self._variant.constant_draws:
            return self._announce(query, self._leaves.answer(self._grown - 1, means, query, UNIT))
        by_number = means[np.argsort(self._numbers)]
        answer = self._leaves.answer(self._grown - 1, by_number, query, UNIT)
        return self._announce(query, NoisyAnswer(answer.value[self._numbers], answer.scale))

    def _next_rows(self, exact: ExactRows, bound: float) -> np.ndarray:
        """Draw the rows of the next tree: of an ensemble, each row trains one tree at most."""
        if self._grown % self._params.trees_per_ensemble == 0:
            exact.subsets = self._variant.subsets(
                self._source.sampler, exact.targets.size, self._shares
            )
        most = math.floor(bound / UNIT)
        if most >= LARGEST_GRADIENT:
            largest = LARGEST_GRADIENT * UNIT
            raise ValueError(f"gradients are bounded by {bound!r}: give a bound below {largest:g}")
        return exact.subsets.draw(lambda rows: np.abs(exact.gradients(rows)) <= most)

    def _follow(self, instruction: Start | AddTree) -> None:
        self._exact.open().follow(instruction)

    def _bin(
        self, rows: Rows, domain: Domain, max_bins: int
    ) -> tuple[list[FeatureCuts], np.ndarray, list[int]]:
        """Return the cuts of all features, the codes of the rows, uint8 (n, K), and the order."""
        if not self._variant.public_cuts:
            self._read_exactly(BIN_EDGES)
        found, columns, codes = [], [], np.empty(rows.frame.shape, dtype=np.uint8)
        for k, (name, feature) in enumerate(zip(rows.frame.columns, domain.features, strict=True)):
            numbers = as_numbers(rows.frame[name], feature)
            refuse_undeclared(feature, rows.frame[name], np.isnan(numbers))
            if name in self._variant.ignored:
                bins = FeatureCuts(feature, np.empty(0), False)
            elif self._variant.public_cuts:
                bins = public_cuts(feature, max_bins)
            else:
                bins = observed_cuts(numbers, feature, max_bins)
            codes[:, k] = bins.encode(numbers)
            found.append(bins)
            columns.append(numbers if self._variant.constant_draws else np.empty(0))
        if not self._variant.constant_draws:
            return found, codes, []
        given = list(range(len(found)))
        if self._variant.numbers_first:
            given.sort(key=lambda k: isinstance(found[k].feature, CategoricalFeature))
        order = constant_draws.feature_order(columns, codes, self._variant.min_rows, given)
        return found, codes, order


def leaf_means(sums: np.ndarray, counts: np.ndarray, ridge: float, clip: float) -> np.ndarray:
    """Return -S / (n + lambda) of each leaf within [-clip, clip], int64 (leaves,) in grid units.

    Rounded down, in Python's integers: exact. S and n are int64, S in units of the grid.
    """
    over, under = float(ridge).as_integer_ratio()
    quotients = [
        -int(s) * under // max(int(n) * under + over, 1) for s, n in zip(sums, counts, strict=True)
    ]
    most = math.floor(clip / UNIT)
    return np.array([min(max(q, -most), most) for q in quotients], dtype=np.int64)


def _scaled(
    targets: np.ndarray, bounds: tuple[float, float], scale: tuple[float, float]
) -> np.ndarray:
    """Return targets within `bounds` as float64 within `scale`."""
    (lower, upper), (low, high) = bounds, scale
    clipped = np.clip(targets.astype(np.float64), lower, upper)
    return (high - low) * (clipped - lower) / (upper - lower) + low
