"""The one place where noise is drawn: each draw names its sensitivity and lands in the ledger.

`NoiseSource` draws. Noise on whole numbers is exact: `add_gaussian`, `add_laplace`, `choose` and
`permute_and_flip` take an answer in whole numbers of a public unit and draw in the same unit, see
`dprepro.privacy.sampling`. What is left in floating point, `sampled_gaussian` and `wishart`, says
so, and the ledger lists it.

The mechanisms after it number their uses: each is answered once, with noise of its own, which
follows what a query charges. So what the query enforces is covered whatever the entry's unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, track
from dprepro.privacy.ledger_entry import Choice, LedgerEntry
from dprepro.privacy.query import BudgetError, NoisyAnswer, Query, Unit
from dprepro.privacy.sampling.bits import Bits, UnseededGenerator, renew_if_forked
from dprepro.privacy.sampling.sampler import SMALLEST_SCALE, ExactSampler
from dprepro.privacy.sensitivity import Sensitivity

_ROUNDED_UP = 1 + 2.0**-50
"""What a scale in units is multiplied by: a quotient of doubles is too small by less."""


class NoiseSource:
    """Draws noise for one fit and writes every mechanism into the fit's ledger.

    Parameters
    ----------
    ledger
        Receives one entry a mechanism.
    seed
        None takes randomness from the operating system, also anew in a forked process. A fixed seed
        makes a run repeatable, in forked processes, too, and removes the protection of the noise
        for whoever knows it: the ledger then says so.

    Attributes
    ----------
    sampler
        Draws all noise on whole numbers, and choices that stay secret.
    generator
        Draws the noise that is left in floating point.
    public_generator
        Draws choices that show in what is released. Without a fixed seed it is independent of
        `generator`, whose state, and so its noise, could be worked out from enough of its draws.
    """

    def __init__(self, ledger: Ledger, seed: int | np.random.SeedSequence | None) -> None:
        self.ledger = ledger
        self.sampler = ExactSampler(Bits(seed))
        fresh = seed is None
        self.generator = UnseededGenerator() if fresh else np.random.default_rng(seed)
        self.public_generator = UnseededGenerator() if fresh else self.generator
        self._is_seeded = seed is not None
        self._entered: list[LedgerEntry] = []
        ledger.note_seed(seed)
        track(self)

    @property
    def may_have_drawn(self) -> bool:
        """Whether it has drawn exact noise, or lists noise that others draw or that is not exact.

        A ledger gets its entry before the first draw, so of these only that one will come is known.
        """
        cited = any(entry.mechanism == "cited" for entry in self.ledger.entries)
        return cited or bool(self.ledger.floating_point) or self.sampler.has_drawn

    def drawn_for(self, ledger: Ledger) -> list[LedgerEntry]:
        """Return the entries of a ledger that it wrote, once its sampler has drawn; else none.

        For which of several entries it has drawn is not known.
        """
        return list(self._entered) if ledger is self.ledger and self.sampler.has_drawn else []

    def _enter(self, entry: LedgerEntry) -> None:
        self.ledger.add(entry)
        self._entered.append(entry)

    def choose_publicly_by(self, entropy: int) -> None:
        """Draw public choices from a stream that can be repeated, unless a seed repeats all."""
        if not self._is_seeded:
            self.public_generator = np.random.default_rng(entropy)

    def add_gaussian(self, exact: np.ndarray, scale: float, unit: Unit = 1.0) -> np.ndarray:
        """Return an answer with Gaussian noise of standard deviation `scale`, float64.

        Raises TypeError if the answer is not of whole numbers. Raises ValueError if the noise is
        too large for whole numbers of that unit; see `ExactSampler`.

        Parameters
        ----------
        exact : int64 (...)
            The answer, in units of `unit`.
        scale
            That of an entry in the ledger, times what the query charges more.
        unit
            Public. With one unit for each number it broadcasts to the answer.
        """
        return _with_noise(self.sampler.gaussian, exact, scale, unit)

    def add_laplace(self, exact: np.ndarray, scale: float, unit: Unit = 1.0) -> np.ndarray:
        """Return an answer with Laplace noise of scale `scale`; see `add_gaussian`."""
        return _with_noise(self.sampler.laplace, exact, scale, unit)

    def choose(self, utilities: np.ndarray, scale: float, unit: float = 1.0) -> int:
        """Return i with probability proportional to exp(utilities[i] / scale).

        Utilities are int64 (n,), in units of `unit`. Raises as `add_gaussian`.
        """
        return self.sampler.choice(_whole(utilities), in_units(scale, unit))

    def permute_and_flip(
        self, utilities: np.ndarray, scale: float, unit: float = 1.0
    ) -> np.ndarray:
        """Return a candidate of each row of `utilities`, int64 (choices,), by permute-and-flip.

        Utilities are int64 (choices, candidates), in units of `unit`. Raises as `add_gaussian`.
        """
        return self.sampler.permute_and_flip(_whole(utilities), in_units(scale, unit))

    def enter_gaussian(
        self,
        *,
        releases: str,
        noise_multiplier: float,
        sensitivity: Sensitivity,
        uses: int,
        budget: PrivacyBudget,
        sampling: float = 1.0,
    ) -> float:
        """Write the entry of noise N(0, s^2), s = noise_multiplier * sensitivity, and return s.

        `sensitivity` is the L2 sensitivity of one answer and `uses` how many answers the noise
        serves. A row takes part in each with probability `sampling`; see `LedgerEntry`.

        Raises ValueError unless both noise multiplier and sensitivity are positive and finite.
        """
        stated = sensitivity.stated
        scale = _scale(releases, noise_multiplier, stated)
        self._enter(
            LedgerEntry(
                "gaussian", releases, stated, "L2", scale, uses, budget,
                replace_one=sensitivity.replace_one, sampling=sampling,
            )
        )  # fmt: skip
        return scale

    def enter_laplace(
        self, *, releases: str, epsilon: float, sensitivity: float, uses: int = 1
    ) -> float:
        """Write the entry of Laplace noise, epsilon-DP a use; return b = sensitivity / epsilon.

        `sensitivity` is the L1 sensitivity of one answer; see `LedgerEntry` for `uses`.

        Raises ValueError unless epsilon and sensitivity are positive and finite.
        """
        scale = _scale(releases, 1 / epsilon if epsilon > 0 else 0.0, sensitivity)
        budget = PrivacyBudget(epsilon * uses, 0.0)
        self._enter(LedgerEntry("laplace", releases, sensitivity, "L1", scale, uses, budget))
        return scale

    def enter_exponential(
        self, *, releases: str, epsilon: float, sensitivity: float, uses: int = 1
    ) -> float:
        """Write the entry of exponential choices, epsilon-DP each; return s.

        A candidate is chosen with probability proportional to exp(utility / s), where
        s = 2 sensitivity / epsilon (McSherry, Talwar 2007). Raises as `enter_laplace`.
        """
        return self._enter_choices("exponential", releases, epsilon, sensitivity, uses)

    def enter_permute_and_flip(
        self, *, releases: str, epsilon: float, sensitivity: float, uses: int = 1
    ) -> float:
        """Write the entry of permute-and-flip choices, epsilon-DP each; return s.

        Candidates come in a random order, and the first is chosen that passes a trial of
        probability exp(-d / s), d the distance of its utility from the largest, where
        s = 2 sensitivity / epsilon (McKenna, Sheldon 2020). Raises as `enter_laplace`.
        """
        return self._enter_choices("permute-and-flip", releases, epsilon, sensitivity, uses)

    def _enter_choices(
        self, mechanism: Choice, releases: str, epsilon: float, sensitivity: float, uses: int
    ) -> float:
        scale = _scale(releases, 2 / epsilon if epsilon > 0 else 0.0, sensitivity)
        budget = PrivacyBudget(epsilon * uses, 0.0)
        self._enter(LedgerEntry(mechanism, releases, sensitivity, "max", scale, uses, budget))
        return scale

    def sampled_gaussian(
        self,
        shape: tuple[int, ...],
        *,
        releases: str,
        noise_multiplier: float,
        sensitivity: float,
        draws: int,
        uses: int,
        sampling: float,
        budget: PrivacyBudget,
    ) -> Iterator[np.ndarray]:
        """Yield `draws` times N(0, (noise_multiplier * sensitivity)^2), float32 of the given shape.

        `sensitivity` is by how much, in L2, a row that takes part can move one answer, under
        zero-out and add/remove-one. A row takes part in `uses` answers, in each with probability
        `sampling`; see `LedgerEntry`. The entry is written at once, the noise drawn one by one. The
        ledger lists it as floating point.

        Raises ValueError unless both noise multiplier and sensitivity are positive and finite.
        """
        scale = _scale(releases, noise_multiplier, sensitivity)
        self._enter(
            LedgerEntry(
                "gaussian", releases, sensitivity, "L2", scale, uses, budget, sampling=sampling
            )
        )
        self.ledger.note_floating_point(f"{releases}: the sums and their noise are float32")

        def drawn() -> np.ndarray:
            renew_if_forked()
            numbers = self.generator.standard_normal(shape, dtype=np.float32)
            return np.asarray(np.float32(scale) * numbers)

        return (drawn() for _ in range(draws))

    def wishart(
        self,
        size: int,
        *,
        releases: str,
        scale: float,
        sensitivity: float,
        budget: PrivacyBudget,
    ) -> np.ndarray:
        """Draw W_p(p + 1, scale^2 I), float64 (p, p) with p = `size`: symmetric and positive.

        Not differentially private, whatever its scale (see `methods.wishart_regression`). The
        ledger takes `budget` from the source that claims it, "cited", and lists the draw as
        floating point; the caller names the gap.
        `sensitivity` is the L2 norm of a row, in the unit of `scale`.

        Raises ValueError unless scale and sensitivity are positive and finite.
        """
        scale = _scale(releases, scale / sensitivity if sensitivity > 0 else 0.0, sensitivity)
        self._enter(LedgerEntry("cited", releases, sensitivity, "L2", scale, 1, budget))
        self.ledger.note_floating_point(f"{releases}: they and the Wishart draw are float64")
        renew_if_forked()
        factor = self.generator.normal(0.0, scale, (size, size + 1))
        return factor @ factor.T


def in_units(scale: float, unit: float) -> float:
    """Return the scale of noise on whole numbers of `unit`, rounded up.

    Noise too small to be drawn is made larger: the guarantee holds all the more.

    Raises ValueError if the unit is not positive: there would be hardly any noise.
    """
    if not unit > 0:
        raise ValueError(f"noise needs a positive unit, got {unit!r}")
    return max(scale / unit * _ROUNDED_UP, SMALLEST_SCALE)


def _with_noise(
    draw: Callable[[float, tuple[int, ...]], np.ndarray],
    exact: np.ndarray,
    scale: float,
    unit: Unit,
) -> np.ndarray:
    whole = _whole(exact)
    if not isinstance(unit, np.ndarray):
        return np.asarray((whole + draw(in_units(scale, unit), whole.shape)) * unit)
    noisy, units = whole.copy(), np.broadcast_to(unit, whole.shape)
    for each in np.unique(units):
        at = units == each
        noisy[at] += draw(in_units(scale, float(each)), (int(at.sum()),))
    return noisy * units


def _whole(exact: np.ndarray) -> np.ndarray:
    if exact.dtype != np.int64:
        raise TypeError(
            f"noise is added to whole numbers, int64, got {exact.dtype}: round the rows' parts to "
            "a public unit, and charge for what they are then"
        )
    return exact


def _scale(releases: str, noise_multiplier: float, sensitivity: float) -> float:
    scale = noise_multiplier * sensitivity
    if not (np.isfinite(scale) and scale > 0 and sensitivity > 0):
        raise ValueError(
            f"noise for {releases!r} needs a positive, finite multiplier and sensitivity, "
            f"got {noise_multiplier:g} and {sensitivity:g}"
        )
    return float(scale)


Add = Callable[[np.ndarray, float, Unit], np.ndarray]

Use = tuple[int, ...]
"""The place of a use among those of a mechanism, which may be numbered in several directions."""


class NumberedUses:
    """Uses of one mechanism, `shape` of them, each of which can be taken once."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._left = np.ones(shape, dtype=bool)

    def take(self, use: Use) -> None:
        """Take a use. Raises BudgetError if it was taken before, or the ledger has no such use."""
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

    def answer(self, use: int, exact: np.ndarray, query: Query, unit: Unit = 1.0) -> NoisyAnswer:
        """Return `exact`, int64 in units of `unit`, with noise of the query's charged sensitivity.

        Raises BudgetError if the use was taken before, or the ledger has no such use. Raises
        ValueError if the answer has more numbers than the mechanism was entered for.
        """
        _check_shape(exact, self._most)
        self._uses.take((use,))
        scale = query.charged / self._sensitivity * self._scale
        return NoisyAnswer(self._add(exact, scale, unit), scale)


