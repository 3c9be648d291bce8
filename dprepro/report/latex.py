r"""Tables of results in LaTeX, with the package booktabs alone, for papers of two columns.

A table stands in one column where it fits, else over both (``table*``). Methods stand beside each
other or, where they are too many, below each other. What fits no page is split. Marks are
footnotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dprepro.judge.verdicts import Verdict
from dprepro.privacy.guarantee_status import NO_LEDGER
from dprepro.report.formatting import (
    AUTHORS,
    Style,
    Words,
    author_in_words,
    heading,
    notes_and_reasons,
    standing_legend,
    words,
)
from dprepro.report.layout import Group, ResultTable
from dprepro.results.margins import level
from dprepro.results.result_cell import TUNED_NOTE
from dprepro.runtime.text import latex, one_line

_SYMBOLS = {
    Verdict.EQUIVALENT: r"$\approx$",
    Verdict.BETTER: r"$\uparrow$",
    Verdict.WORSE: r"$\downarrow$",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INCOMPLETE: r"$\ldots$",
    Verdict.NOT_RUN: r"$\cdot$",
    Verdict.IMPOSSIBLE: r"$\times$",
}
# Points: a column and the text of a paper of two columns (ACM, IEEE), what stands between two
# columns of a table, and signs at 8 points.
_COLUMN, _TEXT, _GAP = 238.0, 504.0, 6.0
_WIDTHS = {".": 2.4, ",": 2.4, " ": 2.9, "±": 6.7, "(": 3.3, ")": 3.3, "-": 2.9, "m": 7.1, "w": 6.2}
_DIGIT, _CAPITAL = 4.3, 6.4
# The sizes of letters to try, as shares of 8 points.
_SIZES = {1.0: r"\footnotesize", 0.88: r"\scriptsize"}
_MOST_ROWS = 46
"""So many rows a page has room for, with a caption and notes."""
_EMPTY = "--"


def latex_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return the tables in LaTeX; what LaTeX needs, and the tables' own notes, are comments."""
    said = (r"\usepackage{booktabs} is all that these tables need.", *notes_and_reasons(tables))
    comments = "\n".join(f"% {one_line(line)}" for line in said)
    labels: list[str] = []
    floats: list[str] = []
    for table in tables:
        label = style.label or _label(table)
        labels.append(label)
        again = labels.count(label)
        floats += _floats(table, style, label if again == 1 else f"{label}-{again}")
    return "\n\n".join([comments, *floats])


def _label(table: ResultTable) -> str:
    place = f"{table.paper}-table-{table.table}" if table.paper else "results"
    return "tab:" + re.sub(r"[^A-Za-z0-9]+", "-", f"{place}-{table.metric.name}").strip("-")


@dataclass
class _Row:
    """A row: its first fields, then entries; None is a field without one.

    A row without entries is the name of a dataset.
    """

    first: tuple[str, ...]
    entries: tuple[Words | None, ...]


@dataclass
class _Grid:
    """A table as rows and columns. `blocks` have a line above each; `heads` are plain text."""

    first: tuple[str, ...]
    heads: tuple[str, ...]
    blocks: list[list[_Row]]
    # The marks of columns and rows that all of their entries have.
    shared: Mapping[str, tuple[str, ...]]

    @property
    def width(self) -> float:
        """The width in points."""
        rows = [row for block in self.blocks for row in block]
        first = [
            max(_width(head), *(_width(row.first[k]) for row in rows))
            for k, head in enumerate(self.first)
        ]
        own = [self.column_width(k) for k in range(len(self.heads))]
        return sum(first) + sum(own) + _GAP * (len(first) + len(own) - 1)

    def column_width(self, place: int) -> float:
        """Return the width of a column of entries in points: long headings are broken."""
        entries = [row.entries[place] for block in self.blocks for row in block if row.entries]
        longest = max((_width(word) for word in self.heads[place].split()), default=0.0)
        return max(longest, *(_entry_width(entry) for entry in entries if entry), 10.0)


