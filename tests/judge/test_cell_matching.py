"""Which result answers to a printed cell: one answer for tables, verdicts and the page."""

import math
from dataclasses import replace

import pytest

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.judge.cell_matching import (
    Clash,
    answer,
    answer_or_other,
    apart_notes,
    choose,
    clash_notes,
    follows,
    printed_places,
    stands_in,
)
from dprepro.judge.verdicts import Verdict, judge_cells
from dprepro.papers.document import load_documents
from dprepro.report.layout import build_tables
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import margins
from tests.report.journals import cell, task

PAPER = load_documents()["dp-ebm-2021"]
PRINTED = next(
    c
    for c in PAPER.cells()
    if (c.dataset, c.method, c.epsilon) == ("adult", "dp-ebm-gdp-2021", 1.0)
)
PLACE = ("dp-ebm-2021", "2")


def named(journal, **fields):
    return replace(cell([0.8, 0.9], **fields), journals=(journal,))


def test_the_only_result_is_chosen_and_none_of_none():
    single = named("a")
    assert choose([single]) is single
    assert choose([single], PLACE) is single
    assert choose([], PLACE) is None


def test_of_several_the_one_whose_config_answers_to_the_table_is_chosen():
    other = named("a", seed=2)
    own = replace(named("b"), tables=frozenset({PLACE}))
    assert choose([other, own], PLACE) is own
    assert isinstance(choose([other, own]), Clash)
    assert choose([other, named("b")], PLACE).mark == "2 results"


def test_what_is_only_planned_never_clashes():
    planned = replace(named("a"), values={}, planned=5)
    single = named("b")
    assert choose([planned, single], PLACE) is single
    assert choose([planned, replace(planned, journals=("c",))]) is planned


OURS = named("ours", epsilon=1.0)
OTHERS = {
    "another delta": named("other", epsilon=1.0, delta=1e-5),
    "folds": named("other", epsilon=1.0, evaluation="folds"),
    "synthetic": replace(
        named("other", epsilon=1.0, data_fingerprint=f"{SYNTHETIC_PREFIX}abc"), data="adult"
    ),
    "another document": replace(named("other", epsilon=1.0), papers=frozenset({"another"})),
    "another metric": replace(named("other", epsilon=1.0, seed=2), values={"accuracy": (0.5,)}),
}


def shown(results):
    """Return the field of `PRINTED` in the compared table."""
    (table,) = build_tables(results, [PAPER], compare=True, unprinted=False)
    return next(
        entry
        for row in table.groups[0].rows
        for entry in row
        if (entry.label, entry.epsilon) == (PRINTED.method, PRINTED.epsilon)
    )


@pytest.mark.parametrize("why", OTHERS)
@pytest.mark.parametrize("order", [1, -1])
def test_table_and_verdict_take_the_same_of_two_results(why, order):
    results = Results((OURS, OTHERS[why])[::order])
    assert answer(PRINTED, PAPER, results) is OURS
    entry = shown(results)
    assert entry.result is OURS
    assert entry.verdict.result is OURS
    (judged,) = judge_cells(PAPER, results, margins(), [PRINTED])
    assert judged.result is OURS


@pytest.mark.parametrize("why", OTHERS)
def test_what_does_not_answer_alone_is_not_judged(why):
    results = Results((OTHERS[why],))
    assert answer(PRINTED, PAPER, results) is None
    (judged,) = judge_cells(PAPER, results, margins(), [PRINTED])
    assert (judged.verdict, judged.result) == (Verdict.NOT_RUN, None)
    assert judged.note.startswith("results ")


def test_a_result_of_an_unknown_config_answers_to_every_document_that_prints_its_cell():
    twin = PAPER.model_copy(update={"paper": "twin", "impossible": []})
    claimed = replace(named("theirs", epsilon=2.0), papers=frozenset({"twin"}))
    documents = [PAPER, twin]
    cells = [replace(c, paper="twin") for c in PAPER.cells()]
    object.__setattr__(twin, "cells", lambda: cells)
    results = Results((OURS, claimed))
    (verdict,) = judge_cells(twin, results, margins(), [replace(PRINTED, paper="twin")])
    tables = {t.paper: t for t in build_tables(results, documents, compare=True)}
    entries = [
        e for row in tables["twin"].groups[0].rows for e in row if e.label == "dp-ebm-gdp-2021"
    ]
    (entry,) = [e for e in entries if e.epsilon == 1.0]
    assert verdict.result is OURS
    assert entry.result is OURS


def test_failed_and_skipped_results_answer_though_they_have_no_metric():
    failed = ResultCell(task(epsilon=1.0), ("t",), {}, failed=25, planned=25)
    assert answer(PRINTED, PAPER, Results((failed,))) is failed


def test_two_results_with_different_settings_are_a_clash_everywhere():
    results = Results((OURS, named("b", epsilon=1.0, domain="public")))
    assert isinstance(answer(PRINTED, PAPER, results), Clash)
    entry = shown(results)
    assert (entry.result, entry.clash.mark) == (None, "2 results")
    assert entry.verdict.verdict is Verdict.INCOMPLETE


