""""""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprepro.data.card import load_card
from dprepro.experiment.record import Record
from dprepro.judge.check import check_documents
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import select_documents
from dprepro.report.layout import build_tables
from dprepro.results.aggregation import JournalPlan
from dprepro.results.folder import (
    beside,
    holding_both,
    in_both,
    journal_paths,
    read_journals,
    read_results,
    tasks_held,
)
from dprepro.results.margins import margins
from dprepro.runtime.append_only_file import JournalWarning
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, spread, task, write

VALUES = [0.87, 0.88, 0.9, 0.86]


def one(folder, **options):
    (found,) = read_results(folder, **options).cells
    return found


def test_mean_and_sd_are_numpys(tmp_path):
    write(tmp_path, "adult", records(VALUES))
    found = one(tmp_path)
    assert found.mean("auc") == pytest.approx(np.mean(VALUES))
    assert found.sd("auc") == pytest.approx(np.std(VALUES, ddof=1))
    assert found.splits("auc") == 4
    assert found.splits("rmse") == 0


def test_the_sd_of_many_splits_is_numpys_too(tmp_path):
    values = [0.5 + split % 7 / 100 for split in range(1200)]
    write(tmp_path, "adult", records(values))
    assert one(tmp_path).sd("auc") == pytest.approx(np.std(values, ddof=1), rel=1e-12)


def test_a_single_split_has_no_sd(tmp_path):
    write(tmp_path, "adult", records(VALUES[:1]))
    assert one(tmp_path).sd("auc") is None


def test_values_stand_in_the_order_of_the_splits(tmp_path):
    lines = records(VALUES)
    write(tmp_path, "adult", reversed(lines))
    assert one(tmp_path).values["auc"] == tuple(VALUES)


def test_each_dataset_label_and_epsilon_is_a_cell(tmp_path):
    lines = [
        *records(VALUES),
        *records(VALUES, epsilon=1.0),
        *records(VALUES, label="ebm", epsilon=math.inf),
        *records(VALUES, dataset="telco"),
    ]
    write(tmp_path, "all", lines)
    results = read_results(tmp_path)
    assert len(results.cells) == 4
    (found,) = results.all("adult", "ebm", math.inf)
    assert math.isinf(found.task.epsilon)
    assert results.all("adult", "ebm", 1.0) == []


def test_the_same_task_in_two_journals_counts_once(tmp_path):
    write(tmp_path, "adult", records(VALUES))
    write(tmp_path, "fast", records(VALUES[:2]))
    found = one(tmp_path)
    assert found.values["auc"] == tuple(VALUES)
    assert found.journals == ("adult", "fast")


def test_a_finished_record_wins_over_a_failed_one_elsewhere(tmp_path):
    done = records(VALUES[:1])
    failed = [Record(done[0].task, "failed", message="ValueError: no")]
    write(tmp_path, "a", failed)
    write(tmp_path, "b", done)
    found = one(tmp_path)
    assert (found.splits("auc"), found.failed, found.messages) == (1, 0, ())


def test_failures_and_skips_are_counted_with_their_reasons(tmp_path):
    lines = [
        *records(VALUES[:2]),
        Record(task(split=2), "failed", message="ValueError: no"),
        Record(task(split=3), "failed", message="ValueError: no"),
        Record(task(split=4), "skipped", message="not for regression"),
    ]
    write(tmp_path, "adult", lines)
    found = one(tmp_path)
    assert (found.failed, found.skipped, found.planned) == (2, 1, 5)
    assert found.messages == ("ValueError: no", "not for regression")
    assert not found.is_complete("auc")


def test_plans_say_how_many_splits_make_a_cell_complete(tmp_path):
    write(tmp_path, "adult", records(VALUES))
    assert one(tmp_path).is_complete("auc")
    plan = JournalPlan(25, "dp-ebm-2021")
    assert (read_results(tmp_path).plans, plan.has_own_card) == ({}, False)
    assert read_results(tmp_path, plan_of={"adult": plan}.get).plans == {"adult": plan}
    planned = one(tmp_path, plan_of={"adult": plan}.get)
    assert not planned.is_complete("auc")
    assert planned.is_complete("auc", planned=4)


def test_without_a_plan_the_fullest_cell_of_the_dataset_sets_the_number(tmp_path):
    write(tmp_path, "adult", [*records(VALUES), *records(VALUES[:1], epsilon=1.0)])
    cells = {c.task.epsilon: c for c in read_results(tmp_path).cells}
    assert cells[0.5].is_complete("auc")
    assert not cells[1.0].is_complete("auc")


def test_papers_are_those_of_the_configs_and_unknown_if_one_is_unknown(tmp_path):
    write(tmp_path, "a", records(VALUES))
    write(tmp_path, "b", records(VALUES))
    plans = {"a": JournalPlan(4, "dp-ebm-2021"), "b": JournalPlan(4, None)}
    assert one(tmp_path, plan_of=plans.get).papers == {"dp-ebm-2021"}
    assert one(tmp_path, plan_of={"a": plans["a"]}.get).papers is None
    assert one(tmp_path, configs=["b"], plan_of=plans.get).papers == frozenset()


