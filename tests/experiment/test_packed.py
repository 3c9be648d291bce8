"""A packed journal is the same journal: byte for byte, record for record."""

import json
import math
import random
from dataclasses import replace

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprepro.experiment.journal import JournalTable, journal_bytes, journal_files, read_journal
from dprepro.experiment.packed import packed, unpacked
from dprepro.experiment.record import written
from dprepro.runtime.errors import DpreproError
from tests import lab
from tests.report.journals import records

ENVIRONMENT = {"kind": "environment", "python": "3.11", "time": "2026-01-01"}


def plan_of(lines):
    cells = {(lines[0].task.label, 0.5): [line.task.key for line in lines]}
    return lab.plan_of(cells, "mine", splits=len(lines))


def journal_of(lines, plan=True):
    stated = [plan_of(lines).to_json()] if plan else []
    entries = [*stated, ENVIRONMENT, *(line.to_json() for line in lines)]
    raw = b""
    for entry in entries:
        raw += written(entry, raw)
    return raw


SOME = [
    *records([0.8, 0.9], ledger={"epsilon": 0.5, "releases": [{"x": [1, None, "é"]}]}),
    *records([0.7], label="ebm", epsilon=math.inf),
    replace(records([0.1], split=7)[0], status="failed", metrics={}, message="böse\n| <x>"),
    replace(records([0.1], split=8)[0], metrics={"auc": -0.0, "f1": 5e-324}, absent={"r2": "why"}),
]


def test_lines_come_back_byte_for_byte():
    raw = journal_of(SOME)
    assert unpacked(packed(raw)) == raw
    assert unpacked(packed(b"")) == b""


def test_so_do_lines_of_earlier_versions_and_lines_that_no_version_wrote():
    old = [json.dumps(line.to_json(), separators=(",", ":")) for line in SOME]
    whole = {"kind": "record", "key": "0" * 16, "task": {"split": 1}, "metrics": {"n": 1}}
    odd = [json.dumps(SOME[0].to_json()), json.dumps(whole), "no json", "", '{"kind":3}', "[1]"]
    raw = "".join(f"{line}\n" for line in [*old, *odd, *old]).encode()
    assert unpacked(packed(raw)) == raw


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(
            replace,
            st.sampled_from(SOME),
            metrics=st.dictionaries(st.sampled_from(["auc", "f1", "a.b", "é"]), numbers),
            seconds=st.dictionaries(st.sampled_from(["fit", "predict"]), numbers),
            message=texts,
            absent=st.dictionaries(texts, texts, max_size=1),
            ledger=st.none() | st.dictionaries(texts, numbers, max_size=2),
        ),
        max_size=6,
    )
)
def test_records_of_any_kind_come_back(lines):
    raw = b"".join(written(line.to_json()) for line in lines)
    assert unpacked(packed(raw)) == raw


def test_a_torn_line_is_not_packed():
    with pytest.raises(ValueError, match="torn"):
        packed(journal_of(SOME)[:-1])


def write_both(folder, raw):
    (folder / "lines").mkdir()
    lines, file = folder / "lines" / "mine.jsonl", folder / "mine.parquet"
    lines.write_bytes(raw)
    file.write_bytes(packed(raw))
    return lines, file


def test_both_forms_read_alike(tmp_path):
    lines, file = write_both(tmp_path, journal_of([*SOME, replace(SOME[0], metrics={"auc": 0.5})]))
    assert journal_bytes(file) == lines.read_bytes()
    assert read_journal(file) == read_journal(lines)
    assert read_journal(file).computed_in[SOME[0].task.key]["python"] == "3.11"
    wanted = [SOME[1].task.key, "0" * 16]
    assert read_journal(file, wanted) == read_journal(lines, wanted)
    assert (
        JournalTable(file).last_plan == JournalTable(lines).last_plan == plan_of([*SOME, SOME[0]])
    )
    assert [t.cell for t in JournalTable(file).tasks] == [t.cell for t in JournalTable(lines).tasks]
    table, other = JournalTable(file).table, JournalTable(lines).table
    assert list(table.records(table.last)) == list(other.records(other.last))


def ordered(*names, split):
    return replace(records([0.5], split=split)[0], metrics=dict.fromkeys(names, 0.5))


