"""Audit by one run: many canaries, a coin for each (Steinke, Nasr, Jagielski 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.case import OneRunCase
from dprepro.audit.result import Audited, AuditVerdict, audited_by, is_gaussian, rounded
from dprepro.privacy.audit import (
    CONFIDENCE,
    Guesses,
    mu_lower_bound,
    one_run_lower_bound,
)
from dprepro.privacy.gdp import epsilon_of

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
    independent_bound
        By Gaussian DP from one guess about each canary, given that the noise of different canaries
        is independent, which holds by construction of the case; None for other noise. Much sharper.
    confidence
        With which each of the bounds holds.
    """

    canaries: int
    guesses: int
    correct: int
    lower_bound: float
    independent_bound: float | None
    confidence: float

    @property
    def verdict(self) -> AuditVerdict:
        """The verdict on the higher of the two bounds."""
        return self.judged(max(self.lower_bound, self.independent_bound or 0.0))

    def to_json(self) -> dict[str, Any]:
        """Return all fields, JSON-able."""
        independent = self.independent_bound
        return self.stated() | {
            "bound": "one run",
            "canaries": self.canaries,
            "guesses": self.guesses,
            "correct": self.correct,
            "lower_bound": rounded(self.lower_bound),
            "independent_bound": None if independent is None else rounded(independent),
            "confidence": self.confidence,
            "verdict": self.verdict.value,
        }


def audit_in_one_run(case: OneRunCase, *, seed: int | None = None) -> OneRunResult:
    """Flip the coins, run once, guess and bound epsilon.

    `seed` as in `run_trials`.
    """
    generator = np.random.default_rng(seed)
    coins = generator.random(case.canaries) < 0.5
    run_seed = None if seed is None else int(generator.integers(2**32))
    scores, ledger = case.run(coins, run_seed)
    right = (scores > 0) == coins
    guesses = max(1, round(GUESSED_SHARE * case.canaries))
    guessed = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    correct = int(right[guessed].sum())
    return OneRunResult(
        **audited_by(case, ledger),
        canaries=case.canaries,
        guesses=guesses,
        correct=correct,
        lower_bound=one_run_lower_bound(case.canaries, guesses, correct, ledger.delta),
        independent_bound=_independent(right, coins, ledger.delta) if is_gaussian(ledger) else None,
        confidence=CONFIDENCE,
    )


def _independent(right: np.ndarray, coins: np.ndarray, delta: float) -> float:
    guesses = Guesses(
        int((~right & ~coins).sum()), int((~coins).sum()),
        int((~right & coins).sum()), int(coins.sum()),
    )  # fmt: skip
    return epsilon_of(float(mu_lower_bound(guesses)), delta)
