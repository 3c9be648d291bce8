"""One kind of noisy answer, as a ledger lists it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from dprepro.privacy.budget import PrivacyBudget, group_budget
from dprepro.runtime.arguments import (
    SHARE,
    Integer,
    Number,
    OneOf,
    OrNone,
    flag,
    real,
    refusal,
    sequence,
    text,
)

Choice = Literal["exponential", "permute-and-flip"]
Mechanism = Literal["gaussian", "laplace", "exponential", "permute-and-flip", "cited"]
CHOICES: tuple[Choice, ...] = ("exponential", "permute-and-flip")
"""Mechanisms that choose a candidate by its utility."""


def _budget(name: str, given: Any) -> PrivacyBudget:
    pair = sequence(name, given, real, "a pair of numbers, (epsilon, delta)")
    if len(pair) != 2:
        raise refusal(name, "a pair of numbers, (epsilon, delta)", given)
    return PrivacyBudget(*pair).plain(f" of {name}")


_SIZE = Number(0, math.inf, "[]")


@dataclass(frozen=True)
class LedgerEntry:
    """One kind of answer.

    Attributes
    ----------
    mechanism
        "gaussian" or "laplace" noise or an "exponential" or "permute-and-flip" choice drawn here,
        or "cited": a library's own mechanism, taken at its word to be `budget`-DP.
    releases
        What was released, in words.
    sensitivity, norm
        How far one answer can move between neighbours, and in which norm. For a choice: how far
        the utility of any one candidate can move, or half the largest difference between the moves
        of two (a constant added to all utilities changes no choice).
    scale
        In the sensitivity's unit: standard deviation (gaussian), scale b (laplace), the s of
        P(candidate) ~ exp(utility / s) (exponential), or the s of exp(-d / s), with which a
        candidate passes whose utility is d below the largest (permute-and-flip); for "cited" as far
        as known, else 0.
    uses
        How many such answers one row can take part in, adaptively. Answers about disjoint sets
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

    Raises
    ------
    ValueError
        On a field that is not of its type, or out of range.
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
        object.__setattr__(
            self, "mechanism", OneOf(get_args(Mechanism))("mechanism", self.mechanism)
        )
        object.__setattr__(self, "releases", text("releases", self.releases))
        object.__setattr__(self, "sensitivity", _SIZE("sensitivity", self.sensitivity))
        object.__setattr__(self, "norm", text("norm", self.norm))
        object.__setattr__(self, "scale", _SIZE("scale", self.scale))
        object.__setattr__(self, "uses", Integer(1)("uses", self.uses))
        object.__setattr__(self, "budget", _budget("budget", self.budget))
        object.__setattr__(self, "replace_one", OrNone(_SIZE)("replace_one", self.replace_one))
        object.__setattr__(self, "sampling", SHARE("sampling", self.sampling))
        object.__setattr__(self, "exchanged", flag("exchanged", self.exchanged))

    @property
    def noise_multiplier(self) -> float:
        """Scale over sensitivity."""
        return self.scale / self.sensitivity

    @property
    def pure_epsilon(self) -> float:
        """The pure epsilon of one use; infinite where only an approximate guarantee is known."""
        if self.mechanism == "gaussian" or (self.mechanism == "cited" and self.budget.delta > 0):
            return math.inf
        if self.mechanism == "cited":
            return self.budget.epsilon
        # One utility up and another down: a choice pays twice.
        moves = 2 if self.mechanism in CHOICES else 1
        return moves / self.noise_multiplier

    @property
    def rho(self) -> float:
        """The rho of one use under zCDP; infinite where none is known.

        The loss of an exponential choice lies in an interval of width epsilon (Cesar, Rogers 2021);
        other pure guarantees and Gaussian noise are in Bun, Steinke 2016.
        """
        if self.mechanism == "gaussian":
            return 0.5 / self.noise_multiplier**2 if self.sampling >= 1 else math.inf
        return self.pure_epsilon**2 / (8 if self.mechanism == "exponential" else 2)

    def under_replace_one(self) -> LedgerEntry:
        """Return the entry with its sensitivity (and the budget, if cited) under replace-one."""
        if self.sampling < 1:
            # Twice the sensitivity would be far too much: the two rows are seldom sampled.
            return replace(self, exchanged=True)
        sensitivity = 2 * self.sensitivity if self.replace_one is None else self.replace_one
        if self.mechanism != "cited":
            return replace(self, sensitivity=sensitivity)
        return replace(self, budget=group_budget(self.budget, 2))

    def coming_or_exchanged(self) -> LedgerEntry:
        """Return the entry for a row that comes, goes or is exchanged: whichever moves more."""
        exchanged = self.under_replace_one()
        return replace(exchanged, sensitivity=max(self.sensitivity, exchanged.sensitivity))

    def for_group(self, rows: int) -> LedgerEntry:
        """Return the entry for neighbours that differ in up to so many rows of one owner.

        They are `rows` changes of one row apart. By the triangle inequality an answer moves by at
        most the sum of its moves: the sensitivity is multiplied by `rows`. Of a cited mechanism
        only the budget is known: it is that of group privacy. An owner is exchanged for another by
        `rows` changes, each of them an exchange, a coming or a going of one row.

        Raises
        ------
        ValueError
            If several rows are sampled independently of each other: how seldom one of them is
            sampled says nothing of all of them.
        """
        if rows == 1:
            return self
        if self.sampling < 1:
            raise ValueError(
                f"{self.releases}: each row is sampled by itself, with probability "
                f"{self.sampling:g}, and no bound is known here for {rows} rows of one owner; "
                "allow one row for each unit, or choose a method without sampling"
            )
        exchange = None if self.replace_one is None else max(self.replace_one, self.sensitivity)
        if self.mechanism == "cited":
            return replace(self, budget=group_budget(self.budget, rows))
        return replace(
            self,
            sensitivity=rows * self.sensitivity,
            replace_one=None if exchange is None else rows * exchange,
        )
