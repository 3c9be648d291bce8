"""The one place where noise is drawn: each draw names its sensitivity and lands in the ledger."""

from __future__ import annotations

import numpy as np

from dprepro.privacy.ledger import Ledger, LedgerEntry


class NoiseSource:
    """Draws noise for one fit and writes every draw into the fit's ledger.

    Parameters
    ----------
    ledger
        Receives one entry a call.
    seed
        None draws from the operating system. A fixed seed makes a run repeatable and removes the
        protection of the noise for whoever knows it: the ledger then says so.
    """

    def __init__(self, ledger: Ledger, seed: int | np.random.SeedSequence | None) -> None:
        self.ledger = ledger
        self.generator = np.random.default_rng(seed)
        ledger.note_seed(seed)

    def gaussian(
        self,
        shape: tuple[int, ...],
        *,
        releases: str,
        noise_multiplier: float,
        sensitivity: float,
        uses: int,
        budget: tuple[float, float],
    ) -> np.ndarray:
        """Draw N(0, (noise_multiplier * sensitivity)^2), float64 of the given shape.

        `sensitivity` is the L2 sensitivity of one release and `uses` how many releases the draws
        serve; see `LedgerEntry`.

        Raises
        ------
        ValueError
            Unless both noise multiplier and sensitivity are positive and finite.
        """
        scale = noise_multiplier * sensitivity
        if not (np.isfinite(scale) and scale > 0 and sensitivity > 0):
            raise ValueError(
                f"noise for {releases!r} needs a positive, finite multiplier and sensitivity, "
                f"got {noise_multiplier!r} and {sensitivity!r}"
            )
        self.ledger.add(LedgerEntry("gaussian", releases, sensitivity, "L2", scale, uses, budget))
        return self.generator.normal(0.0, scale, shape)