def test_later_settings_under_one_label_replace_earlier_ones_of_a_journal(tmp_path):
    old, new = records(VALUES), records([0.5], method_version=2)
    write(tmp_path, "adult", [*old, *new])
    assert one(tmp_path).values["auc"] == (0.5,)


def test_different_settings_in_two_journals_are_never_mixed(tmp_path):
    write(tmp_path, "a", records(VALUES))
    write(tmp_path, "b", records(VALUES, domain="public", params={"max_bins": 8}))
    found = read_results(tmp_path).all("adult", "dp-ebm-gdp-2021", 0.5)
    assert len(found) == 2
    assert [cell.journals for cell in found] == [("a",), ("b",)]


def test_configs_choose_journals(tmp_path):
    write(tmp_path, "a", records(VALUES))
    write(tmp_path, "b", records(VALUES, epsilon=1.0))
    assert one(tmp_path, configs=["b", "b"]).task.epsilon == 1.0
    assert [p.stem for p in journal_paths(tmp_path)] == ["a", "b"]


def test_a_missing_journal_or_folder_says_what_to_do(tmp_path):
    with pytest.raises(DpreproError, match="dprepro run CONFIG"):
        read_results(tmp_path / "nowhere")
    write(tmp_path, "adult", records(VALUES))
    with pytest.raises(DpreproError, match="did you mean 'adult'"):
        read_results(tmp_path, configs=["adlut"])


@pytest.mark.parametrize(
    ("ledgers", "expected"),
    [
        ([{"true_epsilon": 0.4}, {"true_epsilon": 0.5}], 0.5),
        ([{"true_epsilon": 0.4}, {"true_epsilon": None}], None),
        ([{"true_epsilon": 0.4}, None], None),
        ([None, None], None),
    ],
)
def test_the_spent_epsilon_is_the_largest_if_all_records_state_it(tmp_path, ledgers, expected):
    lines = [
        replace(record, ledger=ledger)
        for record, ledger in zip(records(VALUES[:2]), ledgers, strict=True)
    ]
    write(tmp_path, "adult", lines)
    assert one(tmp_path).spent_epsilon == expected


grid = [
    record
    for epsilon in (0.5, 1.0)
    for label in ("dp-ebm-gdp-2021", "dp-ebm-classic-2021")
    for record in records([0.8 + epsilon / 100, 0.81, 0.82], label, epsilon)
]


@given(st.permutations(grid), st.integers(0, len(grid)))
def test_neither_order_nor_spread_over_journals_changes_a_cell(tmp_path_factory, order, cut):
    folder = tmp_path_factory.mktemp("results")
    write(folder, "a", order[:cut])
    write(folder, "b", order[cut:])
    found = {(c.task.label, c.task.epsilon): c.values for c in read_results(folder).cells}
    assert found == {
        (label, epsilon): {"auc": (0.8 + epsilon / 100, 0.81, 0.82)}
        for epsilon in (0.5, 1.0)
        for label in ("dp-ebm-gdp-2021", "dp-ebm-classic-2021")
    }


def test_a_torn_last_line_costs_that_line_only(tmp_path):
    path = write(tmp_path, "adult", records(VALUES))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(JournalWarning, match="torn"):
        found = one(tmp_path)
    assert found.values["auc"] == tuple(VALUES[:-1])


def test_a_journal_without_records_has_no_cells(tmp_path):
    write(tmp_path, "adult", [])
    assert read_results(tmp_path).cells == ()


def test_data_of_ones_own_never_stand_under_the_name_of_a_built_in_card(tmp_path):
    write(tmp_path, "ours", records(VALUES))
    write(tmp_path, "mine", records([0.5], data_fingerprint="private-1234"))
    found = {cell.dataset: cell.values["auc"] for cell in read_results(tmp_path).cells}
    assert found == {
        "adult": tuple(VALUES),
        "adult (your card, not the built-in one)": (0.5,),
    }


def test_two_data_of_one_name_are_named_by_their_configs(tmp_path):
    write(tmp_path, "a", records(VALUES, dataset="shop"))
    write(tmp_path, "b", records([0.5], dataset="shop", data_fingerprint="other"))
    write(tmp_path, "c", records([0.6], epsilon=1.0, dataset="shop"))
    found = {(c.dataset, c.task.epsilon) for c in read_results(tmp_path).cells}
    assert found == {
        ("shop (as in a and c)", 0.5),
        ("shop (as in a and c)", 1.0),
        ("shop (as in b)", 0.5),
    }


def test_a_test_set_beside_the_rows_is_no_other_dataset(tmp_path):
    both = load_card("adult").fingerprint(with_test=True)
    write(tmp_path, "a", records(VALUES))
    write(tmp_path, "b", records(VALUES, evaluation="test-set", data_fingerprint=both))
    assert {cell.dataset for cell in read_results(tmp_path).cells} == {"adult"}


