import io
import json
import math
import re

import pandas as pd
import pytest
from rich.console import Console

from dprepro.published.document import load_documents
from dprepro.report.judge.verdicts import Verdict
from dprepro.report.layout.tables import build_tables
from dprepro.report.read.results import ResultCell, Results
from dprepro.report.write import tables as render
from dprepro.report.write.tables import Style, latex_escape, level, number
from tests.report.journals import cell, spread, task

DOCUMENTS = list(load_documents().values())
PLAIN, COMPARE, SPENT = Style(), Style(compare=True), Style(true_epsilon=True)


def measured(mean, label="dp-ebm-gdp", epsilon=1.0, splits=25, **fields):
    return cell(spread(mean, 0.005, splits), label=label, epsilon=epsilon, **fields)


CELLS = [
    measured(0.883),
    measured(0.8, "dp-ebm-classic"),
    measured(0.47, "dp-logistic", delta=0.0),
    measured(0.923, "ebm", math.inf),
    measured(0.839, dataset="telco", epsilon=4.0),
    measured(0.7, "mine_&_50%", splits=3),
    ResultCell(
        task("broken", 1.0), ("t",), {}, failed=2, planned=25, messages=("ValueError: a|b_c",)
    ),
    ResultCell(
        task("absent", 1.0), ("t",), {}, skipped=25, planned=25, messages=("not installed",)
    ),
]


def tables(style=PLAIN, cells=CELLS):
    return build_tables(Results(tuple(cells)), DOCUMENTS, compare=style.compare)


def shown(style=PLAIN, cells=CELLS, width=300):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(render.rich_tables(tables(style, cells), style))
    return console.export_text(clear=False), console.export_text(styles=True)


