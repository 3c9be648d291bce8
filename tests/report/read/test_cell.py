from dataclasses import replace

import pytest

from tests.report.journals import cell


def test_mean_and_standard_deviation_are_those_of_the_finished_splits():
    found = cell([0.8, 0.9])
    assert (found.splits("auc"), found.splits("rmse")) == (2, 0)
    assert found.mean("auc") == pytest.approx(0.85)
    assert found.sd("auc") == pytest.approx(0.0707107)
    assert cell([0.8]).sd("auc") is None


def test_a_cell_is_complete_when_all_planned_splits_finished():
    found = replace(cell([0.8, 0.9]), planned=3)
    assert not found.is_complete("auc")
    assert found.is_complete("auc", planned=2)


def test_only_a_private_cell_without_a_ledger_is_unverified():
    private = replace(cell([0.8], epsilon=1.0), keeps_ledger=False)
    assert private.is_unverified
    assert not replace(private, keeps_ledger=True).is_unverified
    assert not replace(cell([0.8], epsilon=float("inf")), keeps_ledger=False).is_unverified
