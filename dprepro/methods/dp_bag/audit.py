"""DP-Bag: a student that sees rows, a label on which all teachers but few agree, and all votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, line, table
from dprepro.audit.distinguishers import Ceiling, laplace_lead, two_outcomes
from dprepro.audit.likelihood_ratio import Answer, Evidence
from dprepro.audit.pairs import Scores, another_x
from dprepro.audit.transcript import Event, transcript_case
from dprepro.methods.dp_bag.curator import Votes

VOTES = "votes"

_STUDENT_ROWS = 19
_TRIALS = 20_000


def another_x_for_a_student(setting: AuditSetting) -> Case:
    """Return another x for a student that sees half of the rows, labelled nearly at random."""
    return another_x(
        setting, {"teachers": 2, "partitions": 1, "rate": setting.epsilon / _STUDENT_ROWS}
    )


def one_label(setting: AuditSetting) -> Case:
    """Return rows that teach a teacher each; the canary turns one of the votes.

    Noise on both counts pays for a margin that moves by 2. That the rarer label wins becomes less
    likely by a factor that nears e^epsilon as the margin grows, and the event rare.
    """
    teachers = 4 + round(4 / setting.epsilon)
    domain = line(setting.task)
    x, y = np.zeros(teachers - 1), np.append(np.ones(teachers - 2, dtype=int), 0)
    pair = MethodPair(
        setting,
        domain,
        present=table(x, y, (0.0, 1)),
        absent=table(x, y, (0.0, 0)),
        params={"teachers": teachers, "partitions": 1, "rate": setting.epsilon / 2, "limit": 1},
    )
    return pair.case(
        f"{teachers} rows, one or two of them with the rarer label",
        Scores(setting.method, domain, (0.0,)),
        trials=_TRIALS,
        ceiling=_Votes(teachers),
    )


@dataclass(frozen=True)
class _Votes:
    """The ceiling, by the probability that the rarer label wins with one vote, or with two."""

    teachers: int

    def __call__(self, model: Any) -> Ceiling:
        (entry,) = model.ledger_.entries
        present, absent = (laplace_lead(self.teachers - 2 * rare, entry.scale) for rare in (1, 2))
        basis = "by the probability that the rarer label wins"
        return Ceiling(two_outcomes(present, absent, 0.0), basis)


# --- all votes ------------------------------------------------------------------------------------

_TEACHERS = 6


def votes_seen(setting: AuditSetting) -> Case:
    """Return teachers of one row each, whose counts of votes are seen; a row changes its label."""
    domain = line(setting.task)
    others = np.arange(_TEACHERS - 1) % 2
    frame = pd.DataFrame({"x": np.zeros(_TEACHERS)})
    present, absent = ((frame, np.append(others, label)) for label in (1, 0))
    params = {"teachers": _TEACHERS, "partitions": 1, "rate": setting.epsilon / 2, "limit": 1}
    pair = MethodPair(setting, domain, present, absent, params)
    words = f"{_TEACHERS} rows that teach a teacher each, one of one label or the other; votes seen"
    weigh = partial(_weigh, others=others)
    return transcript_case(setting, [(pair, weigh)], words, name=VOTES)


def _weigh(model: Any, events: list[Event], *, others: np.ndarray) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return answers(events, others, (1, 0), entry.scale)


# --- adversary: teachers that have one row each, and vote for its label ---------------------------


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
        if isinstance(event, tuple) and isinstance(event[0], Votes)
        for counts in event[1].value
    ]


CASES = {
    "dp-bag": another_x_for_a_student,
    f"dp-bag-sound/{VOTES}": votes_seen,
    "dp-bag-sound": one_label,
}