def test_datasets_are_chosen_by_the_name_of_the_card_or_as_told_apart(tmp_path):
    write(tmp_path, "ours", [*records(VALUES), *records(VALUES, dataset="telco")])
    write(tmp_path, "mine", records([0.5], data_fingerprint="private-1234"))
    results, mine = read_results(tmp_path), "adult (your card, not the built-in one)"
    for names, expected in (
        (["telco"], {"telco"}),
        (["adult"], {"adult", mine}),
        ([mine, "telco"], {mine, "telco"}),
    ):
        assert {cell.dataset for cell in results.of_datasets(names).cells} == expected
    with pytest.raises(DpreproError, match=r"'telko' in the journals .* did you mean 'telco'"):
        results.of_datasets(["telco", "telko"])


def test_results_of_other_journals_can_be_joined_as_if_read_together(tmp_path):
    write(tmp_path, "one", records([0.1, 0.2]))
    write(tmp_path, "two", [*records([0.3], label="another"), *records([0.1, 0.2])])
    joined = read_results(tmp_path, ["one"]).joined(read_journals(tmp_path, ["two"]))
    assert joined == read_results(tmp_path)
    assert joined.journals == ("one", "two")


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
    with pytest.raises(DpreproError, match=f"in {empty}: .* by the name shipped, the runs"):
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


MARKED = "dp-ebm-gdp-2021 (shipped run)"


@pytest.fixture
def sides(tmp_path):
    """Two splits of one's own, of which the second differs, and all 25 that come with dprepro."""
    given = spread(0.875, 0.005)
    write(tmp_path / "own", "adult", records([given[0], 0.9]))
    write(tmp_path / "others", "adult", records(given))
    return [
        read_results(tmp_path / side, (), lambda name: JournalPlan(25, "dp-ebm-2021", "2"))
        for side in ("own", "others")
    ]


def test_own_results_come_first_and_no_record_counts_on_the_other_side(sides):
    found = beside(*sides)
    assert [(cell.task.label, cell.splits("auc")) for cell in found.cells] == [
        ("dp-ebm-gdp-2021", 2),
        (MARKED, 25),
    ]
    assert found.journals == ("adult", "adult (shipped run)")
    assert [cell.method for cell in found.cells] == ["dp-ebm-gdp-2021", MARKED]
    assert found.of("adult").cells[0].splits("auc") == 2


def test_a_task_keeps_its_key_under_the_mark(sides):
    own, others = beside(*sides).held
    assert [record.task.key for record in own.records] == [
        record.task.key for record in others.records
    ][:2]
    assert {task.key for task in others.table.tasks} <= {r.task.key for r in others.records}


def test_a_plan_under_the_mark_still_says_what_is_missing(tmp_path):
    lines = records([0.9, 0.8], "dp-ebm-gdp", 0.5)
    write(tmp_path, "adult", lines)
    cells = {
        ("dp-ebm-gdp", 0.5): [line.task.key for line in lines],
        ("dp-ebm-gdp", 1.0): ["f" * 16],
    }
    others = read_results(tmp_path, (), lambda name: JournalPlan(2, None, cells=cells))
    found = beside(read_results(tmp_path), others)
    assert [(cell.task.label, cell.task.epsilon) for cell in found.planned] == [
        ("dp-ebm-gdp (shipped run)", 1.0)
    ]


def test_tasks_of_both_sides_are_found_by_their_keys(sides):
    ours, theirs = in_both(*sides)
    assert [record.task.split for record in ours] == [record.task.split for record in theirs]
    assert [record.metrics["auc"] for record in ours][1] == 0.9
    assert len(theirs) == 2


def test_verdicts_are_on_ones_own_results(sides):
    documents = select_documents("dp-ebm")
    widths = margins(None)
    alone, joined = (
        check_documents(documents, found, [], widths) for found in (sides[0], beside(*sides))
    )
    assert joined.counts == alone.counts
    assert joined.counts[Verdict.INCOMPLETE] == 1
    assert not any(joined.counts[verdict] for verdict in Verdict if verdict.is_final)


def test_a_table_shows_them_side_by_side_and_marks_the_best_of_ones_own(sides):
    tables = build_tables(beside(*sides), select_documents("dp-ebm"), compare=True)
    (table,) = (found for found in tables if found.table == "2")
    heads = [column.title for column in table.columns]
    place = heads.index("DPEBM-GDP (2021 code)")
    assert heads[place + 1] == "DPEBM-GDP (2021 code) (shipped run)"
    (row,) = (row for row in table.groups[0].rows if row[0].epsilon == 0.5)
    assert [entry.result.splits("auc") for entry in row[place : place + 2]] == [2, 25]
    assert row[place].verdict is not None
    assert row[place + 1].verdict is None
    assert MARKED in table.groups[0].printed
    assert not any(entry.is_best for entry in row)
    assert not any("shipped" in note for note in table.notes)
