"""The ledger: every noisy release of a fit, and an independent accountant that adds them up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from dp_accounting import dp_event, rdp
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.sensitivity import Adjacency
from dprepro.privacy.subsampling import GRAIN, LITTLE_NOISE, loss_grain, sampled_loss

TOLERANCE = 1e-6
"""By how much the recomposed epsilon may exceed the stated one: rounding."""

_ORDERS = 1 + np.geomspace(1e-2, 1e5, 32_000)
"""Renyi orders, so dense that the best of them costs less than `TOLERANCE` too much."""

Choice = Literal["exponential", "permute-and-flip"]
Mechanism = Literal["gaussian", "laplace", "exponential", "permute-and-flip", "cited"]
CHOICES: tuple[Choice, ...] = ("exponential", "permute-and-flip")
"""Mechanisms that choose a candidate by its utility."""


@dataclass(frozen=True)
class LedgerEntry:
    """One kind of release.

    Attributes
    ----------
    mechanism
        "gaussian" or "laplace" noise or an "exponential" or "permute-and-flip" choice drawn here,
        or "cited": a library's own mechanism, taken at its word to be `budget`-DP.
    releases
        What was released, in words.
    sensitivity, norm
        How far one release can move between neighbours, and in which norm. For a choice: how far
        the utility of any one candidate can move, or half the largest difference between the moves
        of two (a constant added to all utilities changes no choice).
    scale
        In the sensitivity's unit: standard deviation (gaussian), scale b (laplace), the s of
        P(candidate) ~ exp(utility / s) (exponential), or the s of exp(-d / s), with which a
        candidate passes whose utility is d below the largest (permute-and-flip); for "cited" as far
        as known, else 0.
    uses
        How many such releases one row can take part in, adaptively. Releases about disjoint sets
        of rows count once (parallel composition).
    budget
        The (epsilon, delta) that all uses together keep by themselves.
    replace_one
        The sensitivity under replace-one; None where only group privacy is known, which doubles.
    sampling
        The probability with which a row takes part in one use, independently of all others and of
        other uses (Poisson sampling); Gaussian noise only. The sample stays secret.
    exchanged
        Whether a sampled row is exchanged for another of the same sensitivity, not left out.
    """

    mechanism: Mechanism
    releases: str
    sensitivity: float
    norm: str
    scale: float
    uses: int
    budget: PrivacyBudget
    replace_one: float | None = None
    sampling: float = 1.0
    exchanged: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", PrivacyBudget(*self.budget))  # of any pair

    @property
    def noise_multiplier(self) -> float:
        """Scale over sensitivity."""
        return self.scale / self.sensitivity

    def under_replace_one(self) -> LedgerEntry:
        """Return the entry with its sensitivity (and the budget, if cited) under replace-one."""
        if self.sampling < 1:
            # Twice the sensitivity would be far too much: the two rows are seldom sampled.
            return replace(self, exchanged=True)
        sensitivity = 2 * self.sensitivity if self.replace_one is None else self.replace_one
        if self.mechanism != "cited":
            return replace(self, sensitivity=sensitivity)
        # (epsilon, delta) twice over: group privacy of two changes.
        epsilon, delta = self.budget
        doubled = PrivacyBudget(2 * epsilon, (1 + math.exp(epsilon)) * delta)
        return replace(self, budget=doubled)


@dataclass
class Ledger:
    """What one fit released and spent, what it took as public, and what it promises.

    Attributes
    ----------
    epsilon, delta, adjacency
        The stated guarantee; `adjacency` can be given by its text.
    entries
        The releases, in order.
    unpaid
        In words, what was read from private rows and is not covered by epsilon. Empty for a sound
        fit.
    assumed_public
        In words, what the guarantee takes as public.
    gaps
        In words, known holes in the proof of the stated sensitivities. Empty for a sound fit.
    post_processing
        In words, what was changed after the fit. It reads no rows, so it costs nothing.
    floating_point
        In words, releases that are summed or noised in floating-point numbers. For these the
        guarantee takes real arithmetic as given: the low bits of a rounded number can disclose what
        its noise hides (Mironov 2012). Empty where all noise is exact, see `dprepro.exact`.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1, delta=0, adjacency="replace-one")
    >>> ledger.add(LedgerEntry("laplace", "a count", 1, "l1", scale=2, uses=2, budget=(1, 0)))
    >>> round(ledger.spent_epsilon(), 6)  # two releases at 1/2 each
    1.0
    >>> print(ledger.budget, ledger.adjacency, sep=", ")
    epsilon 1, replace-one
    >>> ledger.holds
    True
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    entries: list[LedgerEntry] = field(default_factory=list)
    unpaid: list[str] = field(default_factory=list)
    assumed_public: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    post_processing: list[str] = field(default_factory=list)
    floating_point: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.adjacency = Adjacency(self.adjacency)

    @property
    def budget(self) -> PrivacyBudget:
        """The stated (epsilon, delta)."""
        return PrivacyBudget(self.epsilon, self.delta)

    def add(self, entry: LedgerEntry) -> None:
        """Append a release."""
        self.entries.append(entry)

    def note_floating_point(self, text: str) -> None:
        """List, unless it is listed, a release that is summed or noised in floating point."""
        if text not in self.floating_point:
            self.floating_point.append(text)

    def note_seed(self, seed: object) -> None:
        """List a fixed seed as not covered by epsilon: whoever knows it can subtract the noise."""
        if seed is not None:
            self.unpaid.append("fixed seed: repeatable, never for release")

    @property
    def within_budget(self) -> bool:
        """Whether the entries add up to no more than the stated epsilon."""
        return self.spent_epsilon() <= self.epsilon + TOLERANCE

    @property
    def is_empty(self) -> bool:
        """Whether it states a finite epsilon and lists no release."""
        return math.isfinite(self.epsilon) and not self.entries

    @property
    def holds(self) -> bool:
        """Whether the stated guarantee holds.

        It holds if all reads are covered by epsilon, no gap is listed, there is a release, and the
        spent epsilon is at most the stated one.
        """
        return not (self.unpaid or self.gaps or self.is_empty) and self.within_budget

    def spent_epsilon(self, adjacency: Adjacency | None = None) -> float:
        """Return the spent epsilon: what the entries add up to at the stated delta.

        `dp_accounting` composes the entries as privacy loss distributions, independently of the
        formulas that calibrated them. There is one exception: the noise of sampled releases may
        have been found by the same distributions, so tests compare it with a simulation. With
        exponential choices the result is the smallest of three valid figures: the sum of pure
        epsilons, privacy loss distributions, and Renyi DP with the bounded range of such choices.
        The result does not include gaps, nor reads that epsilon does not cover.

        Parameters
        ----------
        adjacency
            The relation to count under: by default the stated one. Of the others only replace-one
            follows from the entries.

        Raises
        ------
        ValueError
            On a relation that is neither the stated one nor replace-one.
        """
        asked = self.adjacency if adjacency is None else Adjacency(adjacency)
        if asked is self.adjacency:
            return _spent(tuple(self.entries), self.delta)
        if asked is not Adjacency.REPLACE_ONE:
            raise ValueError(
                f"the ledger states {self.adjacency} neighbours, from which nothing follows for "
                f"{asked}; ask for {self.adjacency} or {Adjacency.REPLACE_ONE}"
            )
        return _spent(tuple(entry.under_replace_one() for entry in self.entries), self.delta)

    def summary(self) -> dict[str, Any]:
        """Return what a journal keeps of the ledger, JSON-able.

        Keys: ``epsilon``, ``delta``, ``adjacency``, ``true_epsilon`` (the spent epsilon),
        ``replace_one_epsilon``, ``holds``, ``unpaid``, ``gaps``, ``floating_point``, and
        ``releases``, a list of mechanism, sensitivity, scale, uses and, if below 1, sampling.
        """
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency.value,
            "true_epsilon": _finite(self.spent_epsilon()),
            "replace_one_epsilon": _finite(self.spent_epsilon(Adjacency.REPLACE_ONE)),
            "holds": self.holds,
            "unpaid": list(self.unpaid),
            "gaps": list(self.gaps),
            "floating_point": list(self.floating_point),
            "releases": [
                {
                    "mechanism": entry.mechanism,
                    "sensitivity": entry.sensitivity,
                    "scale": round(entry.scale, 6),
                    "uses": entry.uses,
                    **({"sampling": round(entry.sampling, 9)} if entry.sampling < 1 else {}),
                }
                for entry in self.entries
            ],
        }


