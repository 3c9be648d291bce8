"""DP-EBM by Algorithm 2 of Nori et al. 2021: what each answer is without the canary's part.

Features have no more bins than a step may have leaves, so every gap is a cut and each bin a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.audit.adversary.evidence import Answer, Evidence, Unexplained
from dprepro.audit.adversary.known import Known, sigmoid
from dprepro.audit.adversary.transcript import Event

HISTOGRAMS, STEPS = "histograms", "steps"


@dataclass(frozen=True)
class Rules:
    """What is public of a fit.

    Attributes
    ----------
    is_logistic
        Residuals are y - sigmoid(F), else y - F.
    rate
        eta.
    bound
        To which y - F is clipped.
    adapts
        Whether the noise of a step follows the largest residual that the functions allow.
    count_noise, step_noise
        Standard deviations by the ledger: of a count, and of a leaf sum where residuals reach 1.
    """

    is_logistic: bool
    rate: float
    bound: float
    adapts: bool
    count_noise: float
    step_noise: float


def answers(
    events: Sequence[Event],
    bin_counts: Sequence[np.ndarray],
    known: Known,
    rules: Rules,
) -> list[Evidence]:
    """Return all answers of a fit, in order, and what the model says beside them.

    Parameters
    ----------
    bin_counts
        Noisy rows per bin of each feature, as the model has them.
    """
    found: list[Evidence] = []
    bins = known.cells.copy()
    own = known.canary.copy()
    parts: list[np.ndarray] = []
    shapes: Sequence[np.ndarray] = ()
    for event in events:
        if event.kind == "MergeCells":
            k, bin_of_cell = event.facts["feature"], np.asarray(event.facts["bin_of_cell"])
            bins[:, k], own[k] = bin_of_cell[known.cells[:, k]], bin_of_cell[known.canary[k]]
        elif event.kind == "CellCounts" and event.value is not None:
            k, size = event.facts["feature"], event.value.size
            exact = np.bincount(known.cells[:, k], known.counts, size)
            part = np.arange(size) == known.canary[k]
            noise = (event.value - exact) / rules.count_noise
            found.append(Answer(HISTOGRAMS, noise, part / rules.count_noise))
        elif event.kind == "LeafSums" and event.value is not None:
            parts.append(event.value)
            shapes = event.facts["shapes"]
    sums = np.concatenate(parts)  # steps are answered in parts, after all histograms
    found += _steps(sums, bin_counts, known, bins, own, rules)
    found += _implied_counts(sums, shapes, known, bins, own)
    return found


def _implied_counts(
    sums: np.ndarray,
    functions: Sequence[np.ndarray],
    known: Known,
    bins: np.ndarray,
    own: np.ndarray,
) -> list[Evidence]:
    """Return by how many rows the sums in the canary's bins were divided, less the known ones.

    Of exact counts the difference is 0 or 1. The functions are those of the last answers.
    """
    found: list[Evidence] = []
    for k, function in enumerate(functions):
        total = sums[k :: len(functions), own[k]].sum()
        value = function[own[k]]
        others = known.counts[bins[:, k] == own[k]].sum()
        found.append(Unexplained(float(total / value - others) if value else 0.0))
    return found


def _steps(
    sums: np.ndarray,
    bin_counts: Sequence[np.ndarray],
    known: Known,
    bins: np.ndarray,
    own: np.ndarray,
    rules: Rules,
) -> list[Answer]:
    """Return the answers of lines 11 to 28, with the functions that follow from them."""
    shapes = [np.zeros(len(counts)) for counts in bin_counts]
    found = []
    for step, released in enumerate(sums):
        k = step % len(shapes)
        size = shapes[k].size
        scores = sum(shape[bins[:, j]] for j, shape in enumerate(shapes))
        score = float(sum(shape[own[j]] for j, shape in enumerate(shapes)))
        residuals = known.counts * _residuals(known.targets, scores, rules)
        exact = rules.rate * np.bincount(bins[:, k], residuals, size)
        part = np.zeros(size)
        part[own[k]] = rules.rate * float(_residuals(np.array(known.target), score, rules))
        deviation = rules.step_noise * (_largest(shapes) if rules.adapts else 1.0)
        noise = (released[:size] - exact) / deviation
        found.append(Answer(STEPS, noise, part / deviation))
        counts = np.asarray(bin_counts[k])
        shapes[k] += np.divide(released[:size], counts, out=np.zeros(size), where=counts > 0)
    return found


def _residuals(targets: np.ndarray, scores: np.ndarray | float, rules: Rules) -> np.ndarray:
    if rules.is_logistic:
        return np.asarray(targets - sigmoid(scores))
    return np.clip(targets - scores, -rules.bound, rules.bound)


def _largest(shapes: Sequence[np.ndarray]) -> float:
    """Return the largest residual that any row of the domain can have with these functions."""
    top, bottom = (sum(pick(shape) for shape in shapes) for pick in (np.max, np.min))
    return float(sigmoid(max(top, -bottom)))
