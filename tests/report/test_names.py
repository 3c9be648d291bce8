"""Names of any content come out of every writer as themselves, as other parsers read them."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import unicodedata
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import pytest
import yaml
from markdown_it import MarkdownIt
from matplotlib.figure import Figure
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from rich.cells import cell_len

from dprepro.cli.cite import entry
from dprepro.privacy.ledger import Ledger
from dprepro.release.codebook import Codebook, Entry
from dprepro.release.columns import read_columns
from dprepro.release.new_card import new_card, scalar
from dprepro.report.formatting import Style
from dprepro.report.latex import latex_tables
from dprepro.report.ledgers import ledger_in_full
from dprepro.report.rows import csv_tables, json_tables
from dprepro.report.tables import markdown_tables, rich_tables
from dprepro.runtime.terminal import BareTable, PlainConsole, aligned_list, below
from dprepro.runtime.text import csv_table, json_text, latex, markdown, plain, shell
from dprepro.runtime.yaml_files import read_yaml
from tests.report import latex as reading
from tests.report.samples import measured, tables

MARKS = [*"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"]
ODD = [
    "a|b", r"a\|b", "a\\", "||", "|", "<script>alert(1)</script>", "</td></tr>", "<!-- x", "a<b>c",
    "&lt;&amp;", "=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "'=1", "''=1", "'a", "-0.5",
    "+5", "1e5", "-", "--", "---", "a--b---c", "''a''", "``a``", "?`!`", "<<a>>", ",,a", "- a",
    "+ a", "1. a", "12) a", "# a", "> a", "* a", "***", "===", "[red]a[/]", "[bold", "[link=h://x]y[/link]",
    ":smile:", ":warning: a", "[a](b)", "![a](b)", "[a]: b", "**a**", "__a__", "~~a~~", "`a`",
    "$x^2$", "$$", r"\frac{1}{2}", r"\input{/etc/passwd}", "%s %d", "{0} {x}", "${HOME}", "$(id)",
    "a;rm -rf /", "a'b\"c", "yes", "null", "~", "1", "0x1", "2026-01-01", "a: b", "a #b", "&a *b",
    "!!python/x", "  padded  ", "two  blanks", "tab\tthere", "line\nbreak", "cr\r\nlf",
    "a\u2028b: c", "a\u2029b", "a\x85b", "nbsp\xa0b", "\x1b[31mred", "\x1b]0;title\x07", "\x9b2J",
    "bell\x07", "back\x08", "\x7f", "over\u202ewrite\u202c", "\u2066iso\u2069", "עברית",
    "שלום עולם (1)", "العربية", "日本語の名前", "naïve façade", "Ωμέγα ε² ± …",
    "\U0001f469\u200d\U0001f467 family", "e\u0301", "\ufeffbom", "x" * 500,
    "word " * 100, "日" * 250,
]  # fmt: skip
NAMES = list(dict.fromkeys([*ODD, *(f"a{m}b" for m in MARKS), *(f"{m}ab{m}" for m in MARKS)]))


def line(name: str) -> str:
    """Return what a reader is to see of a name in one line: controls as Python writes them."""
    return seen(" ".join(name.split()))


def steers(sign: str) -> bool:
    turns = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    kind, way = unicodedata.category(sign), unicodedata.bidirectional(sign)
    return kind in {"Cc", "Cs", "Zl", "Zp"} or way in turns or sign == "\ufeff"


def seen(name: str) -> str:
    return "".join(
        sign.encode("unicode_escape").decode() if steers(sign) and sign not in "\n\t" else sign
        for sign in name
    )


class Cells(HTMLParser):
    """The text of each cell, item and heading of HTML, and the tags there were."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag in {"td", "th", "li", "h3", "p"}:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data


def html_of(text: str) -> Cells:
    return Cells(MarkdownIt("commonmark").enable("table").enable("strikethrough").render(text))


def of_name(name: str, style: Style | None = None) -> Any:
    """Return tables of results whose method and dataset have the name."""
    cells = [measured(0.8, label=name, dataset=name), measured(0.7, label="other", dataset=name)]
    return tables(style or Style(), cells)