def test_a_table_shows_another_result_where_none_answers():
    other = OTHERS["another delta"]
    results = Results((other,))
    assert answer_or_other(PRINTED, PAPER, "2", results, [other]) is other
    assert shown(results).verdict.result is None
    assert answer_or_other(None, PAPER, "2", results, [other, OURS]) is OURS
    assert answer_or_other(PRINTED, PAPER, "2", Results(()), []) is None


def test_without_a_config_that_is_known_the_protocol_decides():
    protocol = PAPER.protocol_of("2", "adult")
    assert follows(OURS, PAPER.paper, protocol)
    assert follows(named("a", epsilon=math.inf, delta=0.0), PAPER.paper, protocol)
    assert not follows(replace(OURS, papers=frozenset()), PAPER.paper, protocol)


TWICE = PAPER.model_copy(update={"tables": {**PAPER.tables, "2b": PAPER.tables["2"]}})


@pytest.mark.parametrize(
    ("papers", "tables", "expected"),
    [
        (None, set(), {"2", "2b"}),
        ({"other"}, set(), set()),
        ({PAPER.paper}, set(), {"2", "2b"}),
        ({PAPER.paper}, {(PAPER.paper, "2b")}, {"2b"}),
        ({PAPER.paper}, {(PAPER.paper, "3")}, {"2", "2b"}),  # which does not print Adult
        ({PAPER.paper}, {("other", "2b")}, {"2", "2b"}),
    ],
)
def test_a_result_stands_in_the_tables_that_its_config_names(papers, tables, expected):
    papers = None if papers is None else frozenset(papers)
    ours = replace(cell([0.8], label="mine"), papers=papers, tables=frozenset(tables))
    places = printed_places(PAPER)
    found = {name for name in TWICE.tables if stands_in(ours, TWICE, name, places)}
    assert found == expected
    printed = replace(ours, task=task(PRINTED.method, PRINTED.epsilon))
    assert stands_in(printed, TWICE, "2", places) is (papers != {"other"})


def test_what_is_only_planned_does_not_stand_apart():
    planned = replace(named("a"), values={}, planned=5)
    assert apart_notes([planned, named("b")]) == []


def test_why_results_stand_apart_is_said_once_for_a_label():
    cells = [
        named(journal, label="q", epsilon=epsilon, params=params)
        for epsilon in (1, 8)
        for journal, params in (("q", {}), ("tuned", {"max_bins": 8}))
    ]
    assert apart_notes(cells) == [
        "adult, q at epsilon 1, 8: q and tuned differ in their settings (max_bins default or 8), "
        "and stand apart"
    ]


def test_a_clash_names_settings_parameters_and_configs():
    clash = choose(
        [
            named("a"),
            named("b", domain="public", params={"max_bins": 8}),
            named("c", seed=None),
        ]
    )
    assert clash.mark == "3 results"
    assert clash.differences == (
        "seed 1 or 1 or None, domain observed or public or observed, "
        "max_bins default or 8 or default"
    )
    text = str(clash)
    assert text.startswith("adult, dp-ebm-gdp-2021: 3 results with different settings (")
    assert "in a and b and c. Choose one with --config a" in text


@pytest.mark.parametrize(
    ("epsilons", "levels"), [([0.5, 4], " at epsilon 0.5, 4:"), ([math.inf], "dp-ebm-gdp-2021: 2")]
)
def test_levels_that_clash_alike_are_said_once(epsilons, levels):
    clashes = [
        Clash((named("a", epsilon=epsilon), named("b", epsilon=epsilon, seed=2)))
        for epsilon in epsilons
    ]
    (note,) = clash_notes(clashes)
    assert levels in note


def test_labels_that_clash_are_said_one_by_one():
    clashes = [
        Clash((named("a", label=label), named("b", label=label, seed=2))) for label in ("x", "y")
    ]
    assert [note.partition(":")[0] for note in clash_notes(clashes)] == [
        "adult, x at epsilon 0.5",
        "adult, y at epsilon 0.5",
    ]


@pytest.mark.parametrize("seeds", [(2, 3), (3, 2)])
def test_settings_that_differ_are_those_of_the_first_level(seeds):
    pairs = [
        (
            named("a", label="q", epsilon=epsilon),
            named("b", label="q", epsilon=epsilon, seed=seed),
        )
        for epsilon, seed in zip((0.5, 4), seeds, strict=True)
    ]
    (clash,) = clash_notes([Clash(pair) for pair in pairs])
    (apart,) = apart_notes([cell for pair in pairs for cell in pair])
    for note in (clash, apart):
        assert note.startswith("adult, q at epsilon 0.5, 4: ")
        assert f"(seed 1 or {seeds[0]})" in note


def test_results_at_one_level_alone_stand_apart_as_well():
    (note,) = apart_notes([named("a", label="q"), named("b", label="q", seed=2)])
    assert note.startswith(
        "adult, q at epsilon 0.5: a and b differ in their settings (seed 1 or 2)"
    )


def test_results_in_several_configs_can_be_chosen_by_the_first():
    both = replace(named("a"), journals=("first", "second"))
    text = str(Clash((both, named("b", seed=2))))
    assert "in first+second and b. Choose one with --config first," in text
