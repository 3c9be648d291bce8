""""""

import math
from dataclasses import replace

import numpy as np

from dprepro.experiment.packed import RecordTable
from dprepro.judge.cell_matching import choose
from dprepro.results import aggregation
from dprepro.results.aggregation import JournalPlan
from dprepro.results.folder import read_results
from tests.lab import plan_of
from tests.report.journals import records, write

VALUES = [0.87, 0.88, 0.9, 0.86]


def test_ones_own_test_set_beside_the_rows_is_no_other_dataset(tmp_path):
    shop = {"dataset": "shop", "data_fingerprint": "rows"}
    write(tmp_path, "rnd", records(VALUES, **shop))
    both = {**shop, "data_fingerprint": "rows+test", "evaluation": "test-set"}
    write(tmp_path, "donors", records(VALUES, **both))
    assert {cell.dataset for cell in read_results(tmp_path).cells} == {"shop"}


def plan_with(lines, **options):
    cells = {}
    for record in lines:
        cells.setdefault((record.task.label, record.task.epsilon), []).append(record.task.key)
    return JournalPlan(**{"splits": 4, "paper": None, "cells": cells, **options})


def test_each_config_has_exactly_the_records_that_it_asks_for(tmp_path):
    write(tmp_path, "a", records(VALUES[:2]))
    write(tmp_path, "b", records(VALUES))
    plans = {
        "a": plan_with(records(VALUES[:2]), splits=2),
        "b": plan_with(records(VALUES), metric="auc"),
    }
    results = read_results(tmp_path, plan_of=plans.get)
    (merged,) = results.cells
    assert (merged.journals, merged.splits("auc"), merged.planned) == (("a", "b"), 4, 4)
    for name, count in (("a", 2), ("b", 4)):
        part = merged.part(name)
        assert (part.journals, part.planned) == ((name,), count)
        assert part.values["auc"] == tuple(VALUES[:count])
        assert results.of(name).cells == read_results(tmp_path, [name], plans.get).cells
    assert results.journals == ("a", "b")


def test_what_is_planned_and_has_no_record_is_named(tmp_path):
    ebm = records(VALUES, label="ebm", epsilon=math.inf)
    plan = plan_with([*records(VALUES), *records(VALUES, epsilon=1.0), *ebm], metric="auc")
    write(tmp_path, "a", records(VALUES[:1]))
    results = read_results(tmp_path, plan_of={"a": plan}.get)
    assert [(cell.task.epsilon, cell.splits("auc")) for cell in results.cells] == [(0.5, 1)]
    found = {(c.dataset, c.task.label, c.task.epsilon): c for c in results.planned}
    assert list(found) == [("adult", "dp-ebm-gdp-2021", 1.0), ("adult", "ebm", math.inf)]
    assert all((c.planned, c.journals, c.metric) == (4, ("a",), "auc") for c in found.values())
    assert not any(c.has_records or c.is_unverified for c in found.values())
    assert results.all("adult", "ebm", math.inf) == []
    write(tmp_path, "a", [])
    assert read_results(tmp_path, plan_of={"a": plan}.get).planned == ()


def test_values_are_known_by_split_and_reasons_by_metric(tmp_path):
    lines = records(VALUES)
    lines[1] = replace(lines[1], status="failed", metrics={}, message="boom")
    lines[2] = replace(lines[2], metrics={"auc": 0.9, "f1": 0.5})
    lines[3] = replace(lines[3], absent={"f1": "why", "brier_score": "no odds"})
    write(tmp_path, "a", lines)
    (cell,) = read_results(tmp_path).cells
    assert cell.by_split("auc") == {0: 0.87, 2: 0.9, 3: 0.86}
    assert cell.by_split("f1") == {2: 0.5}
    assert cell.by_split("rmse") == {}
    assert cell.absent == {"brier_score": "no odds"}  # there is an F1 of one split


def test_of_two_journals_the_record_with_more_metrics_counts(tmp_path):
    lines = records(VALUES)
    more = [replace(line, metrics={**line.metrics, "f1": 0.5}) for line in lines]
    for first, second in ((lines, more), (more, lines)):
        write(tmp_path, "a", first)
        write(tmp_path, "b", second)
        (cell,) = read_results(tmp_path).cells
        assert cell.values == {"auc": tuple(VALUES), "f1": (0.5,) * 4}


def test_one_split_without_a_ledger_leaves_the_cell_unverified(tmp_path):
    bare = records(VALUES[:1], ledger=None)
    write(tmp_path, "a", [*bare, *records(VALUES)[1:]])
    (found,) = read_results(tmp_path).cells
    assert (found.splits("auc"), found.is_unverified, found.spent_epsilon) == (4, True, None)
    write(tmp_path, "a", records(VALUES))
    assert not read_results(tmp_path).cells[0].is_unverified


def test_the_largest_spent_epsilon_of_the_splits_counts_if_all_state_it(tmp_path):
    lines = [records([0.8], split=split)[0] for split in range(3)]
    known = [replace(lines[split], ledger={"true_epsilon": e}) for split, e in ((0, 0.4), (1, 0))]
    write(tmp_path, "a", known)
    assert read_results(tmp_path).cells[0].spent_epsilon == 0.4
    write(tmp_path, "a", [*known, lines[2]])
    assert read_results(tmp_path).cells[0].spent_epsilon is None


