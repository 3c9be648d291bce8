"""DP-EBM+ by its one-page description: what each answer is without the canary's part.

The sensitivities by which the stated noise is scaled are worked out here, not taken from a query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprepro.audit.adversary.evidence import Answer, Evidence, Unexplained
from dprepro.audit.adversary.known import Known, sigmoid
from dprepro.audit.adversary.transcript import Event

TOTALS, HISTOGRAMS, EPOCHS = "totals", "histograms", "epochs"

_ENTRIES = {"Totals": 0, "Histogram": 1, "CodedResiduals": 2, "Residuals": 2, "Magnitudes": 2}
_NAMES = (TOTALS, HISTOGRAMS, EPOCHS)
_GRID = 2.0**-24
"""What scores and their changes count in."""
_CENTRE = 2.0**-8
"""What the centres and mixes of codes count in."""
_GROUP = 16
"""Cells of a number that are also counted together."""


@dataclass
class Adversary:
    """Follows one fit from its first answer to its last.

    Attributes
    ----------
    known
        The rows. A number lies in cell 0 (lower bound), -2 (upper bound) or -1 (missing): the grid
        between is not needed.
    is_logistic
        For labels; else for targets.
    numbers
        The positions of numeric features.
    multipliers
        Noise over sensitivity of totals, histograms and epochs, by the ledger.
    """

    known: Known
    is_logistic: bool
    numbers: frozenset[int]
    multipliers: Sequence[float]
    _cells: dict[int, np.ndarray] = field(default_factory=dict)
    _bins: dict[int, np.ndarray] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    _scores: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def answers(self, events: Sequence[Event], bin_counts: Sequence[np.ndarray]) -> list[Evidence]:
        """Return all answers, in order, and what the model says beside them.

        `bin_counts` are the noisy rows per bin of each feature, as the model has them.
        """
        rows = len(self.known.counts) + 1
        self._bins, self._sizes = {-1: np.zeros(rows, np.int64)}, {-1: 1}
        self._scores = np.zeros(rows)
        found: list[Evidence] = []
        for event in events:
            if event.value is None:
                self._follow(event)
                continue
            # One column a group, the canary's last: each is what its rows add.
            parts, sensitivity = self._parts(event.kind, event.facts, event.value)
            entry = _ENTRIES[event.kind]
            share = event.facts["share"]
            deviation = self.multipliers[entry] * sensitivity / math.sqrt(share)
            exact = parts[:, :-1] @ self.known.counts
            found.append(
                Answer(
                    _NAMES[entry],
                    (event.value.ravel() - exact) / deviation,
                    parts[:, -1] / deviation,
                )
            )
        return found + [self._share(k, counts) for k, counts in enumerate(bin_counts)]

    def _share(self, k: int, counts: np.ndarray) -> Evidence:
        """Return the share of the canary's bin among all, less that among the known rows."""
        bins = self._bins[k]
        known = self.known.counts[bins[:-1] == bins[-1]].sum() / self.known.counts.sum()
        return Unexplained(float(counts[bins[-1]] / np.sum(counts) - known))

    def _follow(self, event: Event) -> None:
        facts = event.facts
        if event.kind == "Merge":
            k = facts["feature"]
            self._bins[k] = np.asarray(facts["bin_of_cell"])[self._cells[k]].astype(np.int64)
            self._sizes[k] = facts["n_bins"]
        elif event.kind == "Start":
            self._scores[:] = facts["score"] * _GRID
        elif event.kind == "Move":
            self._move(facts)
        elif event.kind == "Moves":
            for each in facts["moves"]:
                self._move(each)

    def _move(self, facts: Mapping[str, Any]) -> None:
        change = np.asarray(facts["change"], dtype=np.float64) * _GRID
        self._scores += change[self._bins[facts["feature"]]]

    def _parts(
        self, kind: str, facts: Mapping[str, Any], value: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return what a row of each group adds, (numbers, groups + 1), and the sensitivity."""
        targets = np.append(self.known.targets, self.known.target)
        if kind == "Totals":
            centred = targets - 0.5 if self.is_logistic else targets
            parts = np.array([np.ones(centred.size), centred, 4 * centred**2][: value.size])
            return parts, math.sqrt(sum([1, 1 / 4, 1][: value.size]))
        if kind == "Histogram":
            return self._histogram(facts["feature"], value.size), 1.0
        guesses = sigmoid(self._scores) if self.is_logistic else np.clip(self._scores, -0.5, 0.5)
        residuals = targets - guesses
        if kind == "Magnitudes":
            octaves = np.floor(-2 * np.log2(np.maximum(np.abs(residuals), 1e-300)))
            return _one_hot(np.clip(octaves, 0, value.size - 1).astype(int), value.size), 1.0
        bound = float(facts["bound"])
        if kind == "CodedResiduals":
            codes = np.concatenate([self._code(each) for each in facts["codes"]])
            with np.errstate(divide="ignore"):  # a row whose code is 0 adds 0
                limits = np.minimum(bound / np.linalg.norm(codes, axis=0), 1.0)
            return codes * np.clip(residuals, -limits, limits), bound
        k = facts["feature"]
        return _one_hot(self._bins[k], self._sizes[k]) * np.clip(residuals, -bound, bound), bound

    def _code(self, facts: Mapping[str, Any]) -> np.ndarray:
        """Return a feature's part of the rows' codes: w_c (M_cb - p_c) for a row in bin b.

        Without a mix M is 1 for b = c, and else 0.
        """
        k = facts["feature"]
        centre = np.asarray(facts["centre"], dtype=np.float64)[:, None] * _CENTRE
        weights = np.asarray(facts["weights"], dtype=np.float64)[:, None]
        numbers = _one_hot(self._bins[k], self._sizes[k])
        if facts["mix"] is not None:
            numbers = np.asarray(facts["mix"], dtype=np.float64) * _CENTRE @ numbers
        return np.asarray(weights * (numbers - centre))

    def _histogram(self, k: int, size: int) -> np.ndarray:
        cells = np.append(self.known.cells[:, k], self.known.canary[k])
        if k not in self.numbers:
            self._cells[k] = cells
            return _one_hot(cells, size)
        # n cells, one for missing values, ceil(n / 16) groups.
        n = (size - 1) * _GROUP // (_GROUP + 1)
        cells = np.where(cells < 0, n + 1 + cells, cells)
        self._cells[k] = cells
        in_cells = _one_hot(cells, n + 1)
        groups = _one_hot(np.where(cells < n, cells // _GROUP, size), size - n - 1)
        in_cells[:n] /= math.sqrt(2)
        return np.concatenate([in_cells, groups / math.sqrt(2)])


def _one_hot(places: np.ndarray, size: int) -> np.ndarray:
    return (np.arange(size)[:, None] == places).astype(np.float64)
