"""The LaTeX tables compile: read by a strict parser, and by a real engine where there is one."""

import io
import re
from dataclasses import replace

import pytest
from pylatexenc.latexwalker import LatexWalkerParseError
from rich.console import Console

from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import load_documents
from dprepro.report.formatting import Style
from dprepro.report.latex import latex_tables
from dprepro.report.layout import build_tables
from dprepro.report.tables import markdown_tables, rich_tables
from dprepro.results.folder import ResultCell, Results
from dprepro.runtime.text import latex as escaped
from tests.report import latex
from tests.report.journals import SPLITS, cell, spread, task
from tests.report.samples import CELLS, COMPARE, PLAIN, SPENT, measured, tables
from tests.report.samples import tables as samples


def shown(style=PLAIN, cells=CELLS, width=300):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(rich_tables(tables(style, cells), style))
    return console.export_text(clear=False), console.export_text(styles=True)


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
    lines = text.splitlines()
    assert "0.883 ± 0.005*≈" in text, "the best has a star, then comes the verdict"
    assert "0.800 ± 0.005 ↓" in text
    place = next(line for line in lines if "0.883 ± 0.005*≈" in line)
    below = lines[lines.index(place) + 1]
    assert below[place.index("0.883") :].startswith("(0.883 ± 0.005)")
    assert "(0.558 ± 0.045)" in text
    legend = next(line for line in lines if line.startswith("Below, in brackets"))
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
    assert all(f" {t}" in text for t in ("0.883*≈", "0.800 ↓", "(0.880)", "[3/25]"))
    assert "[0/25, 2 failed]" in text
    assert re.search(r"\x1b\[1m0\.883", styled)


def test_many_methods_are_rows_and_few_are_columns():
    many = shown(width=80)[0].splitlines()
    heads = [line.split() for line in many if "ε" in line and not line.startswith("Mean")]
    assert heads[0][:3] == ["Adult-Income", "ε", "1"]
    assert [line.split()[0] for line in many if "0.883 ± 0.005*" in line] == ["DPEBM-GDP"]
    places = [line.split()[0] for line in many if line.strip()]
    assert places.index("DPEBM-GDP") < places.index("—") < places.index("mine_&_50%")
    few = shown(cells=CELLS[:2], width=80)[0].splitlines()
    assert next(line.split() for line in few if "Dataset" in line)[:2] == ["Dataset", "ε"]
    assert next(line.split()[0] for line in few if "0.883" in line) == "Adult-Income"


def test_a_method_without_a_result_on_a_dataset_has_no_row():
    telco = shown(width=80)[0].split("Telco-Churn")[1]
    assert "DPEBM-GDP" in telco
    assert "mine_" not in telco.split("Mean over")[0]


def test_standard_deviations_stand_where_there_is_room_or_on_request():
    cells = [measured(0.8 + k / 100, epsilon=eps) for k, eps in enumerate((0.5, 1, 2, 4, 8))]
    cells += [measured(0.7, f"own-{k}") for k in range(4)]
    assert "0.800 ± 0.005" in shown(cells=cells, width=120)[0]
    narrow = shown(cells=cells, width=70)[0]
    assert "± 0" not in narrow
    assert "0.800 " in narrow
    assert "(--sd: always)" in " ".join(narrow.split())
    asked = shown(replace(PLAIN, spread=True), cells, width=70)[0]
    assert "0.800 ± 0.005" in asked
    assert "Mean ± standard deviation over splits. *" in " ".join(asked.split())


def test_points_stand_below_each_other():
    cells = [measured(mean, f"own-{k}") for k, mean in enumerate((0.5, 1.25, 10.5, 0.25, 0.75))]
    cells.append(measured(0.6, "own-0", epsilon=2.0))
    text = shown(cells=cells, width=80)[0].split("Mean over")[0]
    lines = [line for line in text.splitlines() if line.startswith(" own-")]
    assert len(lines) == 5
    assert len({line.index(".") for line in lines}) == 1


def test_names_are_no_markup():
    assert "[red]" in shown(PLAIN, [measured(0.7, "[red]")])[0]


def test_the_epsilon_really_spent_is_shown_on_request():
    spent = ResultCell(
        task(epsilon=0.5), ("t",), {"auc": (0.87, 0.88)}, planned=2, spent_epsilon=0.4371
    )
    assert "ε 0.437" in shown(SPENT, [spent])[0]
    assert "spent epsilon, which the answers of the ledger" in shown(SPENT, [spent])[0]
    assert "ε 0.437" not in shown(PLAIN, [spent])[0]


LADDER = [
    measured(0.8, epsilon=epsilon, dataset=dataset)
    for dataset in ("adult", "telco")
    for epsilon in (0.5, 1.0, 2.0)
]


