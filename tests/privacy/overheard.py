"""The exact answers of real curators, which draw no noise while they are heard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dprepro.methods.dp_bag.curator import Votes
from dprepro.methods.dp_ebm import curator as ebm_curator
from dprepro.methods.dp_ebm.kernel import (
    cut_into_blocks,
    fused_pass,
    move_states,
    release_sums,
    start_states,
)
from dprepro.methods.dp_ebm.rounds import Rise, Start, _buffers, boost_by_rounds
from dprepro.methods.dpboost import curator as dpboost_curator
from dprepro.methods.dpboost.curator import SplitQuery
from dprepro.methods.dpboost.kernel import GAIN_UNIT
from dprepro.methods.dpboost.subsets import IndependentRows, _take
from dprepro.methods.forests.curator import LeafLabels
from dprepro.methods.linear_regression.curator import Products
from dprepro.methods.locally_linear import gradients
from dprepro.privacy.curator_base import GaussianMechanism
from dprepro.privacy.ledger_entry import LedgerEntry
from dprepro.privacy.mechanisms import (
    ExponentialMechanism,
    NoiseSource,
    PermuteAndFlipMechanism,
    SampledGaussianMechanism,
    _NumberedSums,
)
from dprepro.privacy.query import NoisyAnswer, Query
from dprepro.privacy.sampling import ExactSampler
from tests.methods.dpboost.lab import of_cuts


def _l1(moves: np.ndarray) -> float:
    return float(np.abs(moves).sum())


def _l2(moves: np.ndarray) -> float:
    return float(np.linalg.norm(moves))


def _largest(moves: np.ndarray) -> float:
    """Return the largest move of a number: of each choice, if there are several, added up."""
    return float(np.abs(moves).max(axis=-1).sum())


def _half_range(moves: np.ndarray) -> float:
    """Return half the largest difference between the moves of two candidates, likewise.

    What all candidates of a choice have in common changes no probability.
    """
    return float(np.ptp(moves, axis=-1).sum()) / 2


_NORMS: dict[type[Query], Callable[[np.ndarray], float]] = {
    LeafLabels: _half_range,
    SplitQuery: _largest,  # of the nodes of one level, a row is in one
    Votes: _largest,  # each count is a use
}


@dataclass(frozen=True)
class Heard:
    """An exact answer, in whole numbers of a unit, and what noise is charged for."""

    query: type[Query]
    exact: np.ndarray
    unit: Any
    charged: float
    share: float
    norm: Callable[[np.ndarray], float]
    entry: LedgerEntry
    gap: bool

    def charge(self, exchanged: bool) -> float:
        """Return what is charged under the relation of the ledger, or under replace-one."""
        if not exchanged:
            return self.charged
        entry = self.entry
        factor = 2.0 if entry.replace_one is None else entry.replace_one / entry.sensitivity
        return self.charged * factor

    def ratio(self, other: Heard, exchanged: bool) -> float:
        """Return how far a neighbour's answer is from this one, over what is charged."""
        return self.norm(self._moves(other)) / self.charge(exchanged)

    @property
    def power(self) -> int:
        """2 for Gaussian noise, of which mu^2 adds up, and else 1, as epsilon adds up."""
        return 2 if self.entry.mechanism == "gaussian" else 1

    def spent(self, other: Heard, exchanged: bool) -> float:
        """Return how much of one use of the ledger's entry that takes."""
        norm = _l1 if self.entry.mechanism == "laplace" else self.norm
        return self.share * (norm(self._moves(other)) / self.charge(exchanged)) ** self.power

    def _moves(self, other: Heard) -> np.ndarray:
        return np.asarray((self.exact - other.exact) * self.unit)