def drawn(part: Any, width: int = 80) -> str:
    console = PlainConsole(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined]


# Commands of LaTeX itself that the parser does not know, or prints as a sign above a letter.
COMMANDS = {
    "textless": "<", "textgreater": ">", "textbar": "|", "textbraceleft": "{",
    "textbraceright": "}", "textasciicircum": "^", "textasciigrave": "`", "texttt": "%s",
}  # fmt: skip


def printed(text: str) -> str:
    """Return what LaTeX prints."""
    known = get_default_latex_context_db()
    macros = [MacroTextSpec(name, sign) for name, sign in COMMANDS.items()]
    known.add_context_category("ours", prepend=True, macros=macros)
    text = text.replace(r"\textsuperscript{2}", "²")
    said = LatexNodes2Text(math_mode="text", latex_context=known).latex_to_text(text)
    return said.replace("ɛ", "ε").strip()


@pytest.mark.parametrize("name", NAMES)
def test_markdown_shows_it_in_tables_lists_and_headings(name: str) -> None:
    text = markdown(name)
    table = f"| {text} | b |\n| --- | --- |\n| {text} | {text} |\n"
    page = f"### {text}\n\n{text}\n\n- {text}\n\n{table}"
    found = html_of(page)
    shown = [part.strip() for part in found.texts if part.strip()]
    wanted = line(name) or None
    assert shown == [wanted, wanted, wanted, wanted, "b", wanted, wanted]
    assert found.tags == {"h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}


def test_tables_of_results_in_markdown_have_a_cell_for_each_field() -> None:
    for name in ("a|b", "[x](y) <b>", "*a* `b", "line\nbreak|"):
        found = html_of(markdown_tables(of_name(name), Style()))
        shown = [part.strip() for part in found.texts]
        assert shown.count(line(name)) >= 2, "its column and its rows"
        assert not found.tags & {"a", "b", "em", "code", "script"}


@pytest.mark.parametrize("name", NAMES)
def test_latex_prints_it(name: str) -> None:
    text = latex(name)
    assert printed(text) == line(name)
    assert text.isascii() == all(sign.isascii() or sign in "ε²±…" for sign in line(name))
    assert "\n" not in text


@pytest.mark.parametrize("name", ["a|b&c", "[opt]", "*", "% gone", r"\end{table}", "}{", "a\nb"])
def test_tables_of_results_in_latex_have_as_many_fields_as_columns(name: str) -> None:
    text = latex_tables(of_name(name), Style())
    (tabular,) = reading.environments(reading.parse(text), "tabular")
    assert set(reading.row_lengths(tabular)) == {reading.columns(tabular)}
    assert not re.search(r"\\\\\s*[\[*]", text)


def test_csv_holds_it_and_no_formula() -> None:
    text = csv_table([{"name": name, "number": -0.5} for name in NAMES])
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert rows[0] == ["name", "number"]
    for name, (cell, number) in zip(NAMES, rows[1:], strict=True):
        assert float(number) == -0.5
        assert re.sub("^'(?='*[=+\\-@\t\r\n])", "", cell) == name or cell == name
        is_number = re.fullmatch(r"[-+]?[\d.]+(e\d+)?", cell)
        assert is_number or cell[:1] not in {"=", "+", "-", "@", "\t", "\r"}
    (row,) = csv.DictReader(io.StringIO(csv_tables(of_name("=1+1")[-1:], Style())).readlines()[:2])
    assert row["method"] == row["dataset"] == "'=1+1"


def test_the_apostrophe_of_csv_can_be_taken_away() -> None:
    cells = [row["name"] for row in _read(csv_table([{"name": name} for name in NAMES]))]
    assert len(set(cells)) == len(NAMES)
    guarded = {cell for cell in cells if re.match("'+[=+\\-@]", cell)}
    assert {"'=1+1", "''=1", "'''=1", "'@SUM(A1)", "'--"} <= guarded
    assert "-0.5" in cells
    assert "'a" in cells


def _read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_json_holds_it_and_steers_nothing() -> None:
    text = json_text(NAMES)
    assert json.loads(text) == NAMES
    assert not any(steers(sign) for sign in text.replace("\n", ""))
    assert "日本語" in text
    assert json.loads(json_tables(of_name("a\u202eb\x9b"), Style()))[0]["method"] == "a\u202eb\x9b"


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_of_80_columns_shows_it_whole(name: str) -> None:
    bare = BareTable(["name"], ["value"], "Title")
    bare.add_row(name, "1.25")
    ledger = Ledger(1.0, 1e-6, "zero-out", assumed_public=[name])
    shown = [
        drawn(rich_tables(of_name(name), Style())),
        drawn(bare),
        drawn(below(name, bare)),
        drawn(ledger_in_full(ledger, name, f" on {name}")),
        "\n".join(aligned_list([[name, "a"], ["b", name]], 80)),
    ]
    letters = "".join(seen(name).split())
    for text in shown:
        assert not any(steers(sign) for sign in text if sign != "\n")
        assert letters[:3] in "".join(text.split())
        for sign in set(letters):
            assert "".join(text.split()).count(sign) >= letters.count(sign)
    for text in shown[:4]:
        assert max(map(cell_len, text.splitlines())) <= 80


def test_yaml_holds_it_as_a_text(tmp_path: Path) -> None:
    for name in NAMES:
        assert yaml.safe_load(f"{scalar(name)}: {scalar(name)}") == {name: name}, name


def test_a_new_card_is_yaml_whatever_columns_and_codebook_say(tmp_path: Path) -> None:
    controls = re.compile(r"[\x00-\x1f\x7f-\x9f\ufeff]")
    # Headings that are numbers or missing values are refused: such a line can be a row.
    texts = [name for name in NAMES if not re.fullmatch(r"[-+]?[\d.exx-]+|null", name)]
    names = [name for name in texts if not controls.search(name) and name.strip() == name]
    data = tmp_path / "rows [1] #2: a.csv"
    with data.open("w", newline="", encoding="utf-8") as file:
        rows = [names, *([number] * len(names) for number in ("1,5", "2,5"))]
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    said = "a\u2028b: c\nd: [\x85e"
    entries = {"a|b": Entry("numeric", description=said), names[5]: Entry("drop", description=said)}
    book = Codebook(entries)
    card = tmp_path / "card.yaml"
    card.write_text(new_card(data, read_columns(data), card, book).text, encoding="utf-8")
    values = read_yaml(card).values
    assert sorted([*values["features"], *values["drop"]]) == sorted(names)


def test_a_field_of_bibtex_ends_where_its_text_ends() -> None:
    for name in NAMES:
        text = entry("misc", "key", [("title", name), ("note", "the end")])
        assert text.count("{") == text.count("}")
        title, _ = text.split("},\n  note = {the end}\n}")
        inner = title.removeprefix("@misc{key,\n  title = {")
        depth = [inner[:k].count("{") - inner[:k].count("}") for k in range(len(inner))]
        assert min(depth, default=0) >= 0
        assert printed(inner) == line(name)


def test_a_shell_reads_it_as_one_word() -> None:
    script = f"printf '%s\\0' {shell(*NAMES)}"
    done = subprocess.run(["sh", "-c", script.encode()], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == NAMES


@pytest.mark.filterwarnings("ignore:Glyph")  # the font lacks it, and draws a box
def test_a_picture_shows_it() -> None:
    names = [name for name in NAMES if "\n" not in name and name.strip() == name]
    for name in names:
        figure = Figure(figsize=(1, 1))
        figure.text(0, 0, plain(name))
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            file = io.StringIO()
            figure.savefig(file, format="svg")
        found = ElementTree.fromstring(file.getvalue()).iter("{http://www.w3.org/2000/svg}text")
        assert ["".join(one.itertext()) for one in found] == [seen(name)]