def _width(text: str) -> float:
    return sum(_WIDTHS.get(sign, _CAPITAL if sign.isupper() else _DIGIT) for sign in text)


def _entry_width(entry: Words) -> float:
    published = f"({entry.published}) M" if entry.verdict else ""
    return max(_width(entry.measured), 0.875 * _width(published), _width(entry.spent))


@dataclass
class _Notes:
    """The footnotes of one table, by what they say, in the order in which they are met."""

    signs: dict[str, str] = field(default_factory=dict)

    def sign(self, marks: Iterable[str]) -> str:
        """Return the superscript of marks; empty without any."""
        for mark in marks:
            self.signs.setdefault(_in_words(mark), _letter(len(self.signs)))
        found = dict.fromkeys(self.signs[_in_words(mark)] for mark in marks)
        return f"$^{{{','.join(found)}}}$" if found else ""


def _letter(number: int) -> str:
    more, place = divmod(number, 26)
    return (_letter(more - 1) if more else "") + chr(ord("a") + place)


def _in_words(mark: str) -> str:
    """Return what a mark means, as a footnote says it."""
    if splits := re.fullmatch(r"(\d+)/(\d+)(?:, (\d+) failed)?", mark):
        failed = f"; {splits[3]} failed" if splits[3] else ""
        return f"{splits[1]} of {splits[2]} splits have finished{failed}."
    if re.fullmatch(r"\d+ results", mark):
        return f"{mark} of configs with different settings."
    if mark.startswith(AUTHORS):
        return author_in_words(mark)
    return {
        "skipped": "Not run here.",
        "unverified": f"Unverified: the method {NO_LEDGER}; never marked as the best.",
        "tuned": f"{TUNED_NOTE[0].upper()}{TUNED_NOTE[1:]}.".replace("`", ""),
    }.get(mark, f"{mark[:1].upper()}{mark[1:]}.")


def _floats(table: ResultTable, style: Style, label: str) -> Iterator[str]:
    said = {
        id(entry): words(entry, group, table.metric.name, style) for group, entry in table.entries
    }
    grids, room, size = _fitting(table, said)
    pages = [page for grid in grids for page in _pages(grid, style)]
    for number, page in enumerate(pages, 1):
        part = f"Part {number} of {len(pages)}." if len(pages) > 1 else ""
        own = f"{label}-{number}" if number > 1 else label
        yield _float(table, page, style, own, part, "table" if room == _COLUMN else "table*", size)


def _fitting(table: ResultTable, said: Mapping[int, Words]) -> tuple[list[_Grid], float, str]:
    """Return the grid that a column has room for, else one that a page has, else parts of one.

    With it the room in points, and the size of letters.
    """
    grids = [_by_levels(table, said), _by_methods(table, said)]
    for room, share in ((_COLUMN, 1.0), (_TEXT, 1.0), (_TEXT, 0.88)):
        for grid in grids:
            if share * grid.width <= room:
                return [grid], room, _SIZES[share]
    narrowest = min(grids, key=lambda grid: grid.width)
    return list(_in_parts(narrowest)), _TEXT, _SIZES[1.0]


def _in_parts(grid: _Grid) -> Iterator[_Grid]:
    """Yield a grid in parts of so many columns as a page has room for."""
    places = list(range(len(grid.heads)))
    while places:
        most = next((n for n in range(len(places), 1, -1)
                     if _columns(grid, places[:n]).width <= _TEXT), 1)  # fmt: skip
        yield _columns(grid, places[:most])
        places = places[most:]


def _columns(grid: _Grid, places: Sequence[int]) -> _Grid:
    blocks = [
        [_Row(row.first, tuple(row.entries[k] for k in places if row.entries)) for row in block]
        for block in grid.blocks
    ]
    return replace(grid, heads=tuple(grid.heads[k] for k in places), blocks=blocks)