def _finite(epsilon: float) -> float | None:
    """Return epsilon rounded, None for infinity, which strict JSON lacks."""
    return round(epsilon, 6) if math.isfinite(epsilon) else None


@lru_cache(maxsize=1024)
def _spent(entries: tuple[LedgerEntry, ...], delta: float) -> float:
    if not entries:
        return 0.0
    if any(entry.mechanism != "cited" and entry.scale <= 0 for entry in entries):
        return math.inf
    # Without a delta pure guarantees add up, and a Gaussian has none.
    pure = sum(_pure_epsilon(entry) * entry.uses for entry in entries)
    if delta == 0:
        return pure
    if all(entry.mechanism not in CHOICES for entry in entries):
        return _spent_by_losses(entries, delta)
    return min(pure, _spent_by_losses(entries, delta), _spent_by_renyi(entries, delta))


def _spent_by_losses(entries: tuple[LedgerEntry, ...], delta: float) -> float:
    # Adaptive Gaussians compose exactly into one with the squared multipliers added up; joining
    # them first spares the discretisation error of thousands of convolutions.
    mu = math.sqrt(
        sum(e.uses / _plain_multiplier(e) ** 2 for e in entries if _is_plain_gaussian(e))
    )
    # Losses spread over mu^2 and more: at a fixed grain a huge mu would exhaust the memory.
    rest = [entry for entry in entries if not _is_plain_gaussian(entry)]
    sampled = [entry.noise_multiplier for entry in rest if entry.sampling < 1]
    grain = max([GRAIN * max(1.0, mu), *map(loss_grain, sampled)])
    losses = [_loss(entry, grain) for entry in rest]
    if mu > 0:
        losses.append(pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=grain))
    total = losses[0]
    for loss in losses[1:]:
        total = total.compose(loss)
    return float(total.get_epsilon_for_delta(delta))


