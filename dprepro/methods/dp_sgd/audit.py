"""DP-SGD: all that is released, weighed by what it would be without noise; and other canaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprepro.audit.case import AuditSetting, Case, MethodPair, Table
from dprepro.audit.pairs import canary_cases, contradicted
from dprepro.audit.transcript import Knows
from dprepro.methods.dp_sgd.curator import ExactGradients, GradientSum
from dprepro.methods.dp_sgd.inputs import LongRows
from dprepro.methods.dp_sgd.network import GRADIENT_UNIT
from dprepro.privacy.query import Instruction, Query, ScaledInteger

_KNOTS = 2
_PARAMS = {
    "width": 2,
    "knots": _KNOTS,
    "steps": 10,
    "sampling": 1.0,
    # So short that the canary's gradient is clipped throughout, and moves every sum by all of it.
    "clip_norm": 0.1,
}


def all_releases(setting: AuditSetting) -> Case:
    """Return rows of one label or target, and a canary of another, in all samples."""
    return contradicted(setting, _PARAMS, _knows, lambda query: 0)


def _knows(pair: MethodPair, rows: Table) -> Callable[[], Knows]:
    inputs = LongRows(pair.domain, _KNOTS).encode(rows[0])
    target = None
    if pair.setting.task == "regression":
        lower, upper = map(float, pair.domain.target)
        target = lower, upper
    return lambda: _Knows(ExactGradients(inputs, rows[1], target))


@dataclass(frozen=True)
class _Knows:
    exact: ExactGradients

    def answer(self, query: Query) -> ScaledInteger:
        """Return the sum over all rows."""
        assert isinstance(query, GradientSum)
        everybody = np.ones(len(self.exact), dtype=bool)
        return ScaledInteger(self.exact.sum(query, everybody), GRADIENT_UNIT)

    def follow(self, instruction: Instruction) -> None:
        """Nothing is instructed."""


CASES = {**canary_cases("dp-sgd-mlp"), "dp-sgd-mlp": all_releases}
