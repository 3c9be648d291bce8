"""How the fields of a table, and what stands around them, read in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprepro.judge.omnibus import FAR, Omnibus
from dprepro.judge.verdicts import CellVerdict, LimitedBy, Verdict
from dprepro.privacy.budget import whose_epsilon
from dprepro.privacy.guarantee_status import NO_LEDGER, AuthorsWord
from dprepro.report.layout import Entry, Group, ResultTable
from dprepro.results.result_cell import TUNED_NOTE, ResultCell
from dprepro.runtime.terminal import counted

if TYPE_CHECKING:
    from dprepro.judge.check import CheckReport
    from dprepro.judge.forensics import Judgement, Place

BEST = "*"
"""What marks the best of several numbers without colour."""

FIGURES = ("Published", "Measured", "Difference", "z", "95 % interval", "Margin", "n")
"""Headings of what `verdict_figures` gives."""

AUTHORS = "†"
"""What marks a method of one's own."""

_AFTER_AUDITS = {
    AuthorsWord.NOT_AUDITED: f"[{AUTHORS}] alone: not audited. `dprepro audit METHOD --output "
    "results/audit.json` audits it.",
    AuthorsWord.AUDITED: f"[{AUTHORS} audited]: an audit of that very code found no violation, "
    "which is not a proof.",
    AuthorsWord.REFUTED: f"[{AUTHORS} refuted]: an audit of that very code contradicts what it "
    "states. Such a result is never marked as the best of a row.",
}
# Of cells that were not run, those of so many methods are named where there is little room.
_FEW_METHODS = 4
# Smaller p-values are not told apart.
_SMALL = 1e-9


@dataclass(frozen=True)
class Style:
    """What to show: published values and verdicts beside the measured, and the spent epsilon.

    On a terminal, `spread` shows standard deviations where there is no room beside the mean, too.
    All numbers get so many `digits` after the point, by default those of the printed table.
    `caption` and `label` are those of a single table.
    """

    compare: bool = False
    spent_epsilon: bool = False
    spread: bool = False
    digits: int | None = None
    caption: str = ""
    label: str = ""


@dataclass(frozen=True)
class Words:
    """An entry in words: the measured number, marks on it, the published number, its verdict.

    `spent` is the spent epsilon where the style asks for it.
    """

    measured: str
    marks: tuple[str, ...]
    published: str
    verdict: Verdict | None
    is_best: bool
    spent: str = ""

    @property
    def mark(self) -> str:
        """All marks and the spent epsilon in brackets; empty where there is none."""
        found = "; ".join(filter(None, (*self.marks, self.spent)))
        return f"[{found}]" if found else ""


def words(entry: Entry, group: Group, metric: str, style: Style, has_spread: bool = True) -> Words:
    """Put an entry into words; numbers get the group's digits after the point.

    Without `has_spread` they are means alone.
    """
    result, verdict = entry.result, entry.verdict if style.compare else None
    measured = published = ""
    if result and result.splits(metric):
        sd = result.sd(metric) if has_spread else None
        measured = number(result.mean(metric), sd, group.decimals)
    if verdict:
        printed = verdict.published
        published = printed.in_print if has_spread else printed.mean_in_print
        if style.digits is not None:
            published = number(printed.mean, printed.std if has_spread else None, style.digits)
    marks = tuple(filter(None, (_progress(entry, metric, verdict), *_standing(result))))
    spent = ""
    if style.spent_epsilon and result and result.spent_epsilon is not None:
        spent = f"ε {result.spent_epsilon:.3g}"
    kind = verdict.verdict if verdict else None
    return Words(measured, marks, published, kind, entry.is_best, spent)


def _progress(entry: Entry, metric: str, verdict: CellVerdict | None) -> str:
    """Say what keeps an entry from being one complete result; empty where nothing does."""
    result = entry.result
    if entry.clash:
        return entry.clash.mark
    if result is None:
        return ""
    if not result.is_complete(metric, entry.planned):
        if result.skipped and not result.splits(metric) and not result.failed:
            return "skipped"
        failed = f", {result.failed} failed" if result.failed else ""
        return f"{result.splits(metric)}/{entry.planned}{failed}"
    return verdict.note if verdict and verdict.margin is not None else ""