def test_a_dataset_is_named_in_its_first_row_and_set_apart_from_the_next():
    lines = [line.split() for line in shown(PLAIN, LADDER)[0].splitlines()]
    first = next(i for i, line in enumerate(lines) if line[:2] == ["Adult-Income", "0.5"])
    assert [line[:2] for line in lines[first : first + 7]] == [
        ["Adult-Income", "0.5"], ["1", "0.800"], ["2", "0.800"], [],
        ["Telco-Churn", "0.5"], ["1", "0.800"], ["2", "0.800"],
    ]  # fmt: skip


PAPER = load_documents()["dp-ebm-2021"]
# What plain LaTeX and booktabs define, as far as the tables use it; `\\` and escapes included.
KNOWN = {
    *"\\&%$#_",
    "centering",
    "label",
    "smallskip",
    "setlength",
    "tabcolsep",
    "shortstack",
    "par",
    "parbox",
    "linewidth",
    "raggedright",
    "scriptsize",
    "textit",
    "infty",
    "dagger",
    "caption",
    "toprule",
    "midrule",
    "bottomrule",
    "textbf",
    "footnotesize",
    "pm",
    "approx",
    "varepsilon",
    "uparrow",
    "downarrow",
    "ldots",
    "cdot",
    "times",
    "textbackslash",
    "textasciitilde",
    "textasciicircum",
    "textsuperscript",
    "textbraceleft",
    "textbraceright",
}
STYLES = [Style(), Style(compare=True), Style(compare=True, spent_epsilon=True)]


def latex_of(style):
    """Return both printed tables and one of odd names, with gaps, failures and skips."""
    cells = [
        cell(
            spread(c.mean, c.std, SPLITS if c.epsilon > 0.5 else 3),
            c.metric,
            dataset=c.dataset,
            label=c.method,
            epsilon=c.epsilon,
        )
        for c in PAPER.cells()
        if c.dataset != "pol" and (c.dataset, c.method) != ("adult", "dpboost-2021")
    ]
    odd = {"dataset": r"50%_of $a&b# {c}~^\d…", "label": r"mine_&_50%"}
    cells.append(cell(spread(0.5, 0.1), **odd))
    cells.append(ResultCell(task(**{**odd, "label": "broken"}), ("x",), {}, failed=2, planned=3))
    return build_tables(Results(tuple(cells)), [PAPER], compare=style.compare)


@pytest.fixture(params=STYLES, ids=str)
def text(request):
    return latex_tables(latex_of(request.param), request.param)


def test_it_parses_and_every_row_fills_the_columns(text):
    nodes = latex.parse(text)
    tabulars = latex.environments(nodes, "tabular")
    floats = [*latex.environments(nodes, "table"), *latex.environments(nodes, "table*")]
    assert len(tabulars) == len(floats) >= 3
    for tabular in tabulars:
        lengths = latex.row_lengths(tabular)
        assert len(lengths) > 1
        assert set(lengths) == {latex.columns(tabular)}


def test_it_uses_only_macros_that_are_defined(text):
    used = latex.macros(latex.parse(text))
    assert used <= KNOWN
    assert {"textbf", "pm", "toprule"} <= used


def test_no_row_end_takes_a_bracket_for_its_argument(text):
    assert not re.search(r"\\\\\s*\[", text)


def test_plain_latex_needs_no_input_encoding(text):
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert "\n".join(lines).isascii()


def test_a_real_engine_compiles_it(tmp_path):
    text = "\n".join(latex_tables(latex_of(style), style) for style in STYLES)
    pdf = latex.compile_with_an_engine(text, tmp_path)
    if pdf is None:
        pytest.skip(f"none of {', '.join(latex.ENGINES)} is installed; the parser has read it")
    assert pdf.stat().st_size > 1000


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (r"\end{tabular}", ""),
        (r"\textbf{", r"\textbf"),
        (r" $\pm$ ", r" $\pm "),
        (r"\end{table}", r"\end{tabular}"),
    ],
)
def test_the_parser_refuses_broken_tables(good, bad):
    text = latex_tables(latex_of(STYLES[0]), STYLES[0])
    assert good in text
    with pytest.raises(LatexWalkerParseError):
        latex.parse(text.replace(good, bad, 1))


def test_a_field_too_many_is_noticed():
    text = latex_tables(latex_of(STYLES[0]), STYLES[0]).replace(" & ", " & & ", 1)
    (tabular, *_) = latex.environments(latex.parse(text), "tabular")
    assert latex.row_lengths(tabular)[0] == latex.columns(tabular) + 1


def test_latex_bolds_the_best_and_escapes_names():
    text = latex_tables(samples(), PLAIN)
    assert r"\textbf{0.883 $\pm$ 0.005}" in text
    assert r"mine\_\&\_50\%" in text
    assert text.count(r"\midrule") == 2


def test_latex_prints_published_rows_below():
    text = latex_tables(samples(COMPARE), COMPARE)
    assert r"{\scriptsize (0.883 $\pm$ 0.005) $\approx$}" in text
    assert r"{\scriptsize (0.880 $\pm$ 0.006) $\downarrow$}" in text