def markdown_grid(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_numbers_have_the_digits_asked_for():
    assert number(0.87549, 0.0051, 3) == "0.875 ± 0.005"
    assert number(85652.4, 2724.0, 0) == "85652 ± 2724"
    assert number(0.5, None, 2) == "0.50"
    assert (level(0.5), level(1.0), level(math.inf)) == ("0.5", "1", "Non-Private")


def test_rich_shows_values_marks_and_reasons():
    text, styled = shown()
    assert "0.883 ± 0.005" in text
    assert "0.700 ± 0.005 [3/25]" in text
    assert "[0/25, 2 failed]" in text
    assert "[skipped]" in text
    assert "broken: ValueError: a|b_c" in text
    assert "absent: not installed" in text
    assert re.search(r"\x1b\[1m0\.883", styled), "the best is bold"
    assert not re.search(r"\x1b\[1m0\.800", styled)


def test_rich_compares_below_each_value():
    text, _ = shown(COMPARE)
    assert "(0.883 ± 0.005) =" in text
    assert "(0.880 ± 0.006) ↓" in text
    assert "(0.558 ± 0.045) ·" in text
    legend = next(line for line in text.splitlines() if line.startswith("In brackets"))
    found = {v for v in Verdict if f"{v.symbol} {v.value}" in legend}
    judged = {
        e.verdict.verdict
        for t in tables(COMPARE)
        for g in t.groups
        for r in g.rows
        for e in r
        if e.verdict
    }
    assert found == judged
    assert Verdict.IMPOSSIBLE not in found


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_narrow_console_keeps_marks_verdicts_and_bold(width):
    text, styled = shown(COMPARE, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert all(f" {t.strip()}" in text for t in ("0.883 ± 0.005", "(0.880 ± 0.006) ↓", "[3/25]"))
    assert "[0/25, 2 failed]" in text
    assert re.search(r"\x1b\[1m0\.883", styled)


def test_names_are_no_markup():
    assert "[red]" in shown(PLAIN, [measured(0.7, "[red]")])[0]


def test_the_epsilon_really_spent_is_shown_on_request():
    spent = ResultCell(
        task(epsilon=0.5), ("t",), {"auc": (0.87, 0.88)}, planned=2, true_epsilon=0.4371
    )
    assert "ε 0.437" in shown(SPENT, [spent])[0]
    assert "recomposed from the ledger" in shown(SPENT, [spent])[0]
    assert "ε 0.437" not in shown(PLAIN, [spent])[0]


@pytest.mark.parametrize("style", [PLAIN, COMPARE])
def test_markdown_rows_have_as_many_fields_as_the_header(style):
    grid = markdown_grid(render.markdown_tables(tables(style), style))
    header, rule, *rows = grid
    assert header[:2] == ["Dataset", "ε"]
    assert set(rule) == {"---"}
    assert {len(row) for row in grid} == {len(header)}
    assert len(rows) == sum(len(g.rows) for t in tables(style) for g in t.groups)


def test_markdown_marks_best_incomplete_and_verdict():
    text = render.markdown_tables(tables(COMPARE), COMPARE)
    assert "| **0.883 ± 0.005** (0.883 ± 0.005, reproduced) |" in text
    assert "0.800 ± 0.005 (0.880 ± 0.006, worse)" in text
    assert "0.700 ± 0.005 [3/25]" in text
    assert r"ValueError: a\|b_c" in text


def test_latex_bolds_the_best_and_escapes_names():
    text = render.latex_tables(tables(), PLAIN)
    assert r"\textbf{0.883 $\pm$ 0.005}" in text
    assert r"mine\_\&\_50\%" in text
    assert text.count(r"\midrule") == 2


def test_latex_prints_published_rows_below():
    text = render.latex_tables(tables(COMPARE), COMPARE)
    assert r"{\footnotesize (0.883 $\pm$ 0.005) $=$}" in text
    assert r"{\footnotesize (0.880 $\pm$ 0.006) $\downarrow$}" in text


@pytest.mark.parametrize("character", list("&%$#_{}"))
def test_special_characters_are_escaped(character):
    assert latex_escape(f"a{character}b") == f"a\\{character}b"


def test_backslashes_are_escaped_once():
    assert latex_escape("a\\b~c^") == r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}"


@pytest.mark.parametrize("style", [PLAIN, COMPARE])
def test_csv_reads_back(style):
    frame = pd.read_csv(io.StringIO(render.csv_tables(tables(style), style)))
    frame = frame[frame.dataset == "adult"]
    gdp = frame[(frame.method == "dp-ebm-gdp") & (frame.epsilon == 1)]
    assert gdp["mean"].item() == pytest.approx(0.883)
    assert gdp.is_best.item()
    assert math.isinf(frame[frame.method == "ebm"].epsilon.item())
    broken = frame[frame.method == "broken"]
    assert (broken.failed.item(), broken["mean"].isna().item()) == (2, True)
    assert ("verdict" in frame) is style.compare


@pytest.mark.parametrize("style", [PLAIN, COMPARE])
def test_json_reads_back_to_the_same_numbers_as_csv(style):
    rows = json.loads(render.json_tables(tables(style), style))
    frame = pd.read_csv(io.StringIO(render.csv_tables(tables(style), style)))
    assert [row["method"] for row in rows] == list(frame.method)
    means = [math.nan if row["mean"] is None else row["mean"] for row in rows]
    assert means == pytest.approx(list(frame["mean"]), nan_ok=True)
    assert next(r for r in rows if r["method"] == "ebm")["epsilon"] is None


def test_the_legend_explains_only_what_is_there():
    complete = tables(PLAIN, [measured(0.883)])
    assert render.legend(complete, PLAIN) == [
        "Mean ± standard deviation over splits; the best of a row is bold."
    ]
    partial = "\n".join(render.legend(tables(PLAIN, [measured(0.883, splits=3)]), PLAIN))
    assert "[n/m]" in partial
    assert "verdict" not in partial
    assert "verdict" in "\n".join(render.legend(tables(COMPARE, [measured(0.883)]), COMPARE))
    own = tables(COMPARE, [measured(0.883, dataset="mine")])
    assert render.legend(own, COMPARE) == render.legend(complete, PLAIN)
    assert "ledger" not in "\n".join(render.legend(complete, SPENT))


def test_an_entry_without_a_result_is_blank():
    (table,) = tables(PLAIN, [measured(0.883), measured(0.9, "ebm", math.inf, dataset="telco")])
    blank = render.words(table.groups[1].rows[0][0], table.groups[1], "auc", PLAIN)
    assert blank.measured == "0.900 ± 0.005"
    assert "| — |" in render.markdown_tables(
        tables(PLAIN, [measured(0.883), measured(0.8, "mine", 2.0)]), PLAIN
    )
