"""What stands on the page must be what the journals and documents say: no more, no less."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from dprepro.judge.check import check_documents
from dprepro.judge.claims import Outcome
from dprepro.judge.deviations import Deviation
from dprepro.judge.forensics import Judgement
from dprepro.judge.omnibus import Omnibus
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import Protocol, load_documents
from dprepro.papers.published_cell import load_published
from dprepro.report.draw.files import Workers
from dprepro.report.layout import build_tables
from dprepro.report.page.content import Sources, build_page, protocol_in_words, render_page
from dprepro.report.page.evidence import reasons_of
from dprepro.report.page.figures import figure_groups, shape_figures
from dprepro.report.page.origins import time_in_words
from dprepro.report.page.sheets import UNPRINTED
from dprepro.report.page.sheets import _note as note_of
from dprepro.results.audits import read_audits
from dprepro.results.folder import read_results
from dprepro.results.margins import margins
from dprepro.results.result_cell import ResultCell
from dprepro.results.runs import Run, runs_of
from tests.experiment.test_record import TASK
from tests.report.claims import ROUNDED
from tests.report.journals import records, write
from tests.report.page.pages import ENVIRONMENT, journals

EVIDENCE = [{"file": "README.md", "shows": "the table"}]
REASON = "it was a Tuesday, says `cal -3 <now>`"
LISTED = {"tables": ["2"], "datasets": ["adult"], "methods": ["dp-ebm-gdp-2021"], "epsilons": [2.0]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return journals(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def sources(folder):
    documents = [load_documents()["dp-ebm-2021"]]
    results = read_results(folder)
    explained = [
        Deviation(paper="dp-ebm-2021", expected="worse", reason=REASON, evidence=EVIDENCE, **LISTED)
    ]
    tables = build_tables(results, documents, compare=True)
    report = check_documents(documents, results, explained, margins())
    return Sources(
        documents,
        tables,
        report,
        runs_of(read_results(folder)),
        read_audits(folder),
        figure_groups(tables, report, partial(shape_figures, folder), Workers()),
    )


@pytest.fixture(scope="module")
def page(sources):
    return build_page(sources)


def test_every_printed_cell_stands_there_once_with_its_verdict(page, sources):
    shown = Counter(row.verdict for row in page.cells.rows)
    judged = Counter(cell.verdict.value for cell in sources.report.verdicts)
    assert shown - Counter({UNPRINTED: shown[UNPRINTED]}) == judged
    assert shown[UNPRINTED] == 1  # prices
    (summary,) = page.summaries
    assert summary.cells == len(load_published("dp-ebm-2021")) == sum(summary.counts.values())


def test_a_deviation_leads_to_its_reason_and_only_a_deviation_does(page):
    (reason,) = page.deviations
    assert reason.text == f"{REASON} Evidence: README.md (the table)."
    assert reason.title == "dp-ebm-gdp-2021 on adult"
    ((cell, name),) = page.reasons.items()
    assert (cell.epsilon, name) == (2.0, reason.name)
    links = [field.link for row in page.cells.rows for field in row.cells if field.link]
    assert links == [reason.name]


def test_without_a_reason_it_comes_first(sources):
    report = sources.report
    bare = [replace(cell, explanation=None) for cell in report.verdicts]
    page = build_page(replace(sources, report=replace(report, verdicts=bare)))
    assert not page.is_explained
    assert page.deviations[0].text is None
    assert page.summaries[0].unexplained == 1


def test_what_stands_between_backticks_is_set_as_code(page):
    assert "it was a Tuesday, says <code>cal -3 &lt;now&gt;</code>" in render_page(page)


def test_the_page_says_first_how_much_was_judged_and_what_was_not(page):
    assert page.judged.startswith("4 of 161 cells judged (3 equivalent, 1 different); not run: ")
    assert page.judged.endswith(" more; incomplete: 1 cell, adult dp-ebm-gdp-2021")
    assert page.is_open
    assert f"{page.judged}. 1 deviation: 1 explained." in " ".join(render_page(page).split())


def test_an_unknown_cause_is_not_called_explained(page, sources):
    assert page.causes == "1 deviation: 1 explained"
    judged = [cell for cell in sources.report.verdicts if cell.verdict.is_final]
    report = replace(sources.report, verdicts=judged)
    assert not build_page(replace(sources, report=report)).is_open
    cells = [replace(c, is_unknown=c.explanation is not None) for c in judged]
    page = build_page(replace(sources, report=replace(report, verdicts=cells)))
    assert page.causes == "1 deviation: 1 reviewed with cause unknown"
    assert page.is_open
    assert [reason.state for reason in page.deviations] == ["Cause unknown"]
    assert [row.cells[-1].text for row in page.differing.rows] == ["Cause unknown"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0.4 seconds"), (90, "90.0 seconds"), (150, "2.5 minutes"), (9000, "2.5 hours")],
)
def test_a_time_is_told_in_a_unit_that_says_something(seconds, words):
    assert time_in_words(seconds) == words


def test_what_was_not_judged_is_counted_with_its_reason(page, sources):
    counts = {(row.dataset, row.verdict): int(row.cells[3].text) for row in page.missing.rows}
    assert counts["healthcare", "impossible"] == 23
    assert counts["adult", "incomplete"] == 1
    final = sum(cell.comparison is not None for cell in sources.report.verdicts) - 1
    assert sum(counts.values()) == len(sources.report.verdicts) - final


def test_printed_cells_outside_all_layouts_are_counted(sources):
    (document,) = sources.documents
    part = document.model_copy(update={"tables": {"2": document.tables["2"]}, "impossible": []})
    page = build_page(replace(sources, documents=[part]))
    (row,) = (row for row in page.missing.rows if row.dataset is None)
    printed = [cell for cell in load_published("dp-ebm-2021") if cell.table != "2"]
    assert int(row.cells[3].text) == len(printed)


def test_filters_offer_what_the_cells_have(page):
    assert page.choices["paper"] == ["dp-ebm-2021"]
    assert "prices" in page.choices["dataset"]
    assert "mine" in page.choices["method"]
    assert page.choices["verdict"] == [
        "equivalent",
        "worse",
        "incomplete",
        "not run",
        "impossible",
        UNPRINTED,
    ]


def test_levels_sort_by_number_and_without_privacy_last(page):
    keys = [row.cells[2].key for row in page.cells.rows]
    assert {float(key) for key in keys} == {0.5, 1, 2, 4, 8, math.inf}


def test_journals_of_what_is_not_shown_stay_out(sources, folder, tmp_path):
    write(tmp_path, "other", records([0.9], dataset="elsewhere"), {"cpu": "another"})
    runs, more = sources.runs, runs_of(read_results(tmp_path))
    both = replace(runs, runs=runs.runs + more.runs, timings=runs.timings + more.timings)
    page = build_page(replace(sources, runs=both))
    assert len(page.machines) == 1
    assert dict(page.machines[0].facts)["cpu"] == ENVIRONMENT["cpu"]
    assert "elsewhere" not in {row.dataset for row in page.times.rows}


def test_a_machine_stands_there_once_and_each_run_names_its_own(sources):
    first, second = sources.runs.runs
    newer = replace(second, environment={**ENVIRONMENT, "libraries": {"numpy": "10"}})
    same = replace(second, environment={**ENVIRONMENT, "jobs": 8})
    runs = replace(sources.runs, runs=(first, newer, same))
    page = build_page(replace(sources, runs=runs))
    assert [machine.name for machine in page.machines] == ["M1", "M2"]
    assert [row.cells[-1].text for row in page.runs.rows] == ["M1", "M2", "M1"]


def test_a_run_that_was_taken_over_names_the_journal_that_it_was_for(sources):
    other = Run("two", {**ENVIRONMENT, "taken_from": "one"})
    runs = replace(sources.runs, runs=(*sources.runs.runs, other))
    rows = build_page(replace(sources, runs=runs)).runs.rows
    assert [row.cells[0].text for row in rows] == ["one", "two", "two, taken from one"]


def test_a_curve_is_drawn_for_each_dataset_with_privacy_levels(page):
    whole, group = page.figures
    assert [(f.dataset, f.paper) for f in whole.figures] == [(None, "dp-ebm-2021")]
    assert "adult, dp-ebm-gdp-2021: -" in whole.figures[0].notes[0]
    assert [(f.dataset, f.paper) for f in group.figures] == [
        ("adult", "dp-ebm-2021"),
        ("cal-housing", "dp-ebm-2021"),
        ("prices", None),
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"splits": 25, "test_share": 0.2, "delta": 1e-6}, "25 random splits, 20 % held out"),
        (
            {"splits": 6, "evaluation": "stratified", "test_share": 0.3, "delta": 1e-6},
            "6 stratified splits, 30 % held out",
        ),
        ({"splits": 5, "evaluation": "folds", "delta": 1e-5}, "5 folds"),
        (
            {"splits": 10, "evaluation": "folds", "folds": 5, "delta": 1e-5},
            "10 splits, 5 folds of each partition",
        ),
        ({"splits": 3, "evaluation": "test-set", "delta": 1e-5}, "the donors' test rows, 3"),
    ],
)
def test_a_protocol_is_put_into_words(given, words):
    text = protocol_in_words(Protocol(**given))
    assert text.startswith(words)
    assert f"δ = {given['delta']:g}" in text


def test_a_cell_of_units_says_whose_epsilon_it_is():
    of_row, of_unit = (
        ResultCell(replace(TASK, unit=unit, rows_per_unit=rows), ("j",), {})
        for unit, rows in (("row", 1), ("patient", 2))
    )
    assert note_of(of_unit) == "Epsilon is per patient with at most 2 rows. " + note_of(of_row)


def test_a_claim_that_needs_rounding_says_so_in_its_verdict_and_in_the_count(sources):
    claims = [ROUNDED, *(c for c in sources.report.claims if c.claim.name != ROUNDED.claim.name)]
    shown = build_page(replace(sources, report=replace(sources.report, claims=claims)))
    verdicts = {row.cells[2].text: row.cells[5] for row in shown.claims.rows}
    found = verdicts[ROUNDED.claim.states]
    assert (found.text, found.tone) == ("holds after rounding", "holds")
    assert "claims hold, 1 of them after rounding" in render_page(shown)


@pytest.mark.parametrize(
    ("printed", "own", "words"),
    [
        (0, 1, "1 measured cell"),
        (0, 1200, "1,200 measured cells"),
        (1, 2, "1 printed cell, 2 measured by us alone"),
        (1410, 0, "1,410 printed cells, 0 measured by us alone"),
    ],
)
def test_the_number_of_cells_is_put_into_words(page, printed, own, words):
    (row, *_) = [row for row in page.cells.rows if row.verdict == UNPRINTED]
    rows = own * (row,) + printed * (replace(row, verdict="equivalent"),)
    assert replace(page, cells=replace(page.cells, rows=rows)).cells_in_words == words


def test_tables_are_grouped_by_their_document(page):
    groups = dict(page.groups)
    assert list(groups) == list(dict.fromkeys(table.paper or "" for table in page.tables))
    assert sum(map(len, groups.values())) == len(page.tables)
    assert all((table.paper or "") == paper for paper, of in groups.items() for table in of)


def test_claims_that_fail_and_the_least_confidence_are_stated(sources, page):
    failing = [c for c in sources.report.claims if c.outcome is Outcome.FAILS]
    assert page.failed_claims == len(failing)
    claims = [*failing, replace(sources.report.claims[0], outcome=Outcome.FAILS)]
    report = replace(sources.report, claims=claims)
    (audit,) = sources.audits
    audits = [audit, audit.model_copy(update={"confidence": 0.9})]
    shown = build_page(replace(sources, report=report, audits=audits))
    assert shown.failed_claims == len(claims) > page.failed_claims
    assert shown.confidence == 0.9


def test_entries_that_no_longer_apply_are_named(sources, folder):
    held = Deviation(
        paper="dp-ebm-2021", tables=["2"], datasets=["adult"], methods=["dp-ebm-gdp-2021"],
        epsilons=[1.0], expected="worse", reason="because", evidence=EVIDENCE,
    )  # fmt: skip
    report = check_documents(sources.documents, read_results(folder), [held], margins())
    (line,) = build_page(replace(sources, report=report)).stale
    assert line.endswith("is listed as worse, but is equivalent.")


def test_cells_that_differ_lead_with_their_verdict_and_end_with_their_cause(page):
    (row,) = page.differing.rows
    heads = [head.title for head in page.differing.heads]
    assert (heads[0], heads[-1]) == ("Verdict", "Cause")
    assert len(heads) == len(set(heads)) == len(row.cells)
    found = dict(zip(heads, (cell.text for cell in row.cells), strict=True))
    assert found["Verdict"].endswith("worse")
    assert (found["Cause"], row.cells[-1].link) == ("Explained", page.deviations[0].name)
    assert "0.7" in found["Measured"]


def test_a_reason_counts_its_cells_and_the_first_has_number_one(sources, page):
    assert page.deviations[0].name == "deviation-1"
    assert page.deviations[0].sheet.caption == "1 cell"
    report = sources.report
    (cell,) = [one for one in report.verdicts if one.verdict.is_deviation]
    twice = reasons_of(replace(report, verdicts=[cell, cell]))
    assert [reason.sheet.caption for reason in twice] == ["2 cells"]


def test_a_cell_that_was_not_run_says_that_no_journal_has_it_unless_it_has_a_note(sources):
    missing = [one for one in sources.report.verdicts if one.verdict is Verdict.NOT_RUN]
    noted = replace(missing[0], note="skipped on purpose")
    found = build_page(replace(sources, report=replace(sources.report, verdicts=[*missing, noted])))
    why = {row.cells[-1].text for row in found.missing.rows}
    assert {"no journal holds a result for it", "skipped on purpose"} <= why


def test_columns_say_from_how_many_settings_they_were_chosen(sources):
    place = ("dp-ebm-2021", "2", "adult", "dp-ebm-gdp-2021")
    judged = Judgement(
        place, "m", 2, "3", ("pol", "elevators"), None, 9.0, Omnibus((3.0,), 0, 0.01), (25, 25)
    )
    other = replace(judged, chosen_in="", chosen_on=(), seed=2)
    report = replace(sources.report, held_out=[judged, other])
    page = build_page(replace(sources, report=report))
    settings = {row.method: row.cells[-1] for row in page.columns.rows if row.dataset == "adult"}
    assert settings["dp-ebm-gdp-2021"].text == "fitted, not reproduced"
    assert settings["dp-ebm-gdp-2021"].more == (
        "Chosen from 2 settings, by printed numbers: the gaps that a random cut can fall into. "
        "Fitted, not reproduced",
        "Compared with: 2, 3, adult, credit, telco, cal-housing, elevators, pol, wine-white, "
        "dp-ebm-gdp-2021, auc, rmse",
    )
    assert [row.cells[4].text for row in page.held_out.rows] == [
        "Table 3: pol, elevators; of 2", "other splits",
    ]  # fmt: skip
    assert {row.cells[-1].text for row in page.held_out.rows} == {"fails"}
    assert "fitted, not reproduced" in render_page(page)


def test_chosen_cells_are_counted_apart_from_the_others(page, sources):
    heads = [head.title for head in page.choices_made.heads]
    assert heads[:3] == ["Document", "Settings", "Cells"]
    chosen, others = page.choices_made.rows
    assert [row.cells[1].text for row in (chosen, others)] == ["chosen", "not chosen"]
    for position, head in enumerate(heads[3:], start=3):
        counts = [int(row.cells[position].text) for row in (chosen, others)]
        assert sum(counts) == sources.report.counts[Verdict(head)]
