"""The one place where noise is drawn: each draw names its sensitivity and lands in the ledger."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import Sensitivity


class NoiseSource:
    """Draws noise for one fit and writes every draw into the fit's ledger.

    Parameters
    ----------
    ledger
        Receives one entry a call.
    seed
        None seeds from the operating system. A fixed seed makes a run repeatable and removes the
        protection of the noise for whoever knows it: the ledger then says so.

    Attributes
    ----------
    generator
        Draws the noise, and choices that stay secret.
    public_generator
        Draws choices that show in what is released. Without a fixed seed it is independent of
        `generator`, whose state, and so its noise, could be worked out from enough of its draws.
    """

    def __init__(self, ledger: Ledger, seed: int | np.random.SeedSequence | None) -> None:
        self.ledger = ledger
        self.generator = np.random.default_rng(seed)
        self.public_generator = self.generator if seed is not None else np.random.default_rng()
        ledger.note_seed(seed)

    def gaussian(
        self,
        shape: tuple[int, ...],
        *,
        releases: str,
        noise_multiplier: float,
        sensitivity: Sensitivity,
        uses: int,
        budget: PrivacyBudget,
    ) -> np.ndarray:
        """Draw N(0, (noise_multiplier * sensitivity)^2), float64 of the given shape.

        `sensitivity` is the L2 sensitivity of one release and `uses` how many releases the draws
        serve; see `LedgerEntry`.

        Raises
        ------
        ValueError
            Unless both noise multiplier and sensitivity are positive and finite.
        """
        scale = self.enter_gaussian(
            releases=releases, noise_multiplier=noise_multiplier, sensitivity=sensitivity,
            uses=uses, budget=budget,
        )  # fmt: skip
        return self.generator.normal(0.0, scale, shape)

    def enter_gaussian(
        self,
        *,
        releases: str,
        noise_multiplier: float,
        sensitivity: Sensitivity,
        uses: int,
        budget: PrivacyBudget,
    ) -> float:
        """Write the entry of `gaussian` and return its scale, for noise drawn use by use."""
        stated = sensitivity.stated
        scale = _scale(releases, noise_multiplier, stated)
        self.ledger.add(
            LedgerEntry(
                "gaussian", releases, stated, "L2", scale, uses, budget, sensitivity.replace_one
            )
        )
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

        `sensitivity` is by how much, in L2, a row that takes part can move one release, under
        zero-out and add/remove-one. A row takes part in `uses` releases, in each with probability
        `sampling`; see `LedgerEntry`. The entry is written at once, the noise drawn one by one.

        Raises
        ------
        ValueError
            Unless both noise multiplier and sensitivity are positive and finite.
        """
        scale = _scale(releases, noise_multiplier, sensitivity)
        self.ledger.add(
            LedgerEntry(
                "gaussian", releases, sensitivity, "L2", scale, uses, budget, sampling=sampling
            )
        )
        return (
            np.float32(scale) * self.generator.standard_normal(shape, dtype=np.float32)
            for _ in range(draws)
        )

    def laplace(
        self,
        shape: tuple[int, ...],
        *,
        releases: str,
        epsilon: float,
        sensitivity: float,
        uses: int = 1,
    ) -> np.ndarray:
        """Draw Laplace(sensitivity / epsilon), float64 of the given shape: epsilon-DP a use.

        `sensitivity` is the L1 sensitivity of one release; see `LedgerEntry` for `uses`.

        Raises
        ------
        ValueError
            Unless epsilon and sensitivity are positive and finite.
        """
        scale = _scale(releases, 1 / epsilon if epsilon > 0 else 0.0, sensitivity)
        budget = PrivacyBudget(epsilon * uses, 0.0)
        self.ledger.add(LedgerEntry("laplace", releases, sensitivity, "L1", scale, uses, budget))
        return self.generator.laplace(0.0, scale, shape)

    def exponential(
        self,
        shape: tuple[int, ...],
        *,
        releases: str,
        epsilon: float,
        sensitivity: float,
        uses: int = 1,
    ) -> tuple[float, np.ndarray]:
        """Return (s, Gumbel noise) of exponential choices, epsilon-DP each.

        ``argmax(utility / s + noise)`` over the candidates, with a fresh row of noise a choice,
        picks one with probability proportional to exp(utility / s), where
        s = 2 sensitivity / epsilon (McSherry, Talwar 2007).

        Raises
        ------
        ValueError
            Unless epsilon and sensitivity are positive and finite.
        """
        scale = self._exponential_scale(releases, epsilon, sensitivity, uses)
        return scale, self.generator.gumbel(size=shape)

    def exponential_by_inversion(
        self,
        shape: tuple[int, ...],
        *,
        releases: str,
        epsilon: float,
        sensitivity: float,
        uses: int = 1,
    ) -> tuple[float, np.ndarray]:
        """Return (s, uniform noise in [0, 1)) of exponential choices: one draw a choice.

        The first candidate at which the running sum of exp(utility / s) exceeds noise times its
        total has the same probabilities as the choice of `exponential`, without a draw for every
        candidate. Raises as `exponential`.
        """
        scale = self._exponential_scale(releases, epsilon, sensitivity, uses)
        return scale, self.generator.random(shape)

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

        Not differentially private, whatever its scale (see `baselines.wishart_regression`). The
        ledger takes `budget` from the source that claims it, "cited"; the caller names the gap.
        `sensitivity` is the L2 norm of a row, in the unit of `scale`.

        Raises
        ------
        ValueError
            Unless scale and sensitivity are positive and finite.
        """
        scale = _scale(releases, scale / sensitivity if sensitivity > 0 else 0.0, sensitivity)
        self.ledger.add(LedgerEntry("cited", releases, sensitivity, "L2", scale, 1, budget))
        factor = self.generator.normal(0.0, scale, (size, size + 1))
        return factor @ factor.T

    def _exponential_scale(
        self, releases: str, epsilon: float, sensitivity: float, uses: int
    ) -> float:
        scale = _scale(releases, 2 / epsilon if epsilon > 0 else 0.0, sensitivity)
        budget = PrivacyBudget(epsilon * uses, 0.0)
        self.ledger.add(
            LedgerEntry("exponential", releases, sensitivity, "max", scale, uses, budget)
        )
        return scale


def _scale(releases: str, noise_multiplier: float, sensitivity: float) -> float:
    scale = noise_multiplier * sensitivity
    if not (np.isfinite(scale) and scale > 0 and sensitivity > 0):
        raise ValueError(
            f"noise for {releases!r} needs a positive, finite multiplier and sensitivity, "
            f"got {noise_multiplier!r} and {sensitivity!r}"
        )
    return float(scale)
