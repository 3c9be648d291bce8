"""Boosted 1-Rules by Asadi et al. 2022: how likely each choice is with either canary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.audit.adversary.evidence import Choice, log_chances
from dprepro.audit.adversary.transcript import Event

RULES = "rules"


@dataclass(frozen=True)
class Table:
    """Boolean rows and labels -1 and 1.

    Attributes
    ----------
    columns : bool (n, d)
    signs : int64 (n,)
    """

    columns: np.ndarray
    signs: np.ndarray

    def rules(self) -> np.ndarray:
        """Return what every 1-Rule says of each row, (2 d + 2, n): columns, negations, 1 and -1."""
        says = np.where(self.columns.T, 1, -1)
        always = np.ones((1, len(self.signs)), np.int64)
        return np.concatenate([says, -says, always, -always])


def choices(
    events: Sequence[Event], worlds: tuple[Table, Table], rate: float, density: float, scale: float
) -> list[Choice]:
    """Return the evidence of every round's choice.

    Parameters
    ----------
    worlds
        The table with the canary, and the other one.
    rate, density
        lambda and kappa.
    scale
        s of P ~ exp(-error / s), by the ledger.
    """
    margins = [np.zeros(len(world.signs)) for world in worlds]
    found = []
    for event in events:
        if event.kind != "RuleQuery" or event.value is None:
            continue
        chosen, ratio = int(event.value), []
        for world, margin in zip(worlds, margins, strict=True):
            rules = world.rules()
            weights = projected(np.minimum(1.0, density * np.exp(-rate * margin)), density)
            errors = (rules != world.signs) @ weights
            ratio.append(float(log_chances(-errors, scale)[chosen]))
            margin += rules[chosen] * world.signs
        found.append(Choice(RULES, ratio[0] - ratio[1]))
    return found


def projected(measure: np.ndarray, density: float) -> np.ndarray:
    """Return the smooth weights: min(cap, a m), sum 1, cap = 1 / (kappa n) (section 2.1)."""
    cap = 1 / (density * len(measure))
    if measure.sum() >= density * len(measure):
        return measure / measure.sum()
    low, high = 1.0, 1 / measure.min()
    for _ in range(100):  # the sum of min(1, c m) rises with c: halve where it is kappa n
        middle = (low + high) / 2
        small = np.minimum(1.0, middle * measure).sum() < density * len(measure)
        low, high = (middle, high) if small else (low, middle)
    return np.minimum(1.0, high * measure) * cap
