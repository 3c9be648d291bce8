"""DP-Bag: a single label, on which all teachers but one agree, or all but two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, Ceiling, MethodPair
from dprepro.audit.cases.general import Scores, table
from dprepro.audit.ceilings import laplace_lead, two_outcomes
from dprepro.data.domain import Domain, NumericFeature

_TRIALS = 20_000


def one_label(setting: AuditSetting) -> Case:
    """Return rows that teach a teacher each; the canary turns one of the votes.

    Noise on both counts pays for a margin that moves by 2. That the rarer label wins becomes less
    likely by a factor that nears e^epsilon as the margin grows, and the event rare.
    """
    teachers = 4 + round(4 / setting.epsilon)
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1"))
    x, y = np.zeros(teachers - 1), np.append(np.ones(teachers - 2, dtype=int), 0)
    pair = MethodPair(
        setting,
        domain,
        present=table(x, y, (0.0, 1)),
        absent=table(x, y, (0.0, 0)),
        params={
            "teachers": teachers,
            "partitions": 1,
            "rate": setting.epsilon / 2,
            "limit": 1,
        },
    )
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{teachers} rows, one or two of them with the rarer label",
        fit=pair.fit,
        observe=Scores(setting.method, domain, (0.0,)),
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


CASES = {"dp-bag-sound": one_label}