def test_figures_of_an_earlier_version_come_in_another_order(tmp_path):
    """The lines of a run that goes on from a packed journal may have a new metric in the middle."""
    both = [ordered("auc", "n", split=1), ordered("auc", "f1", "n", split=2)]
    lines, file = write_both(tmp_path, journal_of(both))
    assert pd.read_parquet(file)["task"].count() == 2
    assert read_journal(file) == read_journal(lines)


def test_records_whose_order_no_columns_hold_are_read_all_the_same(tmp_path):
    both = [ordered("auc", "f1", split=1), ordered("f1", "auc", split=2)]
    lines, file = write_both(tmp_path, journal_of(both))
    assert pd.read_parquet(file)["task"].count() == 1
    assert read_journal(file) == read_journal(lines)
    assert list(JournalTable(file).table.records([0, 1])) == both
    assert JournalTable(file).tasks == JournalTable(lines).tasks


def test_records_whose_figures_stand_in_another_order_count_as_others_do(tmp_path):
    lines = [replace(SOME[0], metrics={"auc": 0.5, "f1": 0.25}), *SOME[1:]]
    lines.append(replace(lines[0], task=replace(SOME[0].task, split=9)))
    lines[-1] = replace(lines[-1], metrics={"f1": 0.25, "auc": 0.5})
    lines, file = write_both(tmp_path, journal_of(lines))
    assert read_journal(file) == read_journal(lines)
    table, other = JournalTable(file), JournalTable(lines)
    assert list(table.table.records(table.table.last)) == list(other.table.records(range(6)))
    assert (table.plan, table.environments) == (other.plan, other.environments)


def test_a_record_that_was_taken_over_was_computed_where_it_says(tmp_path):
    raw = written(plan_of(SOME).to_json())
    for number, line in enumerate(SOME):
        environment = {"taken_from": "other", **ENVIRONMENT} if number == 1 else ENVIRONMENT
        raw += written({**environment, "number": number}, raw)
        raw += written(line.to_json(), raw)
    lines, file = write_both(tmp_path, raw)
    assert read_journal(file) == read_journal(lines)


def test_a_journal_without_records_reads_as_one(tmp_path):
    raw = journal_of(SOME)
    for name, size in (("empty", 0), ("plan", raw.find(b"\n") + 1)):
        (tmp_path / name).mkdir()
        lines, file = write_both(tmp_path / name, raw[:size])
        assert read_journal(file) == read_journal(lines)
        assert len(JournalTable(file).table) == 0
    assert JournalTable(tmp_path / "plan" / "mine.parquet").last_plan == plan_of(SOME)


def test_any_flipped_bit_is_found(tmp_path):
    content = packed(journal_of(SOME))
    chance = random.Random(3)
    for _ in range(200):
        place = chance.randrange(len(content))
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        with pytest.raises(ValueError, match=r"checksum|Parquet"):
            unpacked(bytes(flipped))
    (tmp_path / "mine.parquet").write_bytes(content[:-1])
    with pytest.raises(DpreproError, match=r"mine\.parquet: it is damaged: .* --fresh"):
        read_journal(tmp_path / "mine.parquet")


def test_a_file_of_another_kind_is_to_be_moved_away(tmp_path):
    path = tmp_path / "mine.parquet"
    pd.DataFrame({"kind": ["record"]}).to_parquet(path)
    with pytest.raises(DpreproError, match=r"no packed journal.* move it to another folder"):
        len(JournalTable(path).table)


def test_any_other_reader_of_parquet_sees_the_columns(tmp_path):
    _, file = write_both(tmp_path, journal_of(SOME))
    found = duckdb.sql(
        f"select split, status, \"metric.auc\" from '{file}' where kind = 'record' order by 1, 3"
    ).fetchall()
    expected = [(line.task.split, line.status, line.metrics.get("auc")) for line in SOME]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_lines_count_before_what_was_packed_unless_there_are_none(tmp_path):
    file = tmp_path / "mine.parquet"
    file.write_bytes(packed(journal_of(SOME)))
    assert journal_files(tmp_path) == {"mine": file}
    (tmp_path / "mine.jsonl").touch()
    assert journal_files(tmp_path) == {"mine": file}
    (tmp_path / "mine.jsonl").write_bytes(journal_of(SOME))
    assert journal_files(tmp_path) == {"mine": tmp_path / "mine.jsonl"}
