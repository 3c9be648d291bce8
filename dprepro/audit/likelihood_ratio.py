"""What a transcript says of one row: by how much it is likelier with the row than without it.

An answer is an exact value plus noise. Without the row the noise would be `noise`, with it
`noise - part`, both in units of the standard deviation (or Laplace scale) that the ledger states.

An adversary knows all rows but one, and works out each answer by the papers' formulas. It shares no
code with what it audits: of a method it knows what can be asked and told, this module, and NumPy. A
fault in a kernel, a loss or a curator is not repeated there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_FAULTY = 1e-2
"""How likely the adversary holds it that a number has no noise, or that of another number."""

_NOTHING = 1e-5
"""The deviation, in units of what is stated, of noise that is missing, and of the difference of two
noises that are the same: what rounding to units leaves."""


@dataclass(frozen=True)
class Answer:
    """One noisy answer, and what the adversary makes of it.

    Attributes
    ----------
    name
        Which answer of the ledger it belongs to.
    noise : float64 (m,)
        What its noise would be without the row.
    part : float64 (m,)
        What the row adds.
    kind
        "gaussian" or "laplace".
    """

    name: str
    noise: np.ndarray
    part: np.ndarray
    kind: str = "gaussian"

    @property
    def log_ratio(self) -> float:
        """The log likelihood ratio of the answer, with the row to without it."""
        with_row = self.noise - self.part
        touched = self.part != 0
        ratio = _log_density(with_row, self.kind) - _log_density(self.noise, self.kind)
        return float(np.sum(ratio[touched]))

    @property
    def matched(self) -> float:
        """The noise along the row's part, in deviations: N(0, 1) without the row."""
        size = np.linalg.norm(self.part)
        return float(self.noise @ self.part / size) if size > 0 else 0.0


@dataclass(frozen=True)
class Unexplained:
    """A number of the model that should follow from the answers, less what the other rows give.

    If it follows, it says no more than they do. If it is made of the rows, it tells the row.

    Attributes
    ----------
    matched
        The number.
    name
        No entry of the ledger.
    """

    matched: float
    name: str = "model"

    log_ratio = 0.0

    @property
    def noise(self) -> np.ndarray:
        """None: float64 (0,)."""
        return np.zeros(0)

    part = noise


@dataclass(frozen=True)
class Choice:
    """What was chosen: no number has noise, and the ratio of its probabilities says all.

    Attributes
    ----------
    name
        See `Answer`.
    log_ratio
        Of the probabilities of what was chosen, with the row to without it.
    """

    name: str
    log_ratio: float

    @property
    def matched(self) -> float:
        """The evidence itself."""
        return self.log_ratio

    @property
    def noise(self) -> np.ndarray:
        """None: float64 (0,)."""
        return np.zeros(0)

    part = noise


Evidence = Answer | Choice | Unexplained


@dataclass(frozen=True)
class Known:
    """Rows in public cells, with the canary apart from all others.

    Attributes
    ----------
    cells : int64 (groups, features)
        The cell of each feature that the rows of a group lie in.
    targets : float64 (groups,)
        Labels 0 and 1, or targets from -1/2 to 1/2 in units of their public range.
    counts : int64 (groups,)
        How many rows are in each group.
    canary : int64 (features,)
        The canary's cells.
    target
        The canary's.
    """

    cells: np.ndarray
    targets: np.ndarray
    counts: np.ndarray
    canary: np.ndarray
    target: float

    @property
    def alone(self) -> tuple[int, float]:
        """The canary's cell of the first feature, and how many other rows are in it."""
        cell = int(self.canary[0])
        return cell, float(self.counts[self.cells[:, 0] == cell].sum())


def sigmoid(scores: np.ndarray | float) -> np.ndarray:
    """Return 1 / (1 + e^-F)."""
    return np.asarray(1 / (1 + np.exp(-np.asarray(scores, dtype=np.float64))))


def log_chances(utilities: np.ndarray, scale: float) -> np.ndarray:
    """Return the log probabilities of an exponential choice, P ~ exp(utility / scale)."""
    scores = utilities / scale
    largest = scores.max()
    return np.asarray(scores - largest - np.log(np.exp(scores - largest).sum()))


def mu_squared(answers: Sequence[Evidence]) -> float:
    """Return the squared norm of the row's parts: with the stated noise all is sqrt of it-GDP."""
    return float(sum(np.sum(answer.part**2) for answer in answers))


def log_ratio(answers: Sequence[Evidence]) -> float:
    """Return the log likelihood ratio of all answers, whose noises are taken as independent.

    With parts of norm m it is N(-m^2/2, m^2) without the row and N(m^2/2, m^2) with it: m-GDP.
    """
    return float(sum(answer.log_ratio for answer in answers))


def bare(evidence: Sequence[Evidence]) -> float:
    """Return the log likelihood ratio of "a number that the row moved has no noise"."""
    total = 0.0
    for each in evidence:
        touched = each.part != 0
        noise, part = each.noise[touched], each.part[touched]
        total += float(np.sum(_log_faulty(noise - part) - _log_faulty(noise)))
    return total


def repeated(evidence: Sequence[Evidence]) -> float:
    """Return the log likelihood ratio of "a number that the row moved repeats another's noise".

    Numbers are compared with all others of the same answer, and with those of the same place in
    other answers of that shape, of either sign: a difference without noise shows by how much the
    row moved the one more than the other.
    """
    total = 0.0
    for size in {each.noise.size for each in evidence} - {0}:
        alike = [each for each in evidence if each.noise.size == size]
        noise = np.array([each.noise for each in alike])
        part = np.array([each.part for each in alike])
        earlier, later = np.triu_indices(len(alike), 1)
        answer, place = np.nonzero(part)
        itself = np.arange(size) == place[:, None]
        for sign in (1.0, -1.0):
            total += _alike(
                noise[later] - sign * noise[earlier], part[later] - sign * part[earlier]
            )
            apart = noise[answer, place][:, None] - sign * noise[answer]
            moved = part[answer, place][:, None] - sign * part[answer]
            total += _alike(apart, np.where(itself, 0.0, moved))
    return total


def _alike(apart: np.ndarray, moved: np.ndarray) -> float:
    """Return the evidence of differences between noises, and by how much the row moved them."""
    touched = moved != 0
    apart, moved = apart[touched] / np.sqrt(2), moved[touched] / np.sqrt(2)
    return float(np.sum(_log_faulty(apart - moved) - _log_faulty(apart)))


JOINT_EVIDENCE = 3
"""How many numbers `observed` makes of all answers together."""


def observed(evidence: Sequence[Evidence], size: int) -> np.ndarray:
    """Return what a distinguisher is given, float64 (JOINT_EVIDENCE + size,).

    The joint evidence, that of missing and of repeated noise, and each of `size` answers by itself,
    0 for those that were not asked: correlations between answers, which none of the first three
    foresees, are learnt from these.
    """
    each = np.zeros(size)
    found = [one.matched for one in evidence[:size]]
    each[: len(found)] = found
    return np.array([log_ratio(evidence), bare(evidence), repeated(evidence), *each])


def _log_density(noise: np.ndarray, kind: str) -> np.ndarray:
    """Return the log density of noise of scale 1, up to a constant."""
    return -np.abs(noise) if kind == "laplace" else -(noise**2) / 2


def _log_faulty(noise: np.ndarray) -> np.ndarray:
    """Return the log density of standard normal noise that may be missing, up to a constant."""
    missing = np.log(_FAULTY / _NOTHING) - (noise / _NOTHING) ** 2 / 2
    return np.asarray(np.logaddexp(-(noise**2) / 2, missing))