def _by_levels(table: ResultTable, said: Mapping[int, Words]) -> _Grid:
    """Return a row for each dataset and epsilon, and a column for each method."""
    blocks = [
        [
            _Row(
                (group.title if place == 0 else "", _level(row[0].epsilon)),
                tuple(said[id(entry)] for entry in row),
            )
            for place, row in enumerate(group.rows)
        ]
        for group in table.groups
    ]
    heads = tuple(column.title for column in table.columns)
    return _Grid(("Dataset", "ε"), heads, blocks, _shared(table, said))


def _level(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else level(epsilon)


def _by_methods(table: ResultTable, said: Mapping[int, Words]) -> _Grid:
    """Return a row for each method that has an entry, by dataset, and a column for each epsilon."""
    levels = sorted({row[0].epsilon for group in table.groups for row in group.rows})
    blocks = [_methods_of(table, group, levels, said) for group in table.groups]
    heads = tuple(f"ε = {_level(e)}" for e in levels)
    return _Grid(("Method",), heads, blocks, _shared(table, said))


def _methods_of(
    table: ResultTable, group: Group, levels: Sequence[float], said: Mapping[int, Words]
) -> list[_Row]:
    at = {row[0].epsilon: row for row in group.rows}
    rows = [_Row((group.title,), ())]
    for place, column in enumerate(table.columns):
        entries = tuple(said[id(at[e][place])] if e in at else None for e in levels)
        if any(entry and (entry.measured or entry.marks or entry.verdict) for entry in entries):
            rows.append(_Row((column.title,), entries))
    return rows


def _shared(table: ResultTable, said: Mapping[int, Words]) -> dict[str, tuple[str, ...]]:
    """Return, by heading, the marks that all private numbers of a method have: at least two."""
    found = {}
    for place, column in enumerate(table.columns):
        own = [
            set(said[id(row[place])].marks)
            for group in table.groups
            for row in group.rows
            if said[id(row[place])].measured and math.isfinite(row[place].epsilon)
        ]
        if len(own) > 1:
            found[column.title] = tuple(sorted(set.intersection(*own)))
    return found


def _pages(grid: _Grid, style: Style) -> Iterator[_Grid]:
    """Yield the grid in parts that a page has room for, with whole blocks if it can."""
    most = _MOST_ROWS // 2 if style.compare or style.spent_epsilon else _MOST_ROWS
    page: list[list[_Row]] = []
    for block in grid.blocks:
        for start in range(0, len(block), most):
            piece = block[start : start + most]
            if start and not block[0].entries:  # the dataset is named on each page
                piece = [block[0], *piece]
            elif start:
                piece[0] = replace(piece[0], first=(block[0].first[0], *piece[0].first[1:]))
            if page and sum(map(len, page)) + len(piece) > most:
                yield replace(grid, blocks=page)
                page = []
            page.append(piece)
    if page:
        yield replace(grid, blocks=page)


def _float(
    table: ResultTable, grid: _Grid, style: Style, label: str, part: str, kind: str, size: str
) -> str:
    notes = _Notes()
    caption = style.caption or latex(caption_of(table))
    heads = [_head(grid, place, notes) for place in range(len(grid.heads))]
    lines = [
        rf"\begin{{{kind}}}[t]",
        r"\centering",
        rf"\caption{{{' '.join(filter(None, (caption, part)))}}}",
        rf"\label{{{label}}}",
        r"\smallskip",
        size,
        rf"\setlength{{\tabcolsep}}{{{_GAP / 2:g}pt}}",
        rf"\begin{{tabular}}{{{'l' * len(grid.first)}{'c' * len(grid.heads)}}}",
        r"\toprule",
        _line([*map(latex, grid.first), *heads]),
    ]
    for block in grid.blocks:
        lines.append(r"\midrule")
        for row in block:
            lines += _lines_of(row, grid, notes)
    lines += [r"\bottomrule", r"\end{tabular}"]
    below = [f"$^{{{sign}}}$ {latex(said)}" for said, sign in notes.signs.items()]
    below += _said_below(table, style)
    if below:
        lines += [r"\par\smallskip", r"\parbox{\linewidth}{\scriptsize\raggedright"]
        lines += [rf"{line}\par" for line in below] + ["}"]
    return "\n".join([*lines, rf"\end{{{kind}}}"])


def _head(grid: _Grid, place: int, notes: _Notes) -> str:
    """Return a heading, in several lines where it is wider than its column."""
    head, room = grid.heads[place], grid.column_width(place)
    lines: list[str] = []
    for word in head.split():
        if lines and _width(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    text = r"\\".join(map(latex, lines)) + notes.sign(grid.shared.get(head, ()))
    return rf"\shortstack{{{text}}}" if len(lines) > 1 else text


def _lines_of(row: _Row, grid: _Grid, notes: _Notes) -> Iterator[str]:
    if not row.entries:
        yield _line([rf"\textit{{{latex(row.first[0])}}}", *("" for _ in grid.heads)])
        return
    is_method = grid.first == ("Method",)
    named = row.first[-1] if is_method else ""
    first = list(map(latex, row.first))
    first[-1] += notes.sign(grid.shared.get(named, ()))
    yield _line([*first, *(
        _measured(entry, grid.shared.get(named or head, ()), notes)
        for entry, head in zip(row.entries, grid.heads, strict=True)
    )])  # fmt: skip
    small = [_below(entry) for entry in row.entries]
    if any(small):
        yield _line([*("" for _ in row.first), *small])


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _measured(entry: Words | None, shared: Sequence[str], notes: _Notes) -> str:
    if entry is None:
        return _EMPTY
    number = latex(entry.measured) or _EMPTY
    number = rf"\textbf{{{number}}}" if entry.is_best else number
    marks = [mark for mark in entry.marks if mark not in shared or not entry.measured]
    return number + notes.sign(marks)


def _below(entry: Words | None) -> str:
    """Return the published number with its verdict, and the spent epsilon, in small letters."""
    if entry is None:
        return ""
    published = f"({latex(entry.published)}) {_SYMBOLS[entry.verdict]}" if entry.verdict else ""
    text = " ".join(filter(None, (published, latex(entry.spent))))
    return rf"{{\scriptsize {text}}}" if text else ""


def caption_of(table: ResultTable) -> str:
    """Say what a table shows: metric, which way is better, how many splits, what bold means."""
    metric = table.metric
    better = "higher" if metric.higher_is_better else "lower"
    title = (table.title if table.paper else heading(table)).rstrip(".")
    said = [title if "is better" in title else f"{title}; {better} is better"]
    found = [entry for _, entry in table.entries if entry.result or entry.verdict]
    results = [entry.result for entry in found if entry.result]
    splits = sorted({result.splits(metric.name) for result in results} - {0})
    if splits:
        span = f"{splits[0]} to {splits[-1]}" if len(splits) > 1 else f"{splits[0]}"
        over = f"over {span} split{'s' if splits[-1] > 1 else ''}"
        said.append(f"Mean ± standard deviation {over}" if splits[-1] > 1 else f"Values {over}")
    if any(entry.is_best for _, entry in table.entries):
        said.append("Bold: the best of the methods shown, by dataset and ε")
    if any(math.isinf(entry.epsilon) for entry in found):
        said.append("ε = ∞: without privacy")
    return ". ".join(said) + "."


def _said_below(table: ResultTable, style: Style) -> list[str]:
    """Return what stands below the footnotes: of published numbers, of private and grouped rows."""
    entries = [entry for _, entry in table.entries]
    results = [entry.result for entry in entries if entry.result]
    said = [line for line in standing_legend(results, style) if not line.startswith("[")]
    found = [latex(line) for line in said]
    judged = {e.verdict.verdict for e in entries if style.compare and e.verdict}
    if judged:
        signs = ", ".join(f"{_SYMBOLS[v]} {v.value}" for v in Verdict if v in judged)
        of = latex(f"Table {table.table} of {table.paper}")
        found.append(f"In brackets what {of} prints, and our verdict: {signs}.")
    if style.spent_epsilon and any(r.spent_epsilon is not None for r in results):
        found.append(latex("ε below a number: what its answers add up to, by the ledger."))
    return found