def _standing(result: ResultCell | None) -> Iterator[str]:
    """Yield what a reader must know of the privacy and the parameters of a result."""
    if result is None:
        return
    if result.is_unverified:
        yield "unverified"
    if result.word is not None:
        yield AUTHORS if result.word is AuthorsWord.NOT_AUDITED else f"{AUTHORS} {result.word}"
    if result.is_tuned:
        yield "tuned"


def number(mean: float, sd: float | None, decimals: int) -> str:
    """Return ``mean ± sd`` with `decimals` digits after the point."""
    spread = "" if sd is None else f" ± {sd:.{decimals}f}"
    return f"{mean:.{decimals}f}{spread}"


def verdict_figures(cell: CellVerdict) -> dict[str, str]:
    """Return the figures of a verdict by their headings, empty where there are none.

    All but the published get a digit more than printed: rounding hides it. "n" is the number of
    splits, ours and the published ones.
    """
    printed, result, comparison = cell.published, cell.result, cell.comparison
    digits = printed.decimals + 1
    measured, difference, z, interval, splits = "", "", "", "", ""
    if result is not None and cell.measured is not None:
        measured = number(cell.measured, result.sd(printed.metric), digits)
        difference = f"{cell.difference:+.{digits}f}"
        splits = f"{result.splits(printed.metric)}, {cell.published_splits}"
    if comparison is not None:
        z = f"{comparison.z:+.1f}"
        interval = f"{comparison.low:+.{digits}f} to {comparison.high:+.{digits}f}"
    margin = "" if cell.margin is None else f"{cell.margin:.{digits}f}"
    values = (printed.in_print, measured, difference, z, interval, margin, splits)
    return dict(zip(FIGURES, values, strict=True))


def p_in_words(p_value: float) -> str:
    """Return a p-value with two digits, "< 1e-9" where it is smaller."""
    return "< 1e-9" if p_value < _SMALL else f"{p_value:.2g}"


def causes_in_words(report: CheckReport) -> str:
    """Count the deviations by what is known of their causes; empty where there is none.

    ``"18 deviations: 10 explained, 8 reviewed with cause unknown"``
    """
    counts = {
        "explained": len(report.understood),
        "reviewed with cause unknown": len(report.unknown),
        "not reviewed": len(report.unexplained),
    }
    total = sum(counts.values())
    parts = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"{total} deviation{'s' if total > 1 else ''}: {parts}" if total else ""


CHOSEN, NOT_CHOSEN = "chosen", "not chosen"
"""Whether the settings or rows of a column were chosen by looking at printed numbers."""
FITTED = "fitted, not reproduced"
"""Said of a column that agrees with print only where its settings were chosen."""


def chosen_in_words(place: Place, report: CheckReport) -> str:
    """Say what was chosen for a column, from how many settings; empty if nothing was."""
    choice = report.choices.get(place)
    if choice is None:
        return ""
    failed = f". {FITTED.capitalize()}" if place in report.fitted else ""
    return f"from {choice.selected_from} settings, by printed numbers: {choice.what}{failed}"


def fitted_in_words(report: CheckReport) -> list[str]:
    """Say of which columns the settings fail where they were not chosen; nothing if of none."""
    datasets: dict[str, list[str]] = {}
    for _, _, dataset, method in report.fitted:
        datasets.setdefault(method, []).append(dataset)
    found = "; ".join(f"{method} on {', '.join(own)}" for method, own in datasets.items())
    return [f"{FITTED.capitalize()}: {found}"] if found else []


def choice_rows(report: CheckReport) -> list[tuple[str, str, dict[Verdict, int]]]:
    """Return document, `CHOSEN` or `NOT_CHOSEN`, and the counts of all verdicts."""
    return [
        (paper, CHOSEN if is_chosen else NOT_CHOSEN, own.counts)
        for paper in report.papers
        for is_chosen, own in report.of_paper(paper).split_by_choice()
    ]


def outcome_in_words(found: Judgement) -> str:
    """Say whether a setting failed where it was not chosen."""
    return "fails" if found.fails else "not refuted"


