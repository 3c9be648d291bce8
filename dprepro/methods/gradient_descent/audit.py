"""Noisy gradient descent: all that is released, weighed by what it would be without noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table
from dprepro.audit.pairs import contradicted
from dprepro.audit.transcript import Knows
from dprepro.methods.bounded_norm_encoding import UnitRows
from dprepro.methods.gradient_descent.curator import ExactGradients, GradientSum, RowCount, Weights
from dprepro.privacy.query import Instruction, Query, ScaledInteger

_KNOTS = 2


def all_releases(setting: AuditSetting) -> Case:
    """Return rows with one label, and a canary of the longest row with the other."""
    return contradicted(setting, {"knots": _KNOTS, "steps": 10}, _knows, _entry_of)


def _knows(pair: MethodPair, rows: Table) -> Callable[[], Knows]:
    encoded = UnitRows(pair.domain, _KNOTS).encode(rows[0])
    return lambda: _Knows(ExactGradients(encoded, rows[1]))


def _entry_of(query: Query) -> int:
    return int(isinstance(query, GradientSum))


@dataclass(frozen=True)
class _Knows:
    exact: ExactGradients

    def answer(self, query: Query) -> ScaledInteger:
        """Return the number of rows, or the sum of gradients."""
        return self.exact.count() if isinstance(query, RowCount) else self.exact.gradient()

    def follow(self, instruction: Instruction) -> None:
        """Take weights."""
        assert isinstance(instruction, Weights)
        self.exact.tell(instruction.whole)


CASES = {"dp-gd-logistic": all_releases}
