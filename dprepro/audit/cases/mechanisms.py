"""The mechanisms themselves: one release each, drawn by the code that all methods draw with."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from dprepro.audit.case import Case, OneRunCase
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import ZERO_OUT, Sensitivity

# Other than 1, so that a sensitivity left out shows.
_SENSITIVITY = 3.0
_CANDIDATES = 10
_CANARIES = 10_000
_TRIALS = 100_000


def gaussian(epsilon: float, delta: float) -> Case:
    """Return a sum that the canary moves by the sensitivity, with Gaussian noise."""

    def fit(present: bool, seed: int | None) -> Any:
        ledger = Ledger(epsilon, delta, ZERO_OUT)
        noise = _gaussian_noise(1, ledger, seed)
        return SimpleNamespace(ledger_=ledger, released=_SENSITIVITY * present + noise)

    return _case("gaussian", "a sum, and one more by its sensitivity", fit)


def laplace(epsilon: float, delta: float) -> Case:
    """Return a sum that the canary moves by the sensitivity, with Laplace noise."""

    def fit(present: bool, seed: int | None) -> Any:
        ledger = Ledger(epsilon, 0.0, ZERO_OUT)
        noise = NoiseSource(ledger, seed).laplace(
            (1,), releases="a sum", epsilon=epsilon, sensitivity=_SENSITIVITY
        )
        return SimpleNamespace(ledger_=ledger, released=_SENSITIVITY * present + noise)

    return _case("laplace", "a sum, and one more by its sensitivity", fit)


def exponential(epsilon: float, delta: float) -> Case:
    """Return a choice whose first candidate gains what the canary takes from all the others."""

    def fit(present: bool, seed: int | None) -> Any:
        ledger = Ledger(epsilon, 0.0, ZERO_OUT)
        scale, noise = NoiseSource(ledger, seed).exponential(
            (_CANDIDATES,), releases="a choice", epsilon=epsilon, sensitivity=_SENSITIVITY
        )
        first = np.arange(_CANDIDATES) == 0
        utility = _SENSITIVITY * (first if present else ~first)
        chosen = np.argmax(utility / scale + noise)
        return SimpleNamespace(ledger_=ledger, released=np.array([float(chosen == 0)]))

    words = f"{_CANDIDATES} candidates: the first is better than the others, or worse"
    return _case("exponential", words, fit)


def gaussian_in_one_run(epsilon: float, delta: float) -> OneRunCase:
    """Return a vector of sums with a canary for each, all released at once."""

    def run(coins: np.ndarray, seed: int | None) -> tuple[np.ndarray, Ledger]:
        ledger = Ledger(epsilon, delta, ZERO_OUT)
        noise = _gaussian_noise(coins.size, ledger, seed)
        return _SENSITIVITY * (coins - 0.5) + noise, ledger

    return OneRunCase(
        "gaussian", None, f"{_CANARIES} sums, each moved by a canary or not", _CANARIES, run
    )


def _gaussian_noise(size: int, ledger: Ledger, seed: int | None) -> np.ndarray:
    """Draw the noise of disjoint sums, which one canary can move by the sensitivity in all."""
    return NoiseSource(ledger, seed).gaussian(
        (size,),
        releases="a sum",
        noise_multiplier=1 / mu_of(ledger.epsilon, ledger.delta),
        sensitivity=Sensitivity(_SENSITIVITY, math.sqrt(2) * _SENSITIVITY),
        uses=1,
        budget=ledger.budget,
    )


def _case(name: str, neighbours: str, fit: Callable[[bool, int | None], Any]) -> Case:
    return Case(name, None, neighbours, fit, lambda outcome: outcome.released, _TRIALS)


MECHANISMS = MappingProxyType(
    {"gaussian": gaussian, "laplace": laplace, "exponential": exponential}
)
ONE_RUN_MECHANISMS = MappingProxyType({"gaussian": gaussian_in_one_run})
