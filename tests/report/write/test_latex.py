"""The LaTeX tables compile: read by a strict parser, and by a real engine where there is one."""

import re

import pytest
from pylatexenc.latexwalker import LatexWalkerParseError

from dprepro.papers.document import load_documents
from dprepro.report.layout.formatting import Style
from dprepro.report.layout.tables import build_tables
from dprepro.report.write.tables import latex_tables
from dprepro.results.folder import ResultCell, Results
from dprepro.runtime.text import latex as escaped
from tests.report import latex
from tests.report.journals import SPLITS, cell, spread, task
from tests.report.samples import COMPARE, PLAIN, measured
from tests.report.samples import tables as samples

PAPER = load_documents()["dp-ebm-2021"]
# What plain LaTeX and booktabs define, as far as the tables use it; `\\` and escapes included.
KNOWN = {
    *"\\&%$#_",
    "centering",
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


def tables(style):
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
    return latex_tables(tables(request.param), request.param)


def test_it_parses_and_every_row_fills_the_columns(text):
    nodes = latex.parse(text)
    tabulars = latex.environments(nodes, "tabular")
    assert len(tabulars) == len(latex.environments(nodes, "table")) == 3
    for tabular in tabulars:
        lengths = latex.row_lengths(tabular)
        assert len(lengths) > 1
        assert set(lengths) == {latex.columns(tabular)}


def test_it_uses_only_macros_that_are_defined(text):
    used = latex.macros(latex.parse(text))
    assert used <= KNOWN
    assert {"textbf", "pm", "toprule"} <= used


def test_no_row_end_takes_a_bracket_for_its_argument(text):
    assert "{[}3/25]" in text
    assert not re.search(r"\\\\\s*\[", text)


def test_plain_latex_needs_no_input_encoding(text):
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert "\n".join(lines).isascii()


def test_a_real_engine_compiles_it(tmp_path):
    text = "\n".join(latex_tables(tables(style), style) for style in STYLES)
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
    text = latex_tables(tables(STYLES[0]), STYLES[0])
    assert good in text
    with pytest.raises(LatexWalkerParseError):
        latex.parse(text.replace(good, bad, 1))


def test_a_field_too_many_is_noticed():
    text = latex_tables(tables(STYLES[0]), STYLES[0]).replace(" & ", " & & ", 1)
    (tabular, *_) = latex.environments(latex.parse(text), "tabular")
    assert latex.row_lengths(tabular)[0] == latex.columns(tabular) + 1


def test_latex_bolds_the_best_and_escapes_names():
    text = latex_tables(samples(), PLAIN)
    assert r"\textbf{0.883 $\pm$ 0.005}" in text
    assert r"mine\_\&\_50\%" in text
    assert text.count(r"\midrule") == 2


def test_latex_prints_published_rows_below():
    text = latex_tables(samples(COMPARE), COMPARE)
    assert r"{\footnotesize (0.883 $\pm$ 0.005) $\approx$}" in text
    assert r"{\footnotesize (0.880 $\pm$ 0.006) $\downarrow$}" in text


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