def test_marks_are_footnotes_and_one_of_a_whole_column_stands_at_its_head():
    cells = [measured(0.7, splits=3), measured(0.8, "dp-logistic", epsilon=4.0)]
    text = latex_tables(samples(PLAIN, cells), PLAIN)
    (row,) = [line for line in text.splitlines() if "0.700" in line]
    assert r"0.700 $\pm$ 0.005$^{a}$" in row
    assert "[" not in row
    assert r"$^{a}$ 3 of 25 splits have finished.\par" in text
    few = [measured(0.7, epsilon=e, splits=3) for e in (1.0, 2.0)]
    both = latex_tables(samples(PLAIN, few), PLAIN)
    assert both.count("$^{a}$") == 2, "once at the head, once below"
    assert r"0.700 $\pm$ 0.005 \\" in both


def test_a_caption_says_metric_direction_splits_and_what_bold_means():
    two = [measured(0.883), measured(0.8, "dp-logistic")]
    text = latex_tables(samples(PLAIN, two), PLAIN)
    (caption,) = re.findall(r"\\caption\{(.*)\}", text)
    for said in (
        "AUROC",
        "higher is better",
        r"Mean $\pm$ standard deviation over 25 splits",
        "Bold",
    ):
        assert said in caption
    assert r"\label{tab:dp-ebm-2021-table-2-auc}" in text
    own = replace(PLAIN, caption=r"On $x$ \cite{a}.", label="tab:x")
    named = latex_tables(samples(own, two), own)
    assert r"\caption{On $x$ \cite{a}.}" in named
    assert r"\label{tab:x}" in named


def test_many_methods_stand_below_each_other_and_no_part_is_wider_or_longer_than_a_page():
    labels = [f"method {k}" for k in range(21)]
    cells = [
        measured(0.8, label, epsilon, dataset=data)
        for label in labels for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0) for data in ("a", "b", "c")
    ]  # fmt: skip
    nodes = latex.parse(latex_tables(samples(PLAIN, cells), PLAIN))
    tabulars = latex.environments(nodes, "tabular")
    assert len(tabulars) == 2
    assert {latex.columns(tabular) for tabular in tabulars} == {6}
    assert all(len(latex.row_lengths(tabular)) < 50 for tabular in tabulars)
    few = latex.parse(latex_tables(samples(PLAIN, cells[:10]), PLAIN))
    assert latex.environments(few, "table")


@pytest.mark.parametrize("character", list("&%$#_"))
def test_special_characters_are_escaped(character):
    assert escaped(f"a{character}b") == f"a\\{character}b"


def test_backslashes_are_escaped_once():
    assert escaped("a\\b~c^") == r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}"


def test_a_dataset_is_named_in_its_first_row_and_published_numbers_have_their_own():
    cells = [measured(0.8, epsilon=epsilon) for epsilon in (0.5, 1.0)]
    lines = latex_tables(samples(PLAIN, cells), PLAIN).splitlines()
    first = lines.index(r"\midrule") + 1
    assert lines[first : first + 3] == [
        r"Adult-Income & 0.5 & 0.800 $\pm$ 0.005 \\", r" & 1 & 0.800 $\pm$ 0.005 \\", r"\bottomrule"
    ]  # fmt: skip
    compared = latex_tables(samples(COMPARE, cells), COMPARE)
    assert r" &  & " in compared
    own = [measured(0.8, dataset="mine")]
    alone = latex_tables(samples(COMPARE, own), COMPARE).splitlines()
    assert len(alone[alone.index(r"\midrule") + 1 : alone.index(r"\bottomrule")]) == 1


def markdown_grid(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("style", [PLAIN, COMPARE])
def test_markdown_rows_have_as_many_fields_as_the_header(style):
    grid = markdown_grid(markdown_tables(tables(style), style))
    header, rule, *rows = grid
    assert header[:2] == ["Dataset", "ε"]
    assert set(rule) == {"---"}
    assert {len(row) for row in grid} == {len(header)}
    assert len(rows) == sum(len(g.rows) for t in tables(style) for g in t.groups)


def test_markdown_marks_best_incomplete_and_verdict():
    text = markdown_tables(tables(COMPARE), COMPARE)
    assert "| **0.883 ± 0.005** (0.883 ± 0.005, equivalent) |" in text
    assert "0.800 ± 0.005 (0.880 ± 0.006, worse)" in text
    assert r"0.700 ± 0.005 \[3/25\]" in text
    assert r"ValueError: a\|b\_c" in text


def test_every_row_has_dataset_and_level():
    cells = [measured(0.8, epsilon=epsilon) for epsilon in (0.5, 1.0)]
    assert [row[:2] for row in markdown_grid(markdown_tables(tables(PLAIN, cells), PLAIN))[2:]] == [
        ["Adult-Income", "0.5"], ["Adult-Income", "1"]
    ]  # fmt: skip
