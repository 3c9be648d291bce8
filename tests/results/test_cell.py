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


def test_a_failed_or_skipped_split_is_a_record():
    none = replace(cell([]), values={})
    assert not none.has_records
    assert replace(none, failed=1).has_records
    assert replace(none, skipped=1).has_records
    assert cell([0.8]).has_records


def test_a_cell_of_several_journals_has_a_part_of_each():
    part = cell([0.8])
    found = replace(cell([0.8, 0.9]), parts={"a": part})
    assert found.part("a") is part
    assert found.part("b") is found


def test_a_cell_knows_the_name_of_its_data_and_that_it_was_tuned():
    found = cell([0.8])
    assert (found.dataset, found.is_tuned) == ("adult", False)
    assert replace(found, data="adult (as in mine)").dataset == "adult (as in mine)"
    assert cell([0.8], tuned=True).is_tuned