def together_in_words(report: CheckReport) -> list[str]:
    """Say what the judged cells of a report say together; nothing where none was judged."""
    found = report.omnibus
    if found is None:
        return []
    return [
        f"All cells together: sum of squares (normal scores) {found.sum_of_squares:.0f}, expected "
        f"{found.cells} if nothing differs (p {p_in_words(found.p_value)}); "
        f"|z| > {FAR:g} in {found.far}",
        *_without_deviations(report, found),
        *fitted_in_words(report),
        *filter(None, [undecided_in_words(report.verdicts).capitalize()]),
    ]


def judged_in_words(report: CheckReport) -> str:
    """Count the cells that can be run by verdict, and name the first that were not.

    ``"161 of 161 cells judged (47 equivalent, 8 different, 106 inconclusive)"``
    """
    counts = {
        "equivalent": report.counts[Verdict.EQUIVALENT],
        "different": sum(cell.verdict.is_deviation for cell in report.verdicts),
        "inconclusive": report.counts[Verdict.INCONCLUSIVE],
    }
    found = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    possible = counted(report.judged + len(report.unfinished), "cell")
    said = f"{report.judged} of {possible} judged" + (f" ({found})" if found else "")
    return "; ".join(filter(None, [said, unfinished_in_words(report, _FEW_METHODS)]))


def unfinished_in_words(report: CheckReport, most: int | None = None) -> str:
    """Count the cells that were not run in full, and name them; empty where there is none.

    ``"not run: 6 cells, telco dp-ebm-gdp (5), adult ebm"``. Of several cells of a method the number
    stands in brackets.

    `most` methods are named, by default all, and the other cells are counted.
    """
    parts = []
    for verdict in (Verdict.NOT_RUN, Verdict.INCOMPLETE):
        found = [cell.published for cell in report.verdicts if cell.verdict is verdict]
        counts = Counter((cell.dataset, cell.method) for cell in found)
        named = list(counts.items())[:most]
        places = [
            f"{dataset} {method}{f' ({count})' if count > 1 else ''}"
            for (dataset, method), count in named
        ]
        left = len(found) - sum(count for _, count in named)
        places += [f"and {left} more"] if left else []
        if found:
            parts.append(f"{verdict.value}: {counted(len(found), 'cell')}, {', '.join(places)}")
    return "; ".join(parts)


def undecided_in_words(cells: Iterable[CellVerdict]) -> str:
    """Count inconclusive cells by what limits them; empty where there is none.

    ``"inconclusive 106: 55 limited by the printed spread, 51 that up to 312 splits would decide"``
    """
    found = [cell.undecided for cell in cells if cell.undecided]
    counts = Counter(one.limited_by for one in found)
    most = max((one.splits for one in found if one.splits), default=0)
    words = {
        LimitedBy.PRINTED_SPREAD: "limited by the printed spread",
        LimitedBy.NO_PRINTED_SD: "without a printed sd",
        LimitedBy.DIFFERENCE: "with a difference too near the margin",
        LimitedBy.OUR_SPLITS: f"that up to {most:,} splits of ours would decide",
    }
    parts = ", ".join(f"{counts[limit]} {said}" for limit, said in words.items() if counts[limit])
    return f"inconclusive {len(found)}: {parts}" if found else ""


def _without_deviations(report: CheckReport, found: Omnibus) -> list[str]:
    """Say what is left of the sum without the cells that differ; nothing where none does."""
    rest = report.omnibus_of_rest
    left_out = found.cells - (rest.cells if rest else 0)
    if rest is None or not left_out:
        return []
    which = "deviation" if left_out == 1 else f"{left_out} deviations"
    return [
        f"Without the {which}: {rest.sum_of_squares:.0f}, expected about {rest.cells} if nothing "
        "else differs"
    ]


