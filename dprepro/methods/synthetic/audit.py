"""Synthetic rows: all counts of columns and pairs, and all choices of pairs, are seen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case
from dprepro.audit.likelihood_ratio import Answer, Choice, Evidence, Known, log_chances
from dprepro.audit.transcript import WHOLE, WORDS, Event, Part, additive_pairs, transcript_case
from dprepro.methods.synthetic.curator import ColumnCounts, Expect, PairChoice, PairCounts

_BINS = 32
"""Of a number. A missing one has a bin of its own."""

PARTS = (Part("columns"), Part("choices"), Part("pairs"))


def transcript(setting: AuditSetting, entry: int | None = None) -> Case:
    """Return a case of all answers, or of those of one entry of the ledger."""
    numbers = setting.task == "regression"
    labels = {"binary": 2, "multiclass": 3}.get(setting.task, _BINS)
    weigh = partial(_weigh, sizes=(3, _BINS + 1, labels), numbers=numbers)
    pairs = additive_pairs(setting, {"n_bins": _BINS}, weigh, (_BINS - 1, _BINS))
    return transcript_case(setting, pairs, WORDS, parts=PARTS, entry=entry)


def _weigh(
    model: Any,
    events: list[Event],
    *,
    known: Known,
    is_logistic: bool,
    sizes: tuple[int, ...],
    numbers: bool,
) -> Sequence[Evidence]:
    scales = [entry.scale for entry in model.ledger_.entries]
    targets, target = known.targets, known.target
    if numbers:  # the first or the last bin of the range
        targets, target = (targets + 0.5) * (_BINS - 1), (target + 0.5) * (_BINS - 1)
    cells = np.column_stack([known.cells, targets]).astype(int)
    canary = np.append(known.canary, target).astype(int)
    return answers(events, np.vstack([cells, canary]), np.append(known.counts, 1), sizes, scales)


# --- adversary: knows all rows but the canary, the last of the cells ------------------------------


def answers(
    events: Sequence[Event],
    cells: np.ndarray,
    counts: np.ndarray,
    sizes: Sequence[int],
    scales: Sequence[float],
) -> list[Evidence]:
    """Return what the answers say of the canary.

    Parameters
    ----------
    cells : int64 (groups, columns)
        Of all groups of rows; the last group is the canary.
    counts : int64 (groups,)
        How many rows are in each.
    sizes
        How many cells each column has.
    scales
        Of the noise of counts of columns, of choices, and of counts of pairs, by the ledger.
    """
    found: list[Evidence] = []
    others = np.append(counts[:-1], 0)
    alone = np.append(np.zeros_like(counts[:-1]), 1)

    def tables(pairs: Sequence[tuple[int, int]], weights: np.ndarray) -> list[np.ndarray]:
        codes = [cells[:, a] * sizes[b] + cells[:, b] for a, b in pairs]
        most = [sizes[a] * sizes[b] for a, b in pairs]
        return [np.bincount(c, weights, m) for c, m in zip(codes, most, strict=True)]

    for event in events:
        if isinstance(event, Expect):
            cells = np.column_stack([
                place[own] for place, own in zip(event.places, cells.T, strict=True)
            ])  # fmt: skip
            sizes = [each.size for each in event.counts]
            pairs = list(combinations(range(len(sizes)), 2))
            likely = [
                np.outer(event.counts[a], event.counts[b]).ravel() / event.rows for a, b in pairs
            ]
        elif isinstance(event, tuple) and isinstance(event[0], ColumnCounts):
            without, part = (
                np.concatenate([
                    np.bincount(own, weights, size)
                    for own, size in zip(cells.T, sizes, strict=True)
                ])
                for weights in (others, alone)
            )  # fmt: skip
            noise = (event[1].value - without) / scales[0]
            found.append(Answer("columns", noise, part / scales[0]))
        elif isinstance(event, tuple) and isinstance(event[0], PairChoice):
            asked = list(event[0].candidates)
            chances = []
            for weights in (counts, others):
                apart = zip(tables(pairs, weights), likely, strict=True)
                scores = np.array([np.abs(table - each).sum() for table, each in apart])
                chances.append(log_chances(scores[asked], scales[1])[int(event[1].value)])
            found.append(Choice("choices", float(chances[0] - chances[1])))
        elif isinstance(event, tuple) and isinstance(event[0], PairCounts):
            without, part = (
                np.concatenate(tables(event[0].pairs, weights)) for weights in (others, alone)
            )
            noise = (event[1].value - without) / scales[2]
            found.append(Answer("pairs", noise, part / scales[2]))
    return found


CASES = {f"mst-lightgbm/{WHOLE}": transcript} | {
    f"mst-lightgbm/{part.name}": partial(transcript, entry=number)
    for number, part in enumerate(PARTS)
}
