"""Mechanisms of a curator whose uses are numbered: each is answered once, with noise of its own.

Their noise follows what a query charges, so what it enforces is covered whatever the entry's unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dprepro.privacy.mechanisms import NoiseSource, Unit
from dprepro.privacy.query import BudgetError, Query, Release

Add = Callable[[np.ndarray, float, Unit], np.ndarray]

Use = tuple[int, ...]
"""The place of a use among those of a mechanism, which may be numbered in several directions."""


class NumberedUses:
    """Uses of one mechanism, `shape` of them, each of which can be taken once."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._left = np.ones(shape, dtype=bool)

    def take(self, use: Use) -> None:
        """Take a use.

        Raises
        ------
        BudgetError
            If it was taken before, or the ledger has no such use.
        """
        shape = self._left.shape
        inside = len(use) == len(shape) and all(
            0 <= k < size for k, size in zip(use, shape, strict=True)
        )
        if not inside or not self._left[use]:
            raise BudgetError(
                f"use {use} of {shape} was answered before, or is not in the ledger: ask for each "
                "use once, and enter all uses in the ledger"
            )
        self._left[use] = False


class _NumberedSums:
    """Sums in whole numbers, answered once each: the first axis of `shape` numbers them.

    An answer has no more numbers along any axis than the rest of `shape` says.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, ...], scale: float, add: Add) -> None:
        self._scale, self._add = scale, add
        self._sensitivity = source.ledger.entries[-1].sensitivity
        self._uses, self._most = NumberedUses(shape[:1]), shape[1:]

    def answer(self, use: int, exact: np.ndarray, query: Query, unit: Unit = 1.0) -> Release:
        """Return `exact`, int64 in units of `unit`, with noise of the query's charged sensitivity.

        Raises
        ------
        BudgetError
            If the use was taken before, or the ledger has no such use.
        ValueError
            If the answer has more numbers than the mechanism was entered for.
        """
        _check_shape(exact, self._most)
        self._uses.take((use,))
        scale = query.charged / self._sensitivity * self._scale
        return Release(self._add(exact, scale, unit), scale)


def _check_shape(exact: np.ndarray, most: tuple[int, ...]) -> None:
    if exact.ndim != len(most) or any(np.greater(exact.shape, most)):
        raise ValueError(
            f"an answer has the shape {exact.shape}, but the mechanism was entered for "
            f"{most} at most: ask for fewer"
        )


class LaplaceUses(_NumberedSums):
    """Sums with Laplace noise.

    Parameters
    ----------
    shape
        Uses, then the most numbers of each along every axis.
    add
        What adds the noise; None is `source` itself.
    settings
        See `NoiseSource.enter_laplace`; the entry covers all uses.
    """

    def __init__(
        self, source: NoiseSource, shape: tuple[int, ...], add: Add | None = None, **settings: Any
    ) -> None:
        scale = source.enter_laplace(**settings)
        super().__init__(source, shape, scale, add or source.add_laplace)


class NumberedGaussianUses(_NumberedSums):
    """Sums with Gaussian noise.

    `shape` is that of `LaplaceUses`, `settings` are those of `NoiseSource.enter_gaussian`. Whether
    they keep within the budget is for `Curator` to ask.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, ...], **settings: Any) -> None:
        super().__init__(source, shape, source.enter_gaussian(**settings), source.add_gaussian)


class WishartUses:
    """Second moments with a Wishart draw: one use, which is not private whatever its scale.

    `size` and `settings` are those of `NoiseSource.wishart`; the ledger has to name the gap.
    """

    def __init__(self, source: NoiseSource, size: int, **settings: Any) -> None:
        self._draw, self._uses = source.wishart(size, **settings), NumberedUses((1,))
        entry = source.ledger.entries[-1]
        self._scale, self._sensitivity = entry.scale, entry.sensitivity

    def hand_to_kernel(self, use: int, query: Query) -> tuple[float, np.ndarray]:
        """Return s and the draw, float64 (p, p), which grows with the square of what is charged.

        Raises
        ------
        BudgetError
            If the use was taken before.
        """
        self._uses.take((use,))
        factor = query.charged / self._sensitivity
        return factor * self._scale, factor**2 * self._draw