def legend(
    tables: Sequence[ResultTable],
    style: Style,
    is_terminal: bool = False,
    published: str = "In brackets the published value and",
) -> list[str]:
    """Return the sentences below a table: what its marks mean, and why entries are missing.

    On a terminal a mark says which is the best, and standard deviations stand where there is room.
    Elsewhere `published` says where the published value stands.
    """
    entries = [(entry, table.metric.name) for table in tables for _, entry in table.entries]
    results = [entry.result for entry, _ in entries if entry.result]
    has_best = any(entry.is_best for entry, _ in entries)
    if is_terminal:
        where_room = "Mean over splits, ± standard deviation where there is room (--sd: always)."
        mean = "Mean ± standard deviation over splits." if style.spread else where_room
        lines = [f"{mean} {BEST}: the best of the methods at its epsilon." if has_best else mean]
    else:
        best = "; the best of a row is bold" if has_best else ""
        lines = [f"Mean ± standard deviation over splits{best}."]
    if is_terminal and not style.compare and any(table.paper for table in tables):
        lines.append("All numbers are measured; --compare adds those that the document prints.")
    if any(e.result and not e.result.is_complete(metric, e.planned) for e, metric in entries):
        lines.append("[n/m]: n of m splits have finished.")
    if any(entry.clash for entry, _ in entries):
        lines.append("[n results]: results of configs with different settings, see the notes.")
    lines += standing_legend(results, style)
    judged = {e.verdict.verdict for e, _ in entries if style.compare and e.verdict}
    if judged:
        symbols = ", ".join(f"{v.symbol} {v.value}" for v in Verdict if v in judged)
        place = "Below, in brackets, the published value; after ours" if is_terminal else published
        lines.append(f"{place} the verdict: {symbols}.")
        open_ones = undecided_in_words(e.verdict for e, _ in entries if e.verdict)
        lines += [f"{open_ones.capitalize()}."] if open_ones else []
    return [*lines, *notes_and_reasons(tables)]


def notes_and_reasons(tables: Sequence[ResultTable]) -> list[str]:
    """Return what the tables' own notes say, and why results are missing."""
    notes = [f"Note: {note}" for table in tables for note in table.notes]
    reasons = [
        f"{entry.label}: {message}"
        for table in tables
        for _, entry in table.entries
        if entry.result
        for message in entry.result.messages
    ]
    return [*dict.fromkeys(notes), *dict.fromkeys(reasons)]


def standing_legend(results: Sequence[ResultCell], style: Style) -> Iterator[str]:
    """Yield what marks on privacy and parameters of results mean, and whose epsilon it is."""
    if any(result.task.is_private for result in results):
        yield "PRIVATE: exact scores of private rows; epsilon does not cover them: not for release."
    if style.spent_epsilon and any(result.spent_epsilon is not None for result in results):
        yield "[ε ...]: the spent epsilon, which the answers of the ledger add up to."
    if any(result.is_unverified for result in results):
        yield (
            f"[unverified]: the method {NO_LEDGER}, so nothing says what it spends. Such a result "
            "is never marked as the best of a row."
        )
    if words := {result.word for result in results} - {None}:
        yield f"[{AUTHORS}]: a method of one's own: what it spends is its author's word."
        yield from (text for word, text in _AFTER_AUDITS.items() if word in words)
    units: dict[str, list[tuple[str, int]]] = {}
    for result in results:
        units.setdefault(result.dataset, []).append((result.task.unit, result.task.rows_per_unit))
    yield from (f"{data}: {said}" for data, own in units.items() if (said := whose_epsilon(own)))
    if any(result.is_tuned for result in results):
        yield f"[tuned]: {TUNED_NOTE}."


def author_in_words(mark: str) -> str:
    """Return what the mark of a method of one's own means."""
    word = next((w for w in AuthorsWord if mark == f"{AUTHORS} {w}"), AuthorsWord.NOT_AUDITED)
    after = _AFTER_AUDITS[word].partition(": ")[2].replace("`", "")
    return f"A method of one's own: what it spends is its author's word; {after}"


def heading(table: ResultTable, style: Style | None = None) -> str:
    """Return the table's title, with the document's table number; or the caption asked for."""
    if style is not None and style.caption:
        return style.caption
    return f"{table.paper}, Table {table.table}: {table.title}" if table.paper else table.title


def column_headings(table: ResultTable) -> list[str]:
    """Return the headings of all columns, those of the dataset and the level first."""
    return ["Dataset", "ε", *(column.title for column in table.columns)]
