""""""

import random
import statistics
from dataclasses import replace

import pytest

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.data.card import load_card
from dprepro.results.result_cell import dataset_of
from tests.report.journals import cell, task


def test_mean_and_standard_deviation_are_those_of_the_finished_splits():
    found = cell([0.8, 0.9])
    assert (found.splits("auc"), found.splits("rmse")) == (2, 0)
    assert found.mean("auc") == pytest.approx(0.85)
    assert found.sd("auc") == pytest.approx(0.0707107)
    assert cell([0.8]).sd("auc") is None


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e300, 1e-300, 5e-324])
def test_the_standard_deviation_is_the_exact_one_to_the_last_bit(unit):
    draws = random.Random(0)
    for _ in range(20):
        values = [unit * draws.gauss(0.9, 0.01) for _ in range(draws.randint(2, 30))]
        assert cell(values).sd("auc") == statistics.stdev(values)
    assert cell([0.5, 5e-324]).sd("auc") == statistics.stdev([0.5, 5e-324])


def test_the_first_splits_are_those_of_the_first_numbers():
    numbers = {"auc": (0, 2, 3), "rmse": (3,)}
    found = replace(cell([0.8, 0.9, 0.7]), numbers=numbers)
    found = replace(found, values={**found.values, "rmse": (0.1,)})
    first = found.first(3)
    assert dict(first.values) == {"auc": (0.8, 0.9), "rmse": ()}
    assert dict(first.numbers) == {"auc": (0, 2), "rmse": ()}
    assert replace(found, numbers={}).first(3).values == found.values


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


@pytest.mark.parametrize("with_test", [False, True])
def test_data_of_the_built_in_card_have_its_name(with_test):
    fingerprint = load_card("adult").fingerprint(with_test=with_test)
    assert dataset_of(task(data_fingerprint=fingerprint)) == "adult"
    assert dataset_of(task(data_fingerprint=fingerprint), has_own_card=True) == "adult"


@pytest.mark.parametrize("fingerprint", ["abc", "private-abc", f"{SYNTHETIC_PREFIX}abc"])
def test_other_data_of_that_name_are_told_apart(fingerprint):
    found = dataset_of(task(data_fingerprint=fingerprint))
    assert found == "adult (your card, not the built-in one)"


def test_other_names_stay_whatever_the_data():
    assert dataset_of(task(dataset="shop"), has_own_card=True) == "shop"


def test_without_a_checksum_the_plan_tells_whose_the_card_is():
    private = task(dataset="healthcare", data_fingerprint="private-abc")
    assert dataset_of(private) == "healthcare"
    assert dataset_of(private, has_own_card=True).startswith("healthcare (your card")


def test_a_file_of_a_cards_name_in_the_working_directory_changes_nothing(tmp_path, monkeypatch):
    from dprepro.data.card import builtin_card
    from dprepro.results import result_cell

    of_wine = task(dataset="wine-white", data_fingerprint=load_card("wine-white").fingerprint())
    (tmp_path / "wine-white").write_text("name: other")
    monkeypatch.chdir(tmp_path)
    result_cell._fingerprints.cache_clear()
    builtin_card.cache_clear()
    assert dataset_of(of_wine) == "wine-white"
