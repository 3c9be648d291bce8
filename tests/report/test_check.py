""""""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from dprepro.judge.check import Again, CheckReport, check_documents
from dprepro.judge.claims import Outcome
from dprepro.judge.deviations import Deviation
from dprepro.judge.forensics import Judgement
from dprepro.judge.omnibus import ColumnState, ColumnVerdict, Omnibus
from dprepro.judge.rerun import compare_records
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.papers.document import load_documents
from dprepro.report.check import (
    render_again,
    render_cells,
    render_check,
    render_claims,
    render_rerun,
)
from dprepro.report.ci_formats import cases
from dprepro.report.rows import claim_row
from dprepro.results.folder import Results
from dprepro.results.margins import margins
from tests.report.claims import FAILED, NOISY, NOT_RUN, REPORT, ROUNDED
from tests.report.journals import cell, records, spread

PAPER = load_documents()["dp-ebm-2021"]


def shown(renderable, width=300):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(renderable)
    return console.export_text()


def report(*means, explained=(), splits=25):
    cells = [
        cell(spread(mean, 0.005, splits), epsilon=epsilon)
        for mean, epsilon in zip(means, (0.5, 1.0, 2.0), strict=False)
    ]
    entries = [
        Deviation(
            paper="dp-ebm-2021",
            tables="2",
            datasets="adult",
            methods="dp-ebm-gdp-2021",
            epsilons=epsilon,
            expected="worse",
            reason="the formula asks for more noise",
            evidence=[{"file": "README.md", "shows": "the table"}],
        )
        for epsilon in explained
    ]
    return check_documents([PAPER], Results(tuple(cells)), entries, margins())


def test_the_map_has_a_row_for_each_dataset_and_method_and_the_counts_add_up():
    text = shown(render_check(report(0.875, 0.95)))
    assert "dp-ebm-2021, Table 2" in text
    assert "dp-ebm-2021, Table 3" in text
    mapped = text.split("dp-ebm-2021, Table 2")[1]
    line = next(line for line in mapped.splitlines() if "dp-ebm-gdp-2021" in line)
    assert line.split()[1:] == ["≈", "↑", "·", "·", "·"]
    assert "184 cells: 1 equivalent, 1 better, 159 not run, 23 impossible" in text
    assert "Margin: AUROC 0.005; RMSE 2 %" in text


def test_of_two_metrics_the_deviation_is_on_the_map():
    paper = load_documents()["lazybb-2022"]
    printed = [c for c in paper.cells() if (c.table, c.epsilon) == ("5", 1.0)]
    values = {c.metric: (c.mean + (20 if c.metric == "n_features" else 0),) * 5 for c in printed}
    ran = cell(
        [0.0] * 5, label="lazybb-1r", epsilon=1.0, evaluation="test-set", test_share=0.0, delta=0.0
    )
    found = check_documents([paper], Results((replace(ran, values=values),)), [], margins())
    mapped = shown(render_check(found)).split("lazybb-2022, Table 5")[1]
    line = next(x for x in mapped.splitlines() if "lazybb-1r" in x)
    assert "↓" in line
    assert not {"≈", "?"} & set(line)


def test_cells_are_judged_together_and_by_columns():
    text = shown(render_check(report(0.875, 0.95)))
    assert "expected 2 if nothing differs (p < 1e-9); |z| > 3 in 1" in text
    assert "Columns that are different as a whole" in text
    nothing = shown(render_check(report()))
    assert "All cells together" not in nothing
    assert "different as a whole" not in nothing


def test_an_unexplained_deviation_is_shown_with_its_numbers():
    text = shown(render_check(report(0.8)))
    line = next(line for line in text.splitlines() if "-0.0750" in line)
    assert "0.875 ± 0.005" in line
    assert "0.8000 ± 0.0050" in line
    assert "0.0050" in line
    assert "worse" in line
    assert "deviations without an explanation: 1" in text


def test_explained_deviations_come_with_one_reason_for_all_their_cells():
    text = shown(render_check(report(0.8, 0.8, explained=[0.5, 1.0])))
    assert (
        "adult dp-ebm-gdp-2021 0.5, adult dp-ebm-gdp-2021 1: the formula asks for more noise"
        in text
    )
    assert (
        "Check passed for what was run: 2 of 161 cells judged (2 different); not run: 159 cells, "
        in text
    )
    assert "2 deviations: 2 explained." in text
    assert "Reviewed deviations" not in text


def test_what_was_looked_into_in_vain_is_not_called_explained():
    known, unknown = (replace(c, explanation="why") for c in report(0.8, 0.8).unexplained)
    unknown = replace(unknown, explanation="tried", is_unknown=True)
    text = only(known, unknown)
    words = "2 deviations: 1 explained, 1 reviewed with cause unknown."
    assert text.count(f"Check passed: 2 of 2 cells judged (2 different). {words}") == 2
    explained, rest = text.split("Reviewed deviations, cause unknown")
    assert "0.5: why" in explained.split("Explained deviations")[1]
    assert "1: tried" in rest
    assert "Check passed: 0 of 0 cells judged. No deviation." in only()


