"""A check in one screen: outcome, counts, and what needs attention first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from dprepro.judge.check import Again, CheckReport, LeftOut
from dprepro.judge.claims import Outcome
from dprepro.report.findings import (
    RECORD,
    Finding,
    advice,
    again_in_words,
    findings,
    findings_again,
    outcome_in_words,
)
from dprepro.report.tables import STYLES
from dprepro.runtime.terminal import Renderable, counted
from dprepro.runtime.text import shortened

MOST_LINES = 25
"""A screen; what is left out is counted, and one option away."""
# Of these a list may take, so that what needs attention has room below it.
_MOST_LISTED = 12
_LONGEST = 240


def outcome_style(passes: bool, is_partial: bool = False) -> str:
    """Return the style of an outcome, of a check that was run in part or in full."""
    if not passes:
        return "bold red"
    return "bold yellow" if is_partial else "bold green"


@dataclass(frozen=True)
class Screen:
    """A report of at most `MOST_LINES` lines, whatever it is about and however narrow it is.

    `head` and `foot` are shown in full. Of `listed` and `found`, those that have room are shown,
    and the others are counted.
    """

    head: Sequence[Text]
    listed: Sequence[Text]
    found: Sequence[Finding]
    foot: Sequence[Text]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines that have room."""

        def height(text: Text) -> int:
            return len(text.wrap(console, options.max_width))

        lines = [_line(one) for one in self.found]
        room = MOST_LINES - sum(map(height, (*self.head, *self.foot)))
        own = min(room - min(len(lines), room // 2), _MOST_LISTED)
        shown, used = _fitting(self.listed, own, height)
        more, _ = _fitting(lines, room - used, height)
        yield from (*self.head, *shown, *more, *self.foot)


def _line(found: Finding) -> Text:
    line = Text(f"{found.title}: ", style="bold red" if found.is_error else "yellow")
    return line.append(shortened(found.text, _LONGEST), style="not bold")


def _fitting(
    lines: Sequence[Text], room: int, height: Callable[[Text], int]
) -> tuple[list[Text], int]:
    """Return the first lines that have room, and how much they take; the last counts the rest."""
    used = 0
    for place, line in enumerate(lines):
        is_last = place == len(lines) - 1
        if used + height(line) > room - (not is_last):
            rest = Text(f"and {len(lines) - place} more: --details", style="dim")
            return [*lines[:place], rest], used + 1
        used += height(line)
    return list(lines), used


def render_short(
    report: CheckReport,
    require_all: bool = False,
    left_out: LeftOut | None = None,
    again: Again | None = None,
) -> Renderable:
    """Return a check in one screen, with what `--fast` found."""
    passes = report.passes(require_all)
    said = outcome_in_words(report, require_all)
    head = [Text(said, outcome_style(passes, bool(report.unfinished)))]
    found, foot = list(findings(report)), []
    if again is not None:
        head.append(Text(again_in_words(again), outcome_style(again.passes)))
        found += findings_again(again)
        foot += [Text(RECORD, style="dim")] if again.changed else []
    parts = {paper: report.of_paper(paper) for paper in report.papers}
    listed = [counted_in_words(paper, own) for paper, own in parts.items() if own.measured]
    idle = [paper for paper, own in parts.items() if not own.measured]
    if idle:
        cells = counted(sum(len(parts[paper].verdicts) for paper in idle), "cell")
        listed.append(Text(f"Nothing was run of {cells} of {', '.join(idle)}.", style="dim"))
    if said_next := advice(report):
        foot.append(Text(said_next, style="dim"))
    found.sort(key=lambda one: not one.is_error)
    return Screen(head, listed, found, [*foot, _details(report, left_out)])


def _details(report: CheckReport, left_out: LeftOut | None) -> Text:
    """Say what else there is, and which option shows it."""
    claims = [claim for claim in report.claims if claim.outcome is not Outcome.NOT_RUN]
    parts = [
        counted(len(of), noun)
        for of, noun in (
            (report.explained, "reviewed deviation"),
            (claims, "claim"),
            (report.notes, "note"),
        )
        if of
    ]
    also = f", {', '.join(parts)}" if parts else ""
    rest = ""
    if left_out is not None:
        rest = f" Left out, on other data or documents: {counted(left_out.cells, 'cell')} (--all)."
    return Text(
        f"--details shows a map of all cells{also}; --verbose every number; --paper, --config, "
        f"--dataset and --method a part.{rest}",
        style="dim",
    )


def counted_in_words(paper: str, report: CheckReport) -> Text:
    """Return the line of a document: its cells by verdict."""
    parts = [Text(f"{paper}, {counted(len(report.verdicts), 'cell')}: ", style="bold")]
    parts += [
        Text(f"{count} {verdict.value}", style=STYLES[verdict])
        for verdict, count in report.counts.items()
        if count
    ]
    return parts[0] + Text(", ").join(parts[1:])
