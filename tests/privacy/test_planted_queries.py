"""Queries of methods that would be answered almost exactly, had they been built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dprepro.methods.dp_ebm.losses import LogisticLoss
from dprepro.methods.dp_ebm.queries import LeafSums
from dprepro.methods.dp_ebm_plus.queries import CodedResiduals, Residuals, Totals
from dprepro.methods.dpboost.curator import LeafQuery
from dprepro.privacy.query import SensitivityError
from dprepro.privacy.sensitivity import ZERO_OUT


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: CodedResiduals(1e-9, 1.0, (), -0.5), id="bound below 0"),
        pytest.param(lambda: Residuals(1e-9, 1.0, 0, -0.5), id="the same, regression"),
        pytest.param(lambda: LeafSums(1e-9, 1.0, ZERO_OUT, -0.01, 1.0, 20), id="negative rate"),
        pytest.param(
            lambda: LeafQuery(1e-9, 1.0, bound=1.0, ridge=-5.0, clip=1.0, independent=True),
            id="negative ridge",
        ),
        pytest.param(lambda: Totals(1e-9, 1.0, -1), id="fewer than no powers"),
    ],
)
def test_none_of_them_can_be_built(build: Callable[[], object]) -> None:
    with pytest.raises(SensitivityError, match="above 0"):
        build()


def test_the_same_queries_can_be_built_with_what_they_bound() -> None:
    built = [
        Residuals(1.0, 1.0, 0, 0.5),
        CodedResiduals(0.5, 1.0, (), 0.5),
        LeafSums.of(LogisticLoss(), ZERO_OUT, 0.01),
        LeafQuery(0.5 + 2**-24, 1.0, bound=1.0, ridge=1.0, clip=1.0, independent=True),
        Totals.up_to(1),
    ]
    assert all(query.enforced <= query.charged * (1 + 1e-12) for query in built)