def _check_shape(exact: np.ndarray, most: tuple[int, ...]) -> None:
    if exact.ndim != len(most) or any(np.greater(exact.shape, most)):
        raise ValueError(
            f"an answer has the shape {exact.shape}, but the mechanism was entered for "
            f"{most} at most: ask for fewer"
        )


class LaplaceMechanism(_NumberedSums):
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


class NumberedGaussianMechanism(_NumberedSums):
    """Sums with Gaussian noise.

    `shape` is that of all answers, `settings` are those of `NoiseSource.enter_gaussian`. Whether
    they keep within the budget is for `Curator` to ask.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, ...], **settings: Any) -> None:
        super().__init__(source, shape, source.enter_gaussian(**settings), source.add_gaussian)


class WishartMechanism:
    """Second moments with a Wishart draw: one use, which is not private whatever its scale.

    `size` and `settings` are those of `NoiseSource.wishart`; the ledger has to name the gap.
    """

    def __init__(self, source: NoiseSource, size: int, **settings: Any) -> None:
        self._draw, self._uses = source.wishart(size, **settings), NumberedUses((1,))
        entry = source.ledger.entries[-1]
        self._scale, self._sensitivity = entry.scale, entry.sensitivity

    def hand_to_kernel(self, use: int, query: Query) -> tuple[float, np.ndarray]:
        """Return s and the draw, float64 (p, p), which grows with the square of what is charged.

        Raises BudgetError if the use was taken before.
        """
        self._uses.take((use,))
        factor = query.charged / self._sensitivity
        return factor * self._scale, factor**2 * self._draw


class ExponentialMechanism:
    """Exponential choices, `shape` of them.

    `settings` are those of `NoiseSource.enter_exponential`; the entry covers all uses.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, ...], **settings: Any) -> None:
        self._uses, self._source = NumberedUses(shape), source
        self._scale = source.enter_exponential(**settings)
        self._sensitivity = source.ledger.entries[-1].sensitivity

    def choose(
        self, use: Use, utilities: np.ndarray, query: Query, unit: float = 1.0
    ) -> NoisyAnswer:
        """Return which candidate is chosen, given utilities, int64 (n,) in units of `unit`.

        Raises BudgetError if the use was taken before.
        """
        scale = self._take(use, query)
        return NoisyAnswer(np.asarray(self._source.choose(utilities, scale, unit)), scale)

    def hand_to_kernel(self, use: Use, query: Query) -> tuple[float, np.ndarray]:
        """Return (s of P(candidate) ~ exp(utility / s), the state of the random bits).

        A curator hands them to a kernel that makes the choices of this use by
        `exact_noise.exponential_choice_of_runs`, and to nothing else.

        Raises BudgetError if the use was taken before.
        """
        return self._take(use, query), self._source.sampler.state

    def _take(self, use: Use, query: Query) -> float:
        self._uses.take(use)
        return query.charged / self._sensitivity * self._scale


