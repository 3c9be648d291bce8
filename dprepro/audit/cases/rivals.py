"""AdaSSP and noisy gradient descent: all that is released, and how likely it is in either world.

The adversary knows all rows but the canary, and what the canary would add to each answer. Without
the canary the logarithm of the likelihood ratio is N(-m^2/2, m^2), with it N(m^2/2, m^2), where m
is the norm of the canary's parts in units of the noise: m-GDP, and no distinguisher does better.
"""

from __future__ import annotations

import math
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table
from dprepro.audit.cases.general import table
from dprepro.baselines.ada_ssp.curator import ExactMoments
from dprepro.baselines.gradient_descent.curator import ExactGradients, GradientSum, RowCount
from dprepro.baselines.unit_rows import UnitRows
from dprepro.data.domain import Domain, NumericFeature
from dprepro.privacy.query import Instruction, Query, Release, Whole
from dprepro.privacy.release import listening

_KNOTS = 2
_CROWD = 40
_TRIALS = 8000


class _Heard:
    """Keeps what a curator was asked and told, and what it released."""

    def __init__(self) -> None:
        self.events: list[tuple[Query, Release] | Instruction] = []

    def asked(self, query: Query, release: Release) -> None:
        """Keep a query and its answer."""
        self.events.append((query, release))

    def told(self, instruction: Instruction) -> None:
        """Keep an instruction."""
        self.events.append(instruction)


class _Overheard(MethodPair):
    """A pair whose outcome is what an adversary makes of all answers."""

    def fit(self, present: bool, seed: int | None) -> Any:
        """Return ``ledger_``, ``evidence``, the log likelihood ratio, and ``mu_squared``, m^2."""
        heard = _Heard()
        with listening(heard):
            model = super().fit(present, seed)
        others, canary = (self._knows(rows) for rows in self._rows)
        evidence = mu_squared = 0.0
        for event in heard.events:
            if isinstance(event, Instruction):
                others.follow(event)
                canary.follow(event)
                continue
            query, release = event
            part = canary.answer(query).value / self._deviation(query, model.ledger_)
            noisy = release.value - others.answer(query).value
            standard = noisy / self._deviation(query, model.ledger_)
            evidence += float(part @ standard - part @ part / 2)
            mu_squared += float(part @ part)
        return SimpleNamespace(ledger_=model.ledger_, evidence=evidence, mu_squared=mu_squared)

    @cached_property
    def _rows(self) -> tuple[Table, Table]:
        """All rows but the canary, and the canary alone."""
        frame, y = self.present
        return (frame.iloc[:-1], y[:-1]), (frame.iloc[-1:], y[-1:])

    def _knows(self, rows: Table) -> _Knows:
        encoder = UnitRows(self.domain, _KNOTS)
        encoded = encoder.encode(rows[0])
        if self.setting.task == "binary":
            return _Knows(gradients=ExactGradients(encoded, rows[1]))
        lower, upper = self.domain.target
        return _Knows(moments=ExactMoments(encoded, rows[1], (float(lower), float(upper))))

    def _deviation(self, query: Query, ledger: Any) -> float:
        """Return the standard deviation of the noise in an answer, by the ledger."""
        entry = ledger.entries[1 if isinstance(query, GradientSum) else 0]
        return query.charged * entry.noise_multiplier / math.sqrt(query.share)


class _Knows:
    """What somebody knows who has the rows."""

    def __init__(
        self, *, gradients: ExactGradients | None = None, moments: ExactMoments | None = None
    ) -> None:
        self._gradients, self._moments = gradients, moments

    def answer(self, query: Query) -> Whole:
        """Return the exact answer."""
        if self._moments is not None:
            return self._moments.moments()
        assert self._gradients is not None
        return (
            self._gradients.count() if isinstance(query, RowCount) else self._gradients.gradient()
        )

    def follow(self, instruction: Any) -> None:
        """Do what an instruction says."""
        if self._gradients is not None:
            self._gradients.tell(instruction.whole)


def all_releases(setting: AuditSetting) -> Case:
    """Return a crowd at one end of the only feature, and a canary that contradicts it there.

    The canary's row is as long as rows can be. Its label or target is opposite to the crowd's, so
    that its gradients are nearly as long as they can be, and its target is at a bound.
    """
    binary = setting.task == "binary"
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1") if binary else (0.0, 1.0))
    x, y = np.ones(_CROWD), np.zeros(_CROWD, int)
    x[0], y[0] = 0.0, 1  # a row with the other label is there in both worlds
    pair = _Overheard(
        setting, domain, table(x, y, (1.0, 1)), table(x, y, None),
        {"knots": _KNOTS, **({"steps": 10} if binary else {})},
    )  # fmt: skip
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=(
            f"{_CROWD} rows, and one more at their end with the opposite "
            f"{'label' if binary else 'target'} or none; all answers seen"
        ),
        fit=pair.fit,
        observe=_evidence,
        trials=_TRIALS,
    )


def _evidence(outcome: Any) -> np.ndarray:
    return np.array([outcome.evidence])


CASES = {"ada-ssp": all_releases, "dp-gd-logistic": all_releases}
