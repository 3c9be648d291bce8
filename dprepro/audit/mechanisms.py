"""The mechanisms themselves: one answer each, drawn by the code that all methods draw with."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from dprepro.audit.case import Case, OneRunCase
from dprepro.audit.distinguishers import (
    Ceiling,
    Threshold,
    exponential_choice,
    largest_epsilon,
    two_outcomes,
)
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import ZERO_OUT, Sensitivity

# Other than 1, so that a sensitivity left out shows.
_SENSITIVITY = 3.0
_UNIT = 2.0**-30
_WHOLE = int(_SENSITIVITY / _UNIT)
"""The sensitivity in units: answers are whole numbers of these."""
_CANDIDATES = 10
_CANARIES = 10_000
_TRIALS = 100_000


def gaussian(epsilon: float, delta: float) -> Case:
    """Return a sum that the canary moves by the sensitivity, with Gaussian noise."""

    def fit(present: bool, seed: int | None) -> Any:
        ledger = Ledger(epsilon, delta, ZERO_OUT)
        released = _with_gaussian_noise(np.array([_WHOLE * present]), ledger, seed)
        return SimpleNamespace(ledger_=ledger, released=released)

    return _case("gaussian", _SUM, fit, Threshold(_SENSITIVITY / 2), _all_of_it)


def laplace(epsilon: float, delta: float) -> Case:
    """Return a sum that the canary moves by the sensitivity, with Laplace noise."""

    def fit(present: bool, seed: int | None) -> Any:
        ledger = Ledger(epsilon, 0.0, ZERO_OUT)
        source = NoiseSource(ledger, seed)
        scale = source.enter_laplace(releases="a sum", epsilon=epsilon, sensitivity=_SENSITIVITY)
        released = source.add_laplace(np.array([_WHOLE * present]), scale, _UNIT)
        return SimpleNamespace(ledger_=ledger, released=released)

    # Beyond the sensitivity the likelihood ratio is e^epsilon throughout.
    return _case("laplace", _SUM, fit, Threshold(_SENSITIVITY, "present"), _all_of_it)


def exponential(epsilon: float, delta: float) -> Case:
    """Return a choice whose first candidate gains what the canary takes from all the others."""

    def fit(present: bool, seed: int | None) -> Any:
        ledger = Ledger(epsilon, 0.0, ZERO_OUT)
        source = NoiseSource(ledger, seed)
        scale = source.enter_exponential(
            releases="a choice", epsilon=epsilon, sensitivity=_SENSITIVITY
        )
        chosen = source.choose(_utilities(present), scale, _UNIT)
        return SimpleNamespace(ledger_=ledger, released=np.array([float(chosen == 0)]))

    return _case("exponential", _FIRST, fit, Threshold(0.5, "present"), _of_choices)


def permute_and_flip(epsilon: float, delta: float) -> Case:
    """Return a choice whose first candidate gains what the canary takes from all the others."""

    def fit(present: bool, seed: int | None) -> Any:
        ledger = Ledger(epsilon, 0.0, ZERO_OUT)
        source = NoiseSource(ledger, seed)
        scale = source.enter_permute_and_flip(
            releases="a choice", epsilon=epsilon, sensitivity=_SENSITIVITY
        )
        chosen = source.permute_and_flip(_utilities(present)[None], scale, _UNIT)
        return SimpleNamespace(ledger_=ledger, released=(chosen == 0).astype(np.float64))

    return _case("permute-and-flip", _FIRST, fit, Threshold(0.5, "present"), _of_flips)


_SUM = "a sum, and one more by its sensitivity"
_FIRST = f"{_CANDIDATES} candidates: the first is better than the others, or worse"


def _utilities(present: bool) -> np.ndarray:
    """Return the utilities of all candidates in units, int64: each moves by the sensitivity."""
    first = np.arange(_CANDIDATES) == 0
    return _WHOLE * (first if present else ~first)


def gaussian_in_one_run(epsilon: float, delta: float) -> OneRunCase:
    """Return a vector of sums with a canary for each, all released at once."""

    def run(coins: np.ndarray, seed: int | None) -> tuple[np.ndarray, Ledger]:
        ledger = Ledger(epsilon, delta, ZERO_OUT)
        halves = np.where(coins, _WHOLE // 2, -(_WHOLE // 2))  # so that 0 is the middle
        return _with_gaussian_noise(halves, ledger, seed), ledger

    return OneRunCase(
        "gaussian", None, f"{_CANARIES} sums, each moved by a canary or not", _CANARIES, run
    )


def _with_gaussian_noise(exact: np.ndarray, ledger: Ledger, seed: int | None) -> np.ndarray:
    """Answer disjoint sums, int64 in units; one canary can move the sensitivity in all."""
    source = NoiseSource(ledger, seed)
    scale = source.enter_gaussian(
        releases="a sum",
        noise_multiplier=1 / mu_of(ledger.epsilon, ledger.delta),
        sensitivity=Sensitivity(_SENSITIVITY, math.sqrt(2) * _SENSITIVITY),
        uses=1,
        budget=ledger.budget,
    )
    return source.add_gaussian(exact, scale, _UNIT)


def _case(
    name: str,
    neighbours: str,
    fit: Callable[[bool, int | None], Any],
    rule: Threshold,
    ceiling: Callable[[Any], Ceiling],
) -> Case:
    return Case(
        name, None, neighbours, fit, lambda outcome: outcome.released, _TRIALS,
        rule=rule, ceiling=ceiling,
    )  # fmt: skip


def _all_of_it(outcome: Any) -> Ceiling:
    return Ceiling(outcome.ledger_.spent_epsilon(), "all that is spent: the sum moves by all of it")


def _of_choices(outcome: Any) -> Ceiling:
    (entry,) = outcome.ledger_.entries
    present, absent = (
        exponential_choice(_utilities(world) * _UNIT, entry.scale) for world in (True, False)
    )
    return Ceiling(largest_epsilon(present, absent, 0.0), "by the probabilities of all candidates")


def _of_flips(outcome: Any) -> Ceiling:
    """By how often the first is chosen; the others are alike.

    In a random order the best are taken at once: with t = e^(-1 / scale), t in units of the
    sensitivity, a first that is best is taken unless one of the k before it is, (1 - t)^k; a first
    that is not must come first, and is then taken with t.
    """
    (entry,) = outcome.ledger_.entries
    flip = math.exp(-_SENSITIVITY / entry.scale)
    best = float(np.mean((1 - flip) ** np.arange(_CANDIDATES)))
    worst = flip / _CANDIDATES
    ceiling = two_outcomes(best, worst, 0.0)
    return Ceiling(ceiling, "by the probability of the first candidate")


MECHANISMS = MappingProxyType(
    {
        "gaussian": gaussian,
        "laplace": laplace,
        "exponential": exponential,
        "permute-and-flip": permute_and_flip,
    }
)
ONE_RUN_MECHANISMS = MappingProxyType({"gaussian": gaussian_in_one_run})