def test_splits_of_a_config_with_looks_stand_apart_from_the_printed_number(tmp_path):
    values = [0.8, 0.9, 0.7, 0.6]
    write(tmp_path, "few", records(values[:2]))
    write(tmp_path, "more", records(values))
    plans = {
        "few": JournalPlan(2, "dp-ebm-2021", "2"),
        "more": JournalPlan(4, "dp-ebm-2021", "2", looks=(2, 4)),
    }
    (found,) = read_results(tmp_path, (), plans.get).cells
    assert (found.values["auc"], found.planned, found.looks) == ((0.8, 0.9), 2, ())
    assert found.journals == ("few",)
    assert set(found.parts) == {"few", "more"}
    more = found.more["dp-ebm-2021"]
    assert (more.values["auc"], more.planned, more.looks) == (tuple(values), 4, (2, 4))
    assert more.first(3).values["auc"] == (0.8, 0.9, 0.7)
    assert more.first(3).by_split("auc") == {0: 0.8, 1: 0.9, 2: 0.7}

    (alone,) = read_results(tmp_path, ["more"], plans.get).cells
    assert (alone.splits("auc"), alone.looks, alone.more) == (4, (2, 4), {})


def test_splits_of_a_config_without_a_document_do_not_answer_to_a_printed_cell(tmp_path):
    values = [0.8, 0.9, 0.7, 0.6]
    write(tmp_path, "paper", records(values[:2]))
    write(tmp_path, "own", records(values))
    plans = {"paper": JournalPlan(2, "dp-ebm-2021", "2"), "own": JournalPlan(4, None)}
    (found,) = read_results(tmp_path, (), plans.get).cells
    assert (found.journals, found.splits("auc")) == (("own", "paper"), 4)
    answering = found.answering
    assert (answering.journals, answering.values["auc"]) == (("paper",), (0.8, 0.9))
    assert (answering.planned, answering.answering) == (2, answering)
    assert choose([found]) is found
    assert choose([found], ("dp-ebm-2021", "2")) == answering
    # A config that is not known may answer, as may one of another document.
    for other in (None, JournalPlan(4, "replication-report-2025")):
        (found,) = read_results(tmp_path, (), {**plans, "own": other}.get).cells
        assert found.answering is found
    (alone,) = read_results(tmp_path, ["own"], plans.get).cells
    assert alone.answering is alone


def stated(*lines, splits=3, **changes):
    """A plan line that asks for these records and nothing else."""
    keys = {}
    for line in lines:
        keys.setdefault((line.task.label, line.task.epsilon), []).append(line.task.key)
    return plan_of(keys, "mine", splits=splits, **changes)


def current(lines, stated=None, assumed=None):
    """The records that count of a journal with these lines, and the plan that says so."""
    table = RecordTable.of(lines)
    rows, plan = aggregation.current(stated, table, assumed)
    return list(table.records(rows)), plan


def planned_splits(plan, lines):
    """By key of a record, how many splits make its cell complete."""
    table = RecordTable.of(lines)
    found = aggregation.planned_splits(plan, table, np.arange(len(table)))
    keys = [line.task.key for line in lines]
    return {key: found[code] for key, code in zip(keys, table.task.tolist(), strict=True)}


FIRST, SECOND = records([0.7, 0.8, 0.9]), records([0.1, 0.2, 0.3], params={"max_bins": 4})


def test_the_plan_says_what_counts_not_the_order_of_the_journal():
    found, plan = current([*FIRST, *SECOND], stated(*FIRST))
    assert found == FIRST
    assert (plan.splits, plan.paper, plan.metric) == (3, None, "auc")
    assert current([*FIRST, *SECOND], stated(*SECOND))[0] == SECOND


def test_records_come_in_the_order_of_the_plan():
    ebm = records([0.9], label="ebm", epsilon=math.inf)
    plan = stated(*ebm, *FIRST)
    assert current([*reversed(FIRST), *ebm], plan)[0] == [*ebm, *FIRST]


def test_nothing_counts_that_the_plan_does_not_ask_for():
    other = records([0.5], label="taken-out")
    assert current([*FIRST, *other], stated(*FIRST))[0] == FIRST
    assert current(other, stated(*FIRST))[0] == []


def test_without_a_plan_the_last_setting_under_a_label_counts():
    assert current([*FIRST, *SECOND]) == (SECOND, None)


def test_an_assumed_plan_counts_if_the_journal_knows_any_of_its_tasks():
    assumed = JournalPlan.stated(stated(*FIRST))
    assert current([*FIRST, *SECOND], assumed=assumed) == (FIRST, assumed)
    assert current(SECOND, assumed=assumed) == (SECOND, replace(assumed, cells=None))
    assert current(FIRST, stated(*FIRST, splits=9), assumed)[1].splits == 9


def test_a_cell_is_complete_with_all_its_keys_even_if_few_are_there():
    plan = JournalPlan.stated(stated(*FIRST))
    assert planned_splits(plan, FIRST[:1]) == {FIRST[0].task.key: 3}
    assert planned_splits(JournalPlan(25, None), FIRST[:1]) == {FIRST[0].task.key: 25}
    other = records([0.5], epsilon=4.0)
    assert set(planned_splits(None, [*FIRST, *other]).values()) == {3}