class Ears:
    """Hears exact answers in the place of noise.

    Attributes
    ----------
    heard
        In the order of the answers.
    released
        What the call that a curator follows returned when the script was written.
    """

    def __init__(self) -> None:
        self.start()

    def start(self, seed: int = 0) -> None:
        """Forget all; the seed says who is sampled."""
        self.heard: list[Heard] = []
        self.released: Any = None
        self._asked: Any = None
        self._turn, self._seed = 0, seed

    def hear(self, uses: Any, query: Query, exact: np.ndarray, unit: Any = 1.0) -> NoisyAnswer:
        """Keep an exact answer, and return something."""
        entry: LedgerEntry = uses.entry
        usual = {"gaussian": _l2, "laplace": _l1}.get(entry.mechanism, _half_range)
        norm = _NORMS.get(type(query), usual)
        self.heard.append(
            Heard(
                type(query), exact, unit, query.charged, query.share, norm, entry,
                query.gap is not None,
            )
        )  # fmt: skip
        return NoisyAnswer(np.zeros(np.shape(exact), np.int64), 1.0)

    def products(self, source: NoiseSource, exact: np.ndarray, scale: float, unit: float) -> Any:
        """Hear one kind of products of `LinearCurator`, which has an entry; each is a use."""
        entry = source.ledger.entries[self._next_turn()]
        charged = scale / entry.noise_multiplier
        self.heard.append(Heard(Products, exact, unit, charged, 1.0, _largest, entry, False))
        return np.zeros(exact.shape)

    def remember(self, uses: Any, query: Query, handed: Any) -> Any:
        """Keep what a kernel is about to answer, and hand it what it needs."""
        self._asked = uses, query
        return handed

    def grow(self, codes: Any, own: Any, starts: Any, *rest: Any) -> tuple[np.ndarray, ...]:
        """Return DPBoost's released tree with sums of these rows; hear the gains of all cuts."""
        feature, cut, left = self.released.value
        ridge, rows, levels = rest[3], {0: np.arange(own.size)}, np.zeros(feature.size, int)
        gains: dict[int, list[list[int]]] = {}
        for node, k in enumerate(feature):
            if k < 0:
                continue
            at, found = rows[node], []
            for of_feature, n_bins in zip(codes, np.diff(starts), strict=True):
                bins = np.zeros((n_bins, 2), np.int64)
                np.add.at(bins, of_feature[at], np.column_stack([own[at], np.ones_like(at)]))
                found += of_cuts(bins, ridge)
            gains.setdefault(levels[node], []).append(found)
            below = codes[k][at] <= cut[node]
            for child, members in ((left[node], at[below]), (left[node] + 1, at[~below])):
                rows[child], levels[child] = members, levels[node] + 1
        for of_level in gains.values():
            self.hear(*self._asked, np.array(of_level), GAIN_UNIT)
        sums, counts = (
            [f(rows[n]) for n in range(feature.size)] for f in (lambda r: own[r].sum(), len)
        )
        return feature, cut, left, np.array(sums), np.array(counts)

    def boost(self, codes: np.ndarray, targets: np.ndarray, given: Any, *_: Any) -> Any:
        """Do all steps of DP-EBM with the released sums; hear the exact ones."""
        uses, query = self._asked
        labels, leaves = given.logistic, given.normals.shape[1]
        states, blocks = np.empty_like(targets), cut_into_blocks(targets, labels).copy()
        released = iter(np.rint(self.released.value / query.unit).astype(np.int64))

        def tell(told: Start | Rise) -> None:
            if isinstance(told, Start):
                start_states(targets, labels, told.score, states)
            else:
                own = codes[told.feature]
                move_states(states, targets, blocks, own, told.below, told.rises, labels)

        def ask(step: Any) -> np.ndarray:
            sums, own = np.zeros(step.below.size + 1, np.int64), codes[step.feature]
            update, bound = (own, step.below, np.zeros(sums.size, np.int32)), np.int32(step.bound)
            fused_pass(
                states, targets, blocks, update, own, step.below, labels, bound, _buffers(), sums
            )
            return sums

        def release(step: Any, _: Any) -> np.ndarray:
            exact, number = np.zeros(leaves, np.int64), min(leaves, int(given.n_bins[step.feature]))
            release_sums(ask(step), np.zeros_like(given.normals[0]), 1.0, number, exact)
            # Where residuals have a smaller bound, so has the noise.
            self.hear(uses, query, exact, query.unit * (given.bound / step.bound))
            return next(released)

        return boost_by_rounds(ask, tell, release, given)

    def draw(self, subsets: IndependentRows, fits: Any) -> np.ndarray:
        """Draw the rows of a tree, each by its place alone."""
        return _take(subsets, (subsets._unused + self._next_turn() + self._seed) % 3 != 0, fits)

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn - 1


@contextmanager
def listening() -> Iterator[Ears]:
    """Let all curators answer `Ears`, and sample all rows or by their places."""
    ears = Ears()

    def numbered(
        uses: Any, _: Any, exact: np.ndarray, query: Query, unit: Any = 1.0
    ) -> NoisyAnswer:
        return ears.hear(uses, query, exact, unit)

    def in_order(uses: Any, exact: np.ndarray, query: Query, unit: Any = 1.0) -> NoisyAnswer:
        return ears.hear(uses, query, exact, unit)

    def choose(
        uses: Any, _: Any, exact: np.ndarray, query: Query, unit: float = 1.0
    ) -> NoisyAnswer:
        chosen = ears.hear(uses, query, exact, unit).value
        return NoisyAnswer(chosen[..., 0], 1.0)

    def every_row(_: Any, rows: int, __: Any) -> Iterator[np.ndarray]:
        while True:
            yield np.arange(rows)

    normals = GaussianMechanism.hand_to_kernel
    answers: dict[Any, dict[str, Any]] = {
        GaussianMechanism: {
            "answer": in_order,
            "hand_to_kernel": lambda s, q, shape: ears.remember(s, q, normals(s, q, shape)),
        },
        _NumberedSums: {"answer": numbered},
        SampledGaussianMechanism: {"answer": in_order},
        PermuteAndFlipMechanism: {"choose": choose},
        ExponentialMechanism: {
            "choose": choose,
            "hand_to_kernel": lambda s, _, q: ears.remember(s, q, (1.0, s._source.sampler.state)),
        },
    }
    with pytest.MonkeyPatch.context() as patch:
        for uses, methods in answers.items():
            patch.setattr(uses, "__init__", _keeping_its_entry(uses.__init__))
            for name, method in methods.items():
                patch.setattr(uses, name, method)
        patch.setattr(NoiseSource, "add_laplace", lambda *given: ears.products(*given))
        patch.setattr(ebm_curator, "boost", ears.boost)
        patch.setattr(dpboost_curator, "grow", ears.grow)
        patch.setattr(ExactSampler, "sample", lambda _, size, rate: np.ones(size, bool))
        patch.setattr(IndependentRows, "draw", lambda *given: ears.draw(*given))
        patch.setattr(gradients, "batches", every_row)
        yield ears


def _keeping_its_entry(begin: Any) -> Any:
    def begun(made: Any, source: NoiseSource, *rest: Any, **more: Any) -> None:
        begin(made, source, *rest, **more)
        made.entry = source.ledger.entries[-1]

    return begun
