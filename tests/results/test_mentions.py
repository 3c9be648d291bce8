import math

import pytest

from dprepro.results.folder import holding_both, tasks_held
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, write


def test_journals_with_both_are_found_by_label_or_method(tmp_path):
    write(tmp_path, "both", [*records([0.9], "mine", 1.0), *records([0.9], "ebm", math.inf)])
    write(tmp_path, "method", [*records([0.9], "x", method="mine"), *records([0.9], "ebm")])
    write(tmp_path, "one", records([0.9], "mine"))
    write(tmp_path, "other", records([0.9], "mine too", params={"of": "ebm"}))
    assert holding_both(tasks_held(tmp_path), "mine", "ebm") == ["both", "method"]
    assert holding_both(tasks_held(tmp_path), "mine", "mine too") == [
        "both",
        "method",
        "one",
        "other",
    ]
    assert holding_both(tasks_held(tmp_path), "mine too", "nothing") == ["other"]


def test_all_are_named_where_none_holds_either(tmp_path):
    write(tmp_path, "a", records([0.9], "mine"))
    assert holding_both(tasks_held(tmp_path), "x", "y") == ["a"]
    nowhere, empty = tmp_path / "nowhere", tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DpreproError, match=f"no journals .* in {nowhere}, which is not a folder: "):
        holding_both(tasks_held(nowhere), "x", "y")
    with pytest.raises(DpreproError, match=f"in {empty}: .* --results DIR names another folder$"):
        holding_both(tasks_held(empty), "x", "y")


def test_names_with_quotes_and_umlauts_are_found(tmp_path):
    write(tmp_path, "a", [*records([0.9], 'a "b"'), *records([0.9], "größer")])
    write(tmp_path, "b", records([0.9], "a"))
    assert holding_both(tasks_held(tmp_path), 'a "b"', "größer") == ["a"]


def test_hypotheses_are_read_only_if_there_is_nothing_else(tmp_path):
    write(tmp_path, "forensics-ebm-adult", [*records([0.9], "mine"), *records([0.9], "ebm")])
    assert holding_both(tasks_held(tmp_path), "mine", "ebm") == ["forensics-ebm-adult"]
    write(tmp_path, "adult", records([0.9], "mine"))
    assert list(tasks_held(tmp_path)) == ["adult"]
    assert holding_both(tasks_held(tmp_path), "mine", "ebm") == ["adult"]


def test_journals_are_chosen_dataset_by_dataset(tmp_path):
    write(tmp_path, "both", [*records([0.9], "mine"), *records([0.9], "ebm")])
    write(tmp_path, "mine", records([0.9], "mine", dataset="shop"))
    write(tmp_path, "ebm", records([0.9], "ebm", dataset="shop"))
    write(tmp_path, "alone", records([0.9], "ebm", dataset="bank"))
    assert holding_both(tasks_held(tmp_path), "mine", "ebm") == ["both", "ebm", "mine"]
    assert holding_both(tasks_held(tmp_path), "mine", "ebm", ["shop"]) == ["ebm", "mine"]
    assert holding_both(tasks_held(tmp_path), "mine", "ebm", ["adult"]) == ["both"]
    assert holding_both(tasks_held(tmp_path), "mine", "ebm", ["nothing"]) == ["both", "ebm", "mine"]
