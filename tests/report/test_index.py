import math
from dataclasses import replace
from pathlib import Path

import pytest

from dprepro.papers.document import load_documents, select_documents
from dprepro.report.index import build_index, render_index
from dprepro.report.layout import build_tables
from dprepro.results.aggregation import JournalPlan
from dprepro.results.folder import Results
from tests.report.journals import cell

DOCUMENTS = list(load_documents().values())
PAPER = "dp-ebm-2021"
TABLE_2 = {"papers": frozenset({PAPER}), "tables": frozenset({(PAPER, "2")})}


def own(name, **fields):
    found = cell([0.8, 0.9], **{"dataset": "shop", **fields})
    return replace(found, journals=(name,), papers=frozenset())


def index(*cells, plans=None):
    return build_index(Results(cells, plans or {}), DOCUMENTS)


def test_tables_configs_and_datasets_are_counted_with_what_is_there_in_part():
    printed = [
        replace(cell([0.8] * 25, label=name), **TABLE_2) for name in ("dpboost-2021", "mine")
    ]
    part = replace(cell([0.8, 0.9], epsilon=1.0), **TABLE_2, planned=25)
    failed = replace(cell([], label="bad"), **TABLE_2, values={}, failed=2, planned=2)
    skipped = replace(cell([], label="no"), **TABLE_2, values={}, skipped=2, planned=2)
    found = index(
        *(*printed, part, failed, skipped, own("shopping")),
        plans={"shopping": JournalPlan(2, None, title="Shops")},
    )
    first, second = found.parts
    assert (first.heading, first.command) == (PAPER, "dprepro table TABLE --paper dp-ebm")
    assert [(line.name, line.cells, line.partial) for line in first.lines] == [("2", 4, 2)]
    assert [(line.name, line.title, line.cells) for line in second.lines] == [
        ("shopping", "Shops", 1)
    ]
    assert found.datasets == ("adult", "shop")
    assert (found.cells, found.partial) == (5, 2)


def test_each_command_begins_one_document_only():
    everything = [
        replace(
            cell([0.8], dataset=dataset),
            papers=frozenset({d.paper}),
            tables=frozenset({(d.paper, name)}),
        )
        for d in DOCUMENTS
        for name, layout in d.tables.items()
        for dataset in layout.datasets
    ]
    commands = [part.command for part in index(*everything).parts]
    assert len(commands) == len(DOCUMENTS)
    for document, command in zip(DOCUMENTS, commands, strict=True):
        short = command.split()[-1]
        assert select_documents(short) == [document]


@pytest.mark.parametrize("width", [80, 100])
def test_a_thousand_configs_still_fit_a_screen(width):
    cells = [own(f"config-{k}", label=f"m{k}", dataset=f"data-{k}") for k in range(1000)]
    text = render_index(index(*cells), Path("results"), width)
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= width
    assert "results: 1000 cells, from 1000 configs" in text
    assert "and 960 more" in text


def test_long_titles_are_cut_and_keep_their_count():
    plans = {"mine": JournalPlan(2, None, title="very " * 40)}
    text = render_index(index(own("mine"), plans=plans), Path("results"), 80)
    (line,) = [line for line in text.splitlines() if line.startswith("  mine")]
    assert len(line) <= 80
    assert line.endswith("… (1 cell)")
    assert math.isclose(line.count("very"), 9, abs_tol=3)


def test_a_printed_table_wants_the_splits_that_its_verdict_takes():
    few = replace(cell([0.8, 0.9]), **TABLE_2)  # complete as its config has it
    found = index(few)
    assert [(line.cells, line.partial) for line in found.parts[0].lines] == [(1, 1)]
    assert (found.cells, found.partial) == (1, 1)
    ((entry,),) = build_tables(Results((few,)), DOCUMENTS)[0].groups[0].rows
    assert not entry.result.is_complete("auc", entry.planned)


def test_results_of_an_unknown_config_are_listed_once():
    found = index(cell([0.8, 0.9]))
    (part,) = found.parts
    assert part.command == "dprepro table NAME"
    assert [(line.name, line.title) for line in part.lines] == [("test", "(config unknown)")]


def test_one_of_a_kind_is_one():
    text = render_index(index(own("mine")), Path("results"), 80)
    assert text.startswith("results: 1 cell, from 1 config\n")


def test_where_nothing_has_finished_that_is_said():
    found = replace(index(), journals=("mine",))
    text = render_index(found, Path("results"), 80)
    assert text.startswith("results: 0 cells, from 1 config\n")
    assert "No task has finished yet; `dprepro run CONFIG` runs them: PATH/mine.yaml" in text
    assert "Datasets" not in text


def test_as_many_names_as_there_is_room_for_are_all_given():
    cells = [own(f"config-{k}", label=f"m{k}", dataset=f"data-{k}") for k in range(48)]
    text = " ".join(render_index(index(*cells), Path("results"), 80).split())
    assert "config-7 (config unknown) (1 cell) config-8, config-9," in text
    assert "config-46, config-47 Datasets" in text  # forty names, and no more
    assert "data-38, data-39 and 8 more" in text


def test_one_document_alone_is_asked_for_by_its_first_word():
    document = load_documents()[PAPER]
    found = build_index(Results((replace(cell([0.8]), **TABLE_2),)), [document])
    assert found.parts[0].command == "dprepro table TABLE --paper dp"


def test_a_result_of_a_known_and_an_unknown_config_counts_as_known():
    both = replace(cell([0.8] * 25), journals=("unknown", "known"))
    found = index(both, plans={"known": JournalPlan(25, None, title="Known")})
    assert PAPER in [part.heading for part in found.parts]
    assert "Configs without a printed table" not in [part.heading for part in found.parts]
