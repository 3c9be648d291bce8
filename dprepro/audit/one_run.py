"""Audit by one run: many canaries, a coin for each.

By Steinke, Nasr and Jagielski (2023), and by Mahloujifar, Melis and Chaudhuri (2025) for a curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.bounds import Claim, claim_of
from dprepro.audit.case import OneRunCase
from dprepro.audit.result import Audited, AuditVerdict, audited_by, rounded
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.lower_bounds import (
    CONFIDENCE,
    CURVE,
    REFUTING,
    Guesses,
    mu_lower_bound,
    one_run_lower_bound,
    one_run_mu_bound,
)

GUESSED_SHARE = 0.25
"""Of the canaries, those with the largest absolute scores are guessed at. Fixed beforehand."""


@dataclass(frozen=True)
class OneRunResult(Audited):
    """What one run proves.

    Attributes
    ----------
    canaries, guesses, correct
        m, r and v of `one_run_p_value`.
    lower_bound
        By `one_run_lower_bound`, which assumes nothing of the mechanism.
    curve_bound
        By `one_run_mu_bound`, which takes the mechanism's trade-off curve to be Gaussian, as its
        ledger says. None for other noise. It refutes curves, and so the guarantee of a ledger whose
        releases are all Gaussian, but not every mechanism that keeps (epsilon, delta).
    independent_bound
        By Gaussian DP from one guess about each canary, given that the noise of different canaries
        is independent, which holds by construction of the case; None for other noise. Much sharper.
    refuting_bound
        The highest of the bounds above, where all of them hold together with the confidence
        `REFUTING`: what it exceeds is refuted.
    confidence
        With which each of the other bounds holds by itself.
    """

    canaries: int
    guesses: int
    correct: int
    lower_bound: float
    curve_bound: float | None
    independent_bound: float | None
    refuting_bound: float
    confidence: float

    @property
    def verdict(self) -> AuditVerdict:
        """The verdict on the highest of the bounds."""
        sharper = (self.curve_bound or 0.0, self.independent_bound or 0.0)
        return self.judged(max(self.lower_bound, *sharper), self.refuting_bound)

    def to_json(self) -> dict[str, Any]:
        """Return all fields, JSON-able."""
        curve, independent = self.curve_bound, self.independent_bound
        return self.stated() | {
            "bound": "one run",
            "canaries": self.canaries,
            "guesses": self.guesses,
            "correct": self.correct,
            "lower_bound": rounded(self.lower_bound),
            "curve_bound": None if curve is None else rounded(curve),
            "curve": None if curve is None else CURVE,
            "independent_bound": None if independent is None else rounded(independent),
            "refuting_bound": rounded(self.refuting_bound),
            "confidence": self.confidence,
            "verdict": self.verdict.value,
        }


def audit_in_one_run(case: OneRunCase, *, seed: int | None = None) -> OneRunResult:
    """Flip the coins, run once, guess and bound epsilon.

    `seed` as in `TrialRunner`.
    """
    generator = np.random.default_rng(seed)
    coins = generator.random(case.canaries) < 0.5
    run_seed = None if seed is None else int(generator.integers(2**32))
    scores, ledger = case.run(coins, run_seed)
    right = (scores > 0) == coins
    guesses = max(1, round(GUESSED_SHARE * case.canaries))
    guessed = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    correct = int(right[guessed].sum())

    def bounds(confidence: float) -> tuple[float, float | None, float | None]:
        """Return all three, each of which holds with this confidence."""
        counts, delta = (case.canaries, guesses, correct), ledger.delta
        anyway = one_run_lower_bound(*counts, delta, confidence)
        if claim_of(ledger) is not Claim.GDP:
            return anyway, None, None
        curve = epsilon_of(one_run_mu_bound(*counts, confidence), delta)
        return anyway, curve, _independent(right, coins, delta, confidence)

    lower_bound, curve_bound, independent_bound = shown = bounds(CONFIDENCE)
    # The highest of some bounds is too high if any is: they share the risk (Bonferroni).
    together = sum(bound is not None for bound in shown)
    refuting = bounds(1 - (1 - REFUTING) / together)
    return OneRunResult(
        **audited_by(case, ledger),
        canaries=case.canaries,
        guesses=guesses,
        correct=correct,
        lower_bound=lower_bound,
        curve_bound=curve_bound,
        independent_bound=independent_bound,
        refuting_bound=max(bound for bound in refuting if bound is not None),
        confidence=CONFIDENCE,
    )


def _independent(right: np.ndarray, coins: np.ndarray, delta: float, confidence: float) -> float:
    guesses = Guesses(
        int((~right & ~coins).sum()), int((~coins).sum()),
        int((~right & coins).sum()), int(coins.sum()),
    )  # fmt: skip
    return epsilon_of(float(mu_lower_bound(guesses, confidence=confidence)), delta)
