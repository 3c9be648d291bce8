import math
from dataclasses import replace

import pytest

from dprepro.data import PRIVATE_PREFIX
from dprepro.judge.cell_matching import Clash
from dprepro.judge.check import CheckReport
from dprepro.judge.two_means import Comparison
from dprepro.judge.verdicts import CellVerdict, LimitedBy, Undecided, Verdict
from dprepro.papers.published_cell import PublishedCell
from dprepro.privacy.guarantee_status import NO_LEDGER
from dprepro.report.formatting import (
    FIGURES,
    causes_in_words,
    heading,
    legend,
    number,
    p_in_words,
    together_in_words,
    undecided_in_words,
    unfinished_in_words,
    verdict_figures,
    words,
)
from dprepro.report.layout import Entry, Group
from dprepro.report.tables import markdown_tables
from dprepro.results.margins import level
from tests.report.samples import COMPARE, PLAIN, SPENT, measured, tables

PRINTED = PublishedCell("p", "2", "adult", "m", 1.0, "auc", 0.88, 0.014, decimals=2, std_decimals=3)
RESULT = measured(0.883)
COMPARISON = Comparison(0.003, 0.001, 2.34, 46, 0.001, 0.005, 0.02, 0.04)
JUDGED = CellVerdict(PRINTED, Verdict.EQUIVALENT, RESULT, 0.005, COMPARISON, 25, "3 of 10 splits")


def marked(result, style=PLAIN, planned=25, **fields):
    """Return the mark on an entry of a table."""
    entry = Entry("m", 1.0, result, planned=planned, **fields)
    return words(entry, Group("adult", "Adult", 3, ((entry,),)), "auc", style).mark


def test_numbers_have_the_digits_asked_for():
    assert number(0.87549, 0.0051, 3) == "0.875 ± 0.005"
    assert number(85652.4, 2724.0, 0) == "85652 ± 2724"
    assert number(0.5, None, 2) == "0.50"
    assert (level(0.5), level(1.0), level(math.inf)) == ("0.5", "1", "Non-Private")


def test_the_legend_explains_only_what_is_there():
    complete = tables(PLAIN, [measured(0.883), measured(0.8, "dp-ebm-classic-2021")])
    assert legend(complete, PLAIN) == [
        "Mean ± standard deviation over splits; the best of a row is bold."
    ]
    star = "*: the best of the methods at its epsilon."
    assert legend(complete, PLAIN, is_terminal=True)[0].endswith(star)
    unmarked = tables(PLAIN, [measured(0.883)])
    assert legend(unmarked, PLAIN)[0] == "Mean ± standard deviation over splits."
    assert "*" not in legend(unmarked, PLAIN, is_terminal=True)[0]
    said = "All numbers are measured; --compare adds those that the document prints."
    assert said in legend(complete, PLAIN, is_terminal=True)
    assert said not in legend(complete, COMPARE, is_terminal=True)
    own = tables(PLAIN, [measured(0.883, dataset="mine")])
    assert said not in legend(own, PLAIN, is_terminal=True)
    partial = "\n".join(legend(tables(PLAIN, [measured(0.883, splits=3)]), PLAIN))
    assert "[n/m]" in partial
    assert "verdict" not in partial
    compared = legend(tables(COMPARE, [measured(0.883)]), COMPARE)
    assert compared[1] == (
        "In brackets the published value and the verdict: ≈ equivalent, · not run."
    )
    (paper,) = tables(PLAIN, [measured(0.883)])
    assert heading(paper) == f"dp-ebm-2021, Table 2: {paper.title}"
    (unprinted,) = tables(PLAIN, [measured(0.883, dataset="mine")])
    assert heading(unprinted) == unprinted.title
    own = tables(COMPARE, [measured(0.883, dataset="mine")])
    assert legend(own, COMPARE) == legend(unmarked, PLAIN)
    assert "ledger" not in "\n".join(legend(complete, SPENT))