def test_the_outcome_stands_first_and_last():
    lines = shown(render_check(report(0.8))).splitlines()
    assert lines[0].startswith("Check failed: deviations without an explanation: 1")
    assert "Check failed: deviations without an explanation: 1" in " ".join(lines[-3:])
    titles = ("184 cells: ", "Deviations without an explanation", "dp-ebm-2021, Table 2")
    places = [next(i for i, x in enumerate(lines) if title in x) for title in titles]
    assert places == sorted(places), "what needs attention stands above the map of all cells"


def test_stale_explanations_are_named():
    text = shown(render_check(report(0.875, explained=[0.5])))
    assert "Stale explanation: dp-ebm-2021 table 2: adult, dp-ebm-gdp-2021, epsilon 0.5" in text


def test_requiring_all_says_so():
    text = shown(render_check(report(0.875), require_all=True))
    said = "Check failed, since --require-all was given: 1 of 161 cells judged (1 equivalent); "
    assert text.startswith(said)
    last = text.splitlines()[-1]
    assert last.startswith(said)
    assert last.endswith("adult dp-ebm-gdp-2021 (4), and 141 more.")
    assert "Not run: 160 cells, adult dpboost-2021 (5), adult dp-logistic (5), " in text
    assert "wine-white ebm." in text, "the body names all"


def test_inconclusive_cells_are_counted_by_what_limits_them_and_each_says_it():
    found = report(0.878)
    text = shown(render_check(found))
    assert "Inconclusive 1: 1 that up to 69 splits of ours would decide" in text
    assert "69 splits of ours would decide it" in shown(render_cells(found.verdicts))


def test_every_cell_can_be_shown_with_its_note():
    found = report(0.875, splits=4)
    text = shown(render_cells(found.verdicts))
    assert text.count("never released") == found.counts[Verdict.IMPOSSIBLE]
    assert "4 of 25 splits" in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_console_cuts_no_number(width):
    found = report(0.8)
    text = shown(render_check(found), width)
    for number in ("0.875 ± 0.005", "0.8000 ± 0.0050", "-0.0750", "0.0050", "worse"):
        assert f" {number} " in text
    assert max(map(len, text.splitlines())) <= width
    assert text.count("…") == 1  # the sign of an incomplete cell, in the legend
    assert "…" not in shown(render_cells(found.verdicts), width)


def test_no_cells_are_a_table_without_rows():
    assert "All cells" in shown(render_cells([]))


def test_a_rerun_shows_what_differs_and_what_is_missing():
    text = shown(render_rerun(compare_records(records([0.5, 0.6]), records([0.5001]))))
    assert "1 tasks have a committed record" in text
    assert "allowed 1e-06 (dp-ebm-gdp-2021)." in text
    assert "split 0: auc 0.5, committed 0.5001" in text
    assert "1 tasks have no finished committed record (adult, dp-ebm-gdp-2021)" in text
    assert "not compared" not in text


def test_a_rerun_names_what_is_not_compared():
    same = records([0.5], label="logistic")
    text = shown(render_rerun(compare_records(same, same)))
    assert "allowed none." in text
    assert "Finished, and not compared: logistic. Its solver stops before it converges" in text


def test_what_was_run_again_says_which_recorded_cells_differ():
    rerun = compare_records(records([0.5]), records([0.5]))
    assert "No cells are recorded beside the journals" in shown(render_again(Again(rerun, None, 0)))
    same = shown(render_again(Again(rerun, [], 0)))
    assert "Recorded cells: all cells and verdicts are as recorded." in same
    assert "Explanations that no longer apply" not in same
    assert "Explanations that no longer apply: 2; remove them." in shown(
        render_again(Again(rerun, [], 2))
    )
    lines = [f"cell {k}" for k in range(21)]
    text = shown(render_again(Again(rerun, lines, 0)))
    assert "Recorded cells: 21 differ." in text
    assert "cell 19\n  and 1 more\n" in text
    assert "cell 20" not in text
    assert "more" not in shown(render_again(Again(rerun, lines[:20], 0)))


def only(*cells, **fields):
    """Return a check of these cells alone."""
    return shown(render_check(CheckReport(cells, {}, **fields)))


def test_results_that_nothing_backs_or_that_were_tuned_are_named():
    good = cell(spread(0.8, 0.005))
    printed = next(c for c in PAPER.cells() if c.method == "dp-ebm-gdp-2021")
    judged = CellVerdict(printed, Verdict.INCONCLUSIVE, good)
    assert not {"Unverified", "Tuned"} & set(only(judged).replace("(", " ").split())
    bare = replace(judged, result=replace(good, keeps_ledger=False))
    assert f"so nothing says what it spends: {printed}." in only(judged, bare)
    tuned = replace(judged, result=replace(good, task=replace(good.task, tuned=True)))
    assert f"): {printed}." in only(judged, tuned)
    assert "Tuned (" in only(judged, tuned)