def _is_plain_gaussian(entry: LedgerEntry) -> bool:
    if entry.mechanism != "gaussian":
        return False
    return entry.sampling >= 1 or entry.noise_multiplier < LITTLE_NOISE


def _plain_multiplier(entry: LedgerEntry) -> float:
    """Return the noise multiplier as if every row took part in every use."""
    # A row that is surely there and becomes another moves the sum twice as far as one that leaves.
    return entry.noise_multiplier / (2 if entry.exchanged else 1)


def _spent_by_renyi(entries: tuple[LedgerEntry, ...], delta: float) -> float:
    accountant = rdp.RdpAccountant(_ORDERS)
    for entry in entries:
        event = _renyi_event(entry)
        if event is None:
            return math.inf
        accountant.compose(event, entry.uses)
    return float(accountant.get_epsilon(delta))


def _renyi_event(entry: LedgerEntry) -> dp_event.DpEvent | None:
    if _is_plain_gaussian(entry):
        return dp_event.GaussianDpEvent(_plain_multiplier(entry))
    if entry.mechanism == "laplace":
        return dp_event.LaplaceDpEvent(entry.noise_multiplier)
    if entry.mechanism == "exponential":
        # The loss of one choice lies in an interval of width eps: eps^2 / 8-zCDP.
        return dp_event.ZCDpEvent(_pure_epsilon(entry) ** 2 / 8)
    return None


def _pure_epsilon(entry: LedgerEntry) -> float:
    if entry.mechanism == "gaussian" or (entry.mechanism == "cited" and entry.budget[1] > 0):
        return math.inf
    if entry.mechanism == "cited":
        return entry.budget[0]
    # One utility up and another down: a choice pays twice.
    moves = 2 if entry.mechanism in CHOICES else 1
    return moves / entry.noise_multiplier


def _loss(entry: LedgerEntry, grain: float) -> pld.PrivacyLossDistribution:
    if entry.mechanism == "laplace":
        loss = pld.from_laplace_mechanism(
            entry.noise_multiplier, value_discretization_interval=grain
        )
    elif entry.mechanism == "gaussian":
        loss = sampled_loss(entry.noise_multiplier, entry.sampling, grain, entry.exchanged)
    else:
        epsilon, delta = entry.budget
        if entry.mechanism in CHOICES:
            epsilon, delta = _pure_epsilon(entry), 0.0
        loss = pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, delta),
            value_discretization_interval=grain,
        )
    return loss.self_compose(entry.uses) if entry.uses > 1 else loss