def test_an_entry_without_a_result_is_blank():
    (table,) = tables(PLAIN, [measured(0.883), measured(0.9, "ebm", math.inf, dataset="telco")])
    blank = words(table.groups[1].rows[0][0], table.groups[1], "auc", PLAIN)
    assert blank.measured == "0.900 ± 0.005"
    assert "| — |" in markdown_tables(
        tables(PLAIN, [measured(0.883), measured(0.8, "mine", 2.0)]), PLAIN
    )


def test_a_mark_says_what_keeps_an_entry_from_being_one_complete_result():
    gone = replace(RESULT, values={}, skipped=25)
    assert marked(RESULT) == ""
    assert marked(gone) == "[skipped]"
    assert marked(replace(gone, failed=1)) == "[0/25, 1 failed]"
    assert marked(replace(gone, skipped=0, failed=2)) == "[0/25, 2 failed]"
    assert marked(replace(gone, skipped=0)) == "[0/25]"
    assert marked(measured(0.8, splits=3)) == "[3/25]"
    assert marked(replace(measured(0.8, splits=3), skipped=22)) == "[3/25]"
    assert marked(None, clash=Clash((RESULT, RESULT))) == "[2 results]"
    assert marked(None) == ""


def test_a_note_of_a_verdict_is_a_mark_where_there_is_a_margin():
    assert marked(RESULT, COMPARE, verdict=JUDGED) == "[3 of 10 splits]"
    assert marked(RESULT, PLAIN, verdict=JUDGED) == ""
    assert marked(RESULT, COMPARE, verdict=replace(JUDGED, margin=None)) == ""


def test_a_mark_says_how_a_result_stands():
    bare = replace(RESULT, keeps_ledger=False)
    assert marked(bare) == "[unverified]"
    spent = replace(bare, spent_epsilon=0.87654, task=replace(RESULT.task, tuned=True))
    assert marked(spent) == "[unverified; tuned]"
    assert marked(spent, SPENT) == "[unverified; tuned; ε 0.877]"
    assert marked(RESULT, SPENT) == ""


def test_the_figures_of_a_verdict_get_a_digit_more_than_is_printed():
    found = verdict_figures(JUDGED)
    assert found == dict(
        zip(
            FIGURES,
            ("0.88 ± 0.014", "0.883 ± 0.005", "+0.003", "+2.3", "+0.001 to +0.005", "0.005",
             "25, 25"),
            strict=True,
        )
    )  # fmt: skip
    bare = verdict_figures(CellVerdict(PRINTED, Verdict.NOT_RUN))
    assert [name for name, value in bare.items() if value] == ["Published"]
    assert not any(verdict_figures(replace(JUDGED, result=measured(0.8, metric="x")))[name]
                   for name in ("Measured", "Difference", "n"))  # fmt: skip


@pytest.mark.parametrize(
    ("p", "said"), [(1e-10, "< 1e-9"), (1.1e-9, "1.1e-09"), (0.0312, "0.031"), (1.0, "1")]
)
def test_a_p_value_has_two_digits(p, said):
    assert p_in_words(p) == said


def test_what_cells_say_together_is_a_sentence():
    assert together_in_words(CheckReport([CellVerdict(PRINTED, Verdict.NOT_RUN)], {})) == []
    far = replace(JUDGED, comparison=replace(COMPARISON, z=4.0, p_equivalence=0.5))
    (first,) = together_in_words(CheckReport([JUDGED, far], {}))
    assert first.startswith("All cells together: sum of squares (normal scores) 11, expected 2 if ")
    assert first.endswith("; |z| > 3 in 1")


def test_what_is_left_without_the_deviations_is_said():
    far = replace(JUDGED, verdict=Verdict.WORSE)
    far = replace(far, comparison=replace(COMPARISON, z=-9.0, p_difference=1e-12))
    _, rest = together_in_words(CheckReport([JUDGED, JUDGED, far], {}))
    assert rest == "Without the deviation: 11, expected about 2 if nothing else differs"
    assert len(together_in_words(CheckReport([far], {}))) == 1  # nothing is left


