"""AdaSSP: all that is released, weighed by what it would be without noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table
from dprepro.audit.pairs import contradicted
from dprepro.audit.transcript import Knows
from dprepro.methods.ada_ssp.curator import ExactMoments
from dprepro.methods.bounded_norm_encoding import UnitRows
from dprepro.privacy.query import Instruction, Query, ScaledInteger

_KNOTS = 2


def all_releases(setting: AuditSetting) -> Case:
    """Return rows with the lowest target, and a canary of the longest row with the highest."""
    return contradicted(setting, {"knots": _KNOTS}, _knows, lambda query: 0)


def _knows(pair: MethodPair, rows: Table) -> Callable[[], Knows]:
    lower, upper = map(float, pair.domain.target)
    encoded = UnitRows(pair.domain, _KNOTS).encode(rows[0])
    return lambda: _Knows(ExactMoments(encoded, rows[1], (lower, upper)))


@dataclass(frozen=True)
class _Knows:
    exact: ExactMoments

    def answer(self, query: Query) -> ScaledInteger:
        """Return the only answer there is."""
        return self.exact.moments()

    def follow(self, instruction: Instruction) -> None:
        """Nothing is instructed."""


CASES = {"ada-ssp": all_releases}
