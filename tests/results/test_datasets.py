import pytest

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.data.card import load_card
from dprepro.results.cell import dataset_of
from tests.report.journals import task


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
    from dprepro.results import cell

    of_wine = task(dataset="wine-white", data_fingerprint=load_card("wine-white").fingerprint())
    (tmp_path / "wine-white").write_text("name: other")
    monkeypatch.chdir(tmp_path)
    cell._fingerprints.cache_clear()
    builtin_card.cache_clear()
    assert dataset_of(of_wine) == "wine-white"