def test_deviations_are_counted_by_what_is_known_of_their_causes():
    bare = replace(JUDGED, verdict=Verdict.WORSE)
    known, unknown = replace(bare, explanation="x"), replace(bare, explanation="y", is_unknown=True)
    assert causes_in_words(CheckReport([JUDGED], {})) == ""
    assert causes_in_words(CheckReport([known], {})) == "1 deviation: 1 explained"
    assert causes_in_words(CheckReport([known, known, unknown, bare], {})) == (
        "4 deviations: 2 explained, 1 reviewed with cause unknown, 1 not reviewed"
    )


def said(cells, style=PLAIN):
    return "\n".join(legend(tables(style, cells), style))


def test_the_legend_is_about_any_of_the_results():
    partial, other = measured(0.8, splits=3), measured(0.9, "ebm", math.inf)
    assert "[n/m]" in said([partial, other])
    assert "[n results]" not in said([partial, other])
    two = [measured(0.8), replace(measured(0.9), task=replace(measured(0.9).task, seed=9))]
    assert "[n results]: results of configs with different settings" in said([*two, other])
    spent = replace(measured(0.8), spent_epsilon=0.5)
    assert "[ε ...]" in said([spent, other], SPENT)
    assert "[ε ...]" not in said([spent, other])
    assert NO_LEDGER in said([replace(partial, keeps_ledger=False), other])
    assert "[tuned]" in said([replace(partial, task=replace(partial.task, tuned=True)), other])
    patients = replace(partial, task=replace(partial.task, unit="patient", rows_per_unit=2))
    assert "adult: Epsilon is per patient with at most 2 rows" in said([patients, other])
    assert "Epsilon is per" not in said([partial, other])


def test_private_rows_are_explained_once_below_the_tables():
    private = [
        measured(0.883, label, data_fingerprint=f"{PRIVATE_PREFIX}abc") for label in ("a", "b")
    ]
    assert legend(tables(PLAIN, private), PLAIN)[1:] == [
        "PRIVATE: exact scores of private rows; epsilon does not cover them: not for release."
    ]


def test_inconclusive_cells_are_counted_by_what_limits_them():
    limits = [Undecided(LimitedBy.OUR_SPLITS, n) for n in (40, 1279)]
    limits += [Undecided(limit) for limit in LimitedBy if limit is not LimitedBy.OUR_SPLITS]
    cells = [replace(JUDGED, verdict=Verdict.INCONCLUSIVE, undecided=one) for one in limits]
    assert undecided_in_words([JUDGED, *cells]) == (
        "inconclusive 5: 1 limited by the printed spread, 1 without a printed sd, "
        "1 with a difference too near the margin, 2 that up to 1,279 splits of ours would decide"
    )
    assert undecided_in_words([JUDGED]) == ""


def test_cells_that_were_not_run_in_full_are_counted_and_named():
    names = [("adult", "a"), ("adult", "a"), ("adult", "b"), ("Telco", "a")]
    cells = [
        CellVerdict(replace(PRINTED, dataset=data, method=method, epsilon=k + 1.0), Verdict.NOT_RUN)
        for k, (data, method) in enumerate(names)
    ]
    report = CheckReport([JUDGED, *cells, replace(cells[0], verdict=Verdict.INCOMPLETE)], {})
    assert unfinished_in_words(report) == (
        "not run: 4 cells, adult a (2), adult b, Telco a; incomplete: 1 cell, adult a"
    )
    assert unfinished_in_words(report, 1) == (
        "not run: 4 cells, adult a (2), and 2 more; incomplete: 1 cell, adult a"
    )
    assert unfinished_in_words(CheckReport([JUDGED], {})) == ""


def test_a_compared_table_says_what_limits_its_inconclusive_cells():
    lines = legend(tables(COMPARE, [measured(0.888)]), COMPARE)
    assert lines[-2].startswith("Inconclusive 1: 1 ")
    assert not any(
        "Inconclusive" in line for line in legend(tables(PLAIN, [measured(0.888)]), PLAIN)
    )
