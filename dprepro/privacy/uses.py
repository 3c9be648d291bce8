"""Mechanisms of a curator whose uses are numbered: each is answered once, with noise of its own.

`GaussianUses` draws noise as it is asked. Those here draw it beforehand, or let a kernel have it:
their noise follows what a query charges, so what it enforces is covered whatever the entry's unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.release import BudgetError, Query, Release

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


class _DrawnUses:
    """Sums whose noise is drawn at once for all uses: the first axis of `noise` numbers them."""

    def __init__(self, source: NoiseSource, noise: np.ndarray) -> None:
        self._uses = NumberedUses(noise.shape[:1])
        self._noise = noise
        entry = source.ledger.entries[-1]
        self._scale, self._sensitivity = entry.scale, entry.sensitivity

    def answer(self, use: int, exact: np.ndarray, query: Query) -> Release:
        """Return `exact`, float64, with noise of the query's charged sensitivity.

        Raises
        ------
        BudgetError
            If the use was taken before, or the ledger has no such use.
        """
        scale, noise = self.hand_to_kernel(use, query)
        return Release(exact + noise[tuple(map(slice, exact.shape))], scale)

    def hand_to_kernel(self, use: int, query: Query) -> tuple[float, np.ndarray]:
        """Return the scale of a use's noise, and the noise, float64, of all its numbers.

        A curator adds it to an exact answer in a unit of its own, and does nothing else with it.

        Raises
        ------
        BudgetError
            As `answer`.
        """
        self._uses.take((use,))
        factor = query.charged / self._sensitivity
        return factor * self._scale, factor * self._noise[use]


class LaplaceUses(_DrawnUses):
    """Sums with Laplace noise, drawn at once for all uses.

    Parameters
    ----------
    shape
        Uses, then the numbers of each: an answer has no more along any axis.
    settings
        See `NoiseSource.laplace`; its entry covers all uses.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, ...], **settings: Any) -> None:
        super().__init__(source, source.laplace(shape, **settings))


class DrawnGaussianUses(_DrawnUses):
    """Sums with Gaussian noise, drawn at once for all uses.

    `shape` is that of `LaplaceUses`, `settings` are those of `NoiseSource.gaussian`. Whether they
    keep within the budget is for `Curator` to ask, since the noise is drawn whatever they spend.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, ...], **settings: Any) -> None:
        super().__init__(source, source.gaussian(shape, **settings))


class WishartUses(_DrawnUses):
    """Second moments with a Wishart draw: one use, which is not private whatever its scale.

    `size` and `settings` are those of `NoiseSource.wishart`; the ledger has to name the gap.
    """

    def __init__(self, source: NoiseSource, size: int, **settings: Any) -> None:
        super().__init__(source, source.wishart(size, **settings)[None])

    def hand_to_kernel(self, use: int, query: Query) -> tuple[float, np.ndarray]:
        """Return s and the draw, float64 (p, p), which grows with the square of what is charged."""
        self._uses.take((use,))
        factor = query.charged / self._sensitivity
        return factor * self._scale, factor**2 * self._noise[use]


class ExponentialUses:
    """Exponential choices by inversion: one uniform draw a choice, for all uses at once.

    Parameters
    ----------
    shape
        Of the uses, or of all draws where a use needs several.
    use_axes
        How many of the shape's axes number the uses; None: all of them.
    settings
        See `NoiseSource.exponential_by_inversion`; its entry covers all uses.
    """

    def __init__(
        self,
        source: NoiseSource,
        shape: tuple[int, ...],
        *,
        use_axes: int | None = None,
        **settings: Any,
    ) -> None:
        self._uses = NumberedUses(shape[:use_axes])
        self._scale, self._uniforms = source.exponential_by_inversion(shape, **settings)
        self._sensitivity = source.ledger.entries[-1].sensitivity

    def hand_to_kernel(self, use: Use, query: Query) -> tuple[float, np.ndarray]:
        """Return (s of P(candidate) ~ exp(utility / s), the draws of a use) for a kernel.

        A curator hands them to a kernel that makes the choices, and to nothing else.

        Raises
        ------
        BudgetError
            If the use was taken before.
        """
        self._uses.take(use)
        return query.charged / self._sensitivity * self._scale, self._uniforms[use]


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
