"""Audit a case by many runs: learn to tell its two worlds apart, then count how well that works.

Or by one run with many canaries, a coin for each (Steinke, Nasr and Jagielski 2023; Mahloujifar,
Melis and Chaudhuri 2025 for a curve).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dprepro import __version__
from dprepro.audit.case import Case, OneRunCase
from dprepro.audit.distinguishers import (
    Ceiling,
    Claim,
    Distinguisher,
    Rule,
    claim_of,
    judge,
    learn,
    shown_by_pairs,
    spent_under,
)
from dprepro.audit.result import (
    Audited,
    AuditResult,
    AuditVerdict,
    Evidence,
    UnverifiedError,
    audited_by,
    code_of,
    reasons,
    rounded,
)
from dprepro.audit.trials import (
    Advance,
    Checkpoint,
    Schedule,
    TrialRunner,
    Trials,
    batches,
    schedule,
)
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.guarantee_status import UNVERIFIED
from dprepro.privacy.ledger import Ledger, slack
from dprepro.privacy.lower_bounds import (
    CONFIDENCE,
    CURVE,
    FEWEST_RUNS,
    REFUTING,
    Guesses,
    mu_by_ranks,
    mu_lower_bound,
    one_run_lower_bound,
    one_run_mu_bound,
)


class Bounds(NamedTuple):
    """On epsilon from below: with the confidence `CONFIDENCE`, and with `REFUTING`."""

    shown: float
    refuting: float


# Among hundreds of thresholds the best one was lucky too. Asking for more confidence than in the
# end favours thresholds that many runs speak for.
_TRAINING_CONFIDENCE = 0.999
# The rest is for guesses, which say more where worlds differ a lot.
_RISK_OF_RANKS = 0.9


def audit(
    case: Case,
    trials: int,
    *,
    jobs: int = 1,
    seed: int | None = None,
    keep_in: Path | None = None,
    advance: Advance | None = None,
) -> AuditResult:
    """Run a case, learn from some of the runs unless it has a rule, and bound epsilon from others.

    Ends early once the stated epsilon is refuted; see `schedule` for the looks.

    Raises UnverifiedError if the method keeps no ledger. Raises DpreproError as `schedule`,
    `TrialRunner` and `Checkpoint`.

    Parameters
    ----------
    trials
        Runs at most.
    jobs, seed, advance
        See `TrialRunner`.
    keep_in
        A file for finished runs, see `Checkpoint`: the same call continues after a kill. It stays,
        so that the same call later takes all runs from there, and so does a case that shares them.
    """
    started = time.perf_counter()
    plan = schedule(trials, learns=case.rule is None)
    outcome = case.fit(True, seed)
    whole = ledger_of(outcome)
    if whole is None or whole.is_empty:
        raise UnverifiedError(
            f"{case.subject}: {UNVERIFIED}. Until then there is no guarantee to hold its outputs "
            "against"
        )
    ledger = case.audited_part(whole)
    kept = None
    if keep_in is not None:
        kept = Checkpoint(keep_in, _facts(case, whole, trials, seed) | code_of(case))
    with TrialRunner(case, jobs=jobs, seed=seed, kept=kept, advance=advance) as runner:
        training = None
        rule = case.rule
        if rule is None:
            training = runner.run(batches("training", plan.training, trials))
            rule = _learnt(training, ledger)
        ceiling = _ceiling(case, outcome, ledger, training)
        judged, bounds = _looked_at(plan, trials, runner, rule, ledger)
    return AuditResult(
        **audited_by(case, ledger),
        bound=claim_of(ledger),
        lower_bound=bounds.shown,
        refuting_bound=bounds.refuting,
        confidence=CONFIDENCE,
        trials=plan.training + len(judged.present),
        seconds=time.perf_counter() - started,
        ceiling=ceiling,
        evidence=Evidence(rule.scores(judged.outputs), judged.present, rule.threshold),
    )


def _facts(case: Case, ledger: Ledger, trials: int, seed: int | None) -> dict[str, Any]:
    return {
        "runs": case.runs_of, "task": case.task,
        "epsilon": ledger.epsilon, "delta": ledger.delta, "trials": trials, "seed": seed,
        "dprepro": __version__,
    }  # fmt: skip


def _learnt(training: Trials, ledger: Ledger) -> Distinguisher:
    cautious = claim_of(ledger).bound(ledger.delta, _TRAINING_CONFIDENCE)
    return learn(training.outputs, training.present, cautious)


def _looked_at(
    plan: Schedule, trials: int, runner: TrialRunner, rule: Rule, ledger: Ledger
) -> tuple[Trials, Bounds]:
    """Return the runs that were judged, and the largest of the bounds, which hold all together."""
    planned = batches("held-out", plan.looks[-1].runs, trials)
    parts: list[Trials] = []
    made, best = 0, Bounds(0.0, 0.0)
    for look in plan.looks:
        needed = math.ceil(look.runs / planned[0].size)
        parts.append(runner.run(planned[made:needed]))
        made = needed
        judged = Trials.joined(parts).first(look.runs)
        guesses = judge(rule, judged.outputs, judged.present)
        best = Bounds(
            max(best.shown, _shown(judged, rule, ledger, look.confidence(CONFIDENCE))),
            max(best.refuting, _bound(guesses, rule, ledger, look.confidence(REFUTING))),
        )
        if best.refuting > ledger.epsilon + slack(ledger.epsilon):
            break  # "within" is never decided early: further runs could still refute
    return judged, best


def _shown(judged: Trials, rule: Rule, ledger: Ledger, confidence: float) -> float:
    """Return the bound by guesses; of Gaussian answers the better of that and the one by ranks.

    The two share the risk. A bound that refutes is by guesses alone, whose law is known exactly.
    """
    guesses = judge(rule, judged.outputs, judged.present)
    claim, risk = claim_of(ledger), 1 - confidence
    if claim is not Claim.GDP or len(judged.present) < FEWEST_RUNS:
        return _bound(guesses, rule, ledger, confidence)
    mu = mu_by_ranks(rule.scores(judged.outputs), judged.present, 1 - _RISK_OF_RANKS * risk)
    others = _bound(guesses, rule, ledger, 1 - (1 - _RISK_OF_RANKS) * risk)
    return max(claim.epsilon(mu, ledger.delta), others)


def _bound(guesses: Guesses, rule: Rule, ledger: Ledger, confidence: float) -> float:
    claim, delta = claim_of(ledger), ledger.delta
    return claim.epsilon(float(claim.bound(delta, confidence)(guesses, rule.form)), delta)


def _ceiling(case: Case, outcome: Any, ledger: Ledger, training: Trials | None) -> Ceiling | None:
    """Return that of the case, or an estimate; without gaps no more than is spent can be shown."""
    found: Ceiling | None = None
    if case.ceiling is not None:
        found = case.ceiling(outcome)
    elif claim_of(ledger) is Claim.GDP and training is not None:
        found = _estimated_ceiling(ledger, training)
    spent = spent_under(claim_of(ledger), ledger)
    if found is None or found.epsilon <= spent or reasons(ledger):
        return found
    return Ceiling(spent, f"{found.basis}; at most what is spent")


def _estimated_ceiling(ledger: Ledger, training: Trials) -> Ceiling:
    """Return what the best linear rule of one half of the pairs finds in the other half.

    In the half that it was learnt from it would find more than there is.
    """
    pairs = len(training.present) // 2
    learnt_from = training.first(2 * (pairs // 2))
    others = Trials(
        training.outputs[len(learnt_from.present) :], training.present[len(learnt_from.present) :]
    )
    mu = shown_by_pairs(_learnt(learnt_from, ledger), others.outputs, others.present)
    basis = f"estimated for linear rules of what is observed, from {pairs:,} pairs of runs"
    return Ceiling(epsilon_of(mu, ledger.delta), basis)


# --- in one run -----------------------------------------------------------------------------------


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
        answers are all Gaussian, but not every mechanism that keeps (epsilon, delta).
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
