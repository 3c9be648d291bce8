"""Noisy counts of votes (DP-Bag): of teachers that have one row each, and vote for its label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dprepro.audit.adversary.evidence import Answer
from dprepro.audit.adversary.transcript import Event

VOTES = "votes"


def answers(
    events: Sequence[Event], others: np.ndarray, labels: tuple[int, int], scale: float
) -> list[Answer]:
    """Return the answer about every row that was asked.

    Parameters
    ----------
    others
        Labels of all rows but the canary, 0 or 1.
    labels
        Of the canary, and of the row that is there instead of it.
    scale
        Of the Laplace noise in each count, by the ledger.
    """
    known = np.bincount(others, minlength=2)
    present, absent = (known + (np.arange(2) == label) for label in labels)
    return [
        Answer(VOTES, (counts - absent) / scale, (present - absent) / scale, "laplace")
        for event in events
        if event.kind == "Votes" and event.value is not None
        for counts in event.value
    ]