class PermuteAndFlipMechanism:
    """Permute-and-flip choices: `shape` is uses, then the most choices and candidates of each.

    `settings` are those of `NoiseSource.enter_permute_and_flip`; the entry covers all uses.
    """

    def __init__(self, source: NoiseSource, shape: tuple[int, int, int], **settings: Any) -> None:
        self._uses, self._most = NumberedUses(shape[:1]), shape[1:]
        self._source, self._scale = source, source.enter_permute_and_flip(**settings)
        self._sensitivity = source.ledger.entries[-1].sensitivity

    def choose(
        self, use: int, utilities: np.ndarray, query: Query, unit: float = 1.0
    ) -> NoisyAnswer:
        """Return a candidate of each row of `utilities`, int64 (choices, candidates), of `unit`.

        Raises BudgetError if the use was taken before. Raises ValueError if there are more choices
        or candidates than the mechanism was entered for.
        """
        _check_shape(utilities, self._most)
        self._uses.take((use,))
        scale = query.charged / self._sensitivity * self._scale
        return NoisyAnswer(self._source.permute_and_flip(utilities, scale, unit), scale)


class SampledGaussianMechanism:
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

    def answer(self, exact: np.ndarray, query: Query) -> NoisyAnswer:
        """Return `exact`, float32, with noise of the query's charged sensitivity.

        Raises BudgetError if as many sums were answered as the mechanism has draws. Raises
        ValueError if a sum has another shape than the draws: it would be answered several times
        over.
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
        return NoisyAnswer(exact + np.float32(factor) * noise, factor * self._scale)