def test_a_different_column_has_a_tested_an_explained_or_no_known_cause():
    columns = [
        ColumnVerdict("p", "2", "adult", name, "auc", Omnibus((9.0,), 1, 1e-12),
                      ColumnState.DIFFERENT)
        for name in ("first", "second", "third")
    ]  # fmt: skip
    text = only(columns=columns, asked=columns[:1], untested=columns[1:2])
    for name, cause in (("first", "tested"), ("second", "not reviewed"), ("third", "explained")):
        (line,) = [line for line in text.splitlines() if f" {name} " in line]
        assert line.split() == ["p", "2", "adult", name, "1", "81", "<", "1e-9", *cause.split()]


@pytest.mark.parametrize(
    ("verdicts", "symbol"),
    [
        ((Verdict.INCONCLUSIVE, Verdict.NOT_RUN), Verdict.NOT_RUN),
        ((Verdict.INCOMPLETE, Verdict.INCONCLUSIVE), Verdict.INCOMPLETE),
        ((Verdict.WORSE, Verdict.NOT_RUN), Verdict.WORSE),
        ((Verdict.IMPOSSIBLE, Verdict.INCONCLUSIVE), Verdict.INCONCLUSIVE),
    ],
)
def test_of_several_verdicts_the_map_shows_what_needs_most_attention(verdicts, symbol):
    printed = next(iter(PAPER.cells()))
    cells = [CellVerdict(replace(printed, metric=f"m{k}"), v) for k, v in enumerate(verdicts)]
    ends = [x.split()[-1] for x in only(*cells).splitlines() if printed.method in x]
    assert [end for end in ends if end in {v.symbol for v in Verdict}] == [symbol.symbol]


def test_chosen_and_other_cells_are_counted_apart():
    lines = [
        " ".join(line.split()) for line in shown(render_check(report(0.875, 0.95))).splitlines()
    ]
    start = lines.index("Cells by whether their settings were chosen")
    rows = lines[start + 4 : start + 6]
    assert rows[0].startswith("dp-ebm-2021 chosen 113 1 ")
    assert rows[1].startswith("dp-ebm-2021 not chosen 71 ")
    nothing = check_documents([PAPER], Results(()), [], margins())
    assert "whether their settings were chosen" not in shown(render_check(nothing))


def test_columns_that_fail_where_they_were_not_chosen_are_named():
    place = ("dp-ebm-2021", "2", "adult", "dp-ebm-gdp-2021")
    judged = Judgement(place, "m", 2, "3", ("pol",), None, 9.0, Omnibus((3.0,), 0, 0.01), (25, 25))
    text = shown(render_check(replace(report(0.875), held_out=[judged])))
    assert "Fitted, not reproduced: dp-ebm-gdp-2021 on adult" in text
    assert "Fitted" not in shown(render_check(report(0.875)))


def shown_claims(renderable):
    # Narrow columns break lines; the words are what counts.
    console = Console(width=2000, file=io.StringIO(), record=True)
    console.print(renderable)
    return " ".join(console.export_text().split())


def test_a_claim_is_shown_with_its_words_figures_and_verdict():
    text = shown_claims(render_claims([FAILED]))
    assert "dp-ebm-2021, section 4.1: With privacy, DP-EBMs are ahead" in text
    assert "best in 35 of 35 settings" in text
    assert "behind on pol at ε=0.5" in text
    assert "does not hold" in text


def test_a_claim_that_needs_rounding_says_so():
    assert shown_claims(render_claims([ROUNDED])).startswith(
        "Claims holds after rounding: dp-ebm-2021"
    )


def test_a_claim_that_needs_noise_says_so_in_words_and_numbers():
    assert shown_claims(render_claims([NOISY])).startswith("Claims holds within noise: dp-ebm-2021")
    both = replace(NOISY, measured=replace(NOISY.measured, is_rounded=True))
    assert both.words == "holds within noise, after rounding"
    assert replace(NOISY, outcome=Outcome.NOT_RUN).words == "not run"
    row = claim_row(NOISY)
    assert (row["verdict"], row["verdict_in_words"]) == ("holds", "holds within noise")
    assert row["measured"]["is_noisy"]
    assert row["measured"]["allowed"] == {"ebm": (0.7367, None)}
    (case,) = [c for c in cases(replace(REPORT, claims=[NOISY])) if c.group.endswith(".claims")]
    assert case.text.startswith("holds within noise: ")


def test_a_check_shows_claims_and_fails_on_one_that_does_not_hold():
    text = shown_claims(render_check(replace(REPORT, claims=[FAILED])))
    assert "does not hold" in text
    assert "claims that do not hold: 1" in text
    assert "Check passed" in shown_claims(render_check(replace(REPORT, claims=[NOT_RUN])))


def test_a_stale_explanation_of_a_claim_is_named():
    text = shown_claims(render_check(replace(REPORT, stale_claims=[NOT_RUN])))
    assert "the claim best-in-all of dp-ebm-2021 is listed" in text