class ExponentialUses:
    """Exponential choices, `shape` of them.

    `settings` are those of `NoiseSource.enter_exponential`; the entry covers all uses.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, ...], **settings: Any) -> None:
        self._uses, self._source = NumberedUses(shape), source
        self._scale = source.enter_exponential(**settings)
        self._sensitivity = source.ledger.entries[-1].sensitivity

    def choose(self, use: Use, utilities: np.ndarray, query: Query, unit: float = 1.0) -> Release:
        """Return which candidate is chosen, given utilities, int64 (n,) in units of `unit`.

        Raises
        ------
        BudgetError
            If the use was taken before.
        """
        scale = self._take(use, query)
        return Release(np.asarray(self._source.choose(utilities, scale, unit)), scale)

    def hand_to_kernel(self, use: Use, query: Query) -> tuple[float, np.ndarray]:
        """Return (s of P(candidate) ~ exp(utility / s), the state of the random bits).

        A curator hands them to a kernel that makes the choices of this use by
        `exact.kernels.exponential_choice_of_runs`, and to nothing else.

        Raises
        ------
        BudgetError
            If the use was taken before.
        """
        return self._take(use, query), self._source.sampler.state

    def _take(self, use: Use, query: Query) -> float:
        self._uses.take(use)
        return query.charged / self._sensitivity * self._scale


class PermuteAndFlipUses:
    """Permute-and-flip choices: `shape` is uses, then the most choices and candidates of each.

    `settings` are those of `NoiseSource.enter_permute_and_flip`; the entry covers all uses.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, int, int], **settings: Any) -> None:
        self._uses, self._most = NumberedUses(shape[:1]), shape[1:]
        self._source, self._scale = source, source.enter_permute_and_flip(**settings)
        self._sensitivity = source.ledger.entries[-1].sensitivity

    def choose(self, use: int, utilities: np.ndarray, query: Query, unit: float = 1.0) -> Release:
        """Return a candidate of each row of `utilities`, int64 (choices, candidates), of `unit`.

        Raises
        ------
        BudgetError
            If the use was taken before.
        ValueError
            If there are more choices or candidates than the mechanism was entered for.
        """
        _check_shape(utilities, self._most)
        self._uses.take((use,))
        scale = query.charged / self._sensitivity * self._scale
        return Release(self._source.permute_and_flip(utilities, scale, unit), scale)


class SampledGaussianUses:
    """Sums over Poisson samples with Gaussian noise, float32, drawn as they are asked for.

    `settings` are those of `NoiseSource.sampled_gaussian`; its entry covers all draws.
    """

    def __init__(
        self, source: NoiseSource, shape: tuple[int, ...], *, draws: int, **settings: Any
    ) -> None:
        self._noise = source.sampled_gaussian(shape, draws=draws, **settings)
        self._draws = draws
        entry = source.ledger.entries[-1]
        self._scale, self._sensitivity = entry.scale, entry.sensitivity

    def answer(self, exact: np.ndarray, query: Query) -> Release:
        """Return `exact`, float32, with noise of the query's charged sensitivity.

        Raises
        ------
        BudgetError
            If as many sums were answered as the mechanism has draws.
        ValueError
            If a sum has another shape than the draws: it would be answered several times over.
        """
        noise = next(self._noise, None)
        if noise is None:
            raise BudgetError(f"the mechanism was entered for {self._draws} sums: all are answered")
        if np.shape(exact) != noise.shape:
            raise ValueError(
                f"a sum has the shape {np.shape(exact)}, but the mechanism was entered for sums of "
                f"the shape {noise.shape}: ask for those"
            )
        factor = query.charged / self._sensitivity
        return Release(exact + np.float32(factor) * noise, factor * self._scale)
