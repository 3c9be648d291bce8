"""Results held against a baseline, for readers, for programs and as CI services read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from dprepro.judge.baseline import BaselineReport, Compared, place
from dprepro.judge.verdicts import Verdict
from dprepro.report.ci_formats import Case, markdown_outcome
from dprepro.report.comparing import decimals_of, shown_p
from dprepro.report.findings import Finding
from dprepro.report.short import Screen, outcome_style
from dprepro.report.tables import STYLES
from dprepro.report.written_tables import written_tables
from dprepro.results.folder import ResultCell
from dprepro.results.margins import level
from dprepro.runtime.terminal import (
    Renderable,
    Stacked,
    StackedColumn,
    below,
    counted,
    stacked_table,
)
from dprepro.runtime.text import in_short

_FEW = 5
_NOTES = (
    "difference: now minus before, the mean over the splits of both, with its 95 % interval by the "
    "paired t test of `dprepro compare`.",
    "equivalent: two one-sided t tests at 5 % show that the difference lies within the margin. "
    "better, worse: it is not, and p < 0.05, adjusted for all cells (Holm). inconclusive: neither "
    "is shown; more splits tell more. Without any spread, a difference is what it is.",
)


def outcome_of_baseline(report: BaselineReport) -> str:
    """Return how the check ended, in a line."""
    same = sum(cell.is_same for cell in report.cells)
    told = [f"{count} {verdict.value}" for verdict, count in report.counts.items() if count]
    said = f"{counted(len(report.cells), 'cell')} compared"
    said += f": {', '.join(told)}" if told else ""
    said += f" ({same} with the same scores)" if same else ""
    for count, what in (
        (len(report.unpaired), "cannot be compared"),
        (report.new, "new"),
        (len(report.gone), "without a result now"),
        (len(report.failing), "with fits that newly fail"),
    ):
        said += f"; {count} {what}" if count else ""
    if report.changed_code:
        said += f"; the code of {counted(len(report.changed_code), 'method')} has changed since"
    ended = "passed" if report.passes else "failed"
    return f"Check {ended} against {report.baseline}. {said}."


def figures_of(cell: Compared) -> str:
    """Return the figures of a cell in a line, and what else changed."""
    name, test = cell.pair.metric.name, cell.test
    digits = decimals_of(test)
    before, now = (one.mean(name) for one in (cell.pair.second, cell.pair.first))
    said = [
        f"{cell.pair.metric.title} {now:,.{digits}f}, was {before:,.{digits}f}",
        f"difference {test.mean:+,.{digits}f}",
    ]
    if test.p is None:
        said.append("the same on every split")
    else:
        said += [
            f"95 % interval {test.low:+,.{digits}f} to {test.high:+,.{digits}f}",
            f"p {shown_p(cell.p_holm)}",
        ]
    said.append(f"margin {cell.margin:.3g}")
    return "; ".join([", ".join(said), *cell.changed])


def findings_of_baseline(report: BaselineReport) -> Iterator[Finding]:
    """Yield what needs attention: first what the check fails for."""
    for cell in report.worse:
        yield Finding(True, f"worse: {place(cell.pair.first)}", figures_of(cell))
    for found, splits in report.failing:
        yield Finding(True, f"newly fails: {place(found)}", _failing_in_words(found, splits))
    of_configs: dict[str, list[ResultCell]] = {}
    for lost in report.gone:
        of_configs.setdefault(", ".join(lost.journals), []).append(lost)
    for config, gone in of_configs.items():
        for found in gone if len(gone) <= _FEW else ():
            yield Finding(True, f"no result now: {place(found)}", f"{report.baseline} has one")
        if len(gone) > _FEW:
            text = f"{counted(len(gone), 'cell')}, among them {place(gone[0])}"
            yield Finding(True, f"no result now: config {config}", text)
    for one in report.changed_code:
        yield Finding(False, f"changed code: {one.method}", one.in_words)
    for unpaired in report.unpaired:
        yield Finding(False, f"not compared: {place(unpaired.cell)}", unpaired.reason)
    open_cells = [c for c in report.cells if c.verdict is Verdict.INCONCLUSIVE]
    if open_cells:
        places = [place(cell.pair.first) for cell in open_cells]
        shown = "; ".join(places[:_FEW])
        more = f"; and {len(places) - _FEW} more" if len(places) > _FEW else ""
        text = f"neither equivalent nor different, more splits tell more: {shown}{more}"
        yield Finding(False, "inconclusive", text)
    changed = [cell for cell in report.cells if cell.changed and cell.verdict is not Verdict.WORSE]
    for cell in changed[:_FEW]:
        text = f"{'; '.join(cell.changed)} ({cell.verdict.value})"
        yield Finding(False, f"other settings: {place(cell.pair.first)}", text)
    if len(changed) > _FEW:
        yield Finding(False, "other settings", f"{len(changed) - _FEW} more cells")
    if report.versions:
        yield Finding(False, "other versions", "; ".join(report.versions))


def _failing_in_words(cell: ResultCell, splits: Sequence[int]) -> str:
    why = f": {cell.messages[0]}" if cell.messages else ""
    noun = "split" if len(splits) == 1 else "splits"
    shown = in_short([str(split) for split in splits])
    return f"finished before, and not now: {noun} {shown}{why}"


def screen_of_baseline(report: BaselineReport) -> Renderable:
    """Return the check in one screen."""
    head = Text(outcome_of_baseline(report), outcome_style(report.passes))
    better = [cell for cell in report.cells if cell.verdict is Verdict.BETTER]
    listed = [
        Text(f"better: {place(cell.pair.first)}: ", style=STYLES[Verdict.BETTER]).append(
            figures_of(cell), style="default"
        )
        for cell in better
    ]
    foot = Text("--details shows a table of all cells.", style="dim")
    return Screen([head], listed, list(findings_of_baseline(report)), [foot])


def details_of_baseline(report: BaselineReport) -> Renderable:
    """Return a table of all cells, and what needs attention."""
    return below(
        *_tables(report),
        *(Text(f"{found.title}: {found.text}") for found in findings_of_baseline(report)),
        *(Text(note, style="dim") for note in _NOTES),
        Text(outcome_of_baseline(report), outcome_style(report.passes)),
    )


def _tables(report: BaselineReport) -> list[Stacked]:
    return [_table(metric, report) for metric in dict.fromkeys(c.pair.metric for c in report.cells)]


def _table(metric: object, report: BaselineReport) -> Stacked:
    cells = [cell for cell in report.cells if cell.pair.metric == metric]
    digits = [decimals_of(cell.test) for cell in cells]
    both = list(zip(cells, digits, strict=True))
    first = cells[0].pair.metric

    def means(which: int) -> list[str]:
        sides = [((cell.pair.second, cell.pair.first)[which], n) for cell, n in both]
        return [f"{side.mean(first.name):,.{n}f}" for side, n in sides]

    columns = [
        StackedColumn("Dataset", [cell.pair.dataset for cell in cells]),
        StackedColumn("Method", [cell.pair.first.task.label for cell in cells]),
        StackedColumn("ε", [level(cell.pair.epsilon) for cell in cells]),
        StackedColumn("before", means(0), "right"),
        StackedColumn("now", means(1), "right"),
        StackedColumn("difference", [_difference(c, n) for c, n in both], "right"),
        StackedColumn("verdict", [
            (Text(cell.verdict.value, STYLES[cell.verdict]),) for cell in cells
        ]),
    ]  # fmt: skip
    better = "higher" if first.higher_is_better else "lower"
    return stacked_table(f"{first.title} ({better} is better)", columns, 3)


def _difference(cell: Compared, digits: int) -> tuple[Text, ...]:
    """Return the mean difference, and its interval where there is a spread."""
    test = cell.test
    mean = Text(f"{test.mean:+,.{digits}f}")
    if test.p is None:
        return (mean,)
    return mean, Text(f"({test.low:+,.{digits}f} to {test.high:+,.{digits}f})")


def markdown_of_baseline(report: BaselineReport, details: bool) -> str:
    """Return the check for ``$GITHUB_STEP_SUMMARY``; `details` adds every cell."""
    found = list(findings_of_baseline(report))
    parts = list(markdown_outcome(outcome_of_baseline(report), report.passes, found))
    if details:
        parts.append(written_tables(_tables(report), _NOTES, "markdown"))
    return "\n\n".join(parts)


def cases_of_baseline(report: BaselineReport) -> Iterator[Case]:
    """Yield a test case for each cell, a suite for each config."""
    found: list[Case] = []
    for cell in report.cells:
        verdict, words = cell.verdict, figures_of(cell)
        failure = words if verdict is Verdict.WORSE else ""
        found.append(_case(cell.pair.first, cell.pair.metric.name, verdict.value, words, failure))
    found += [
        _case(cell, "fits", "", "", _failing_in_words(cell, splits))
        for cell, splits in report.failing
    ]
    found += [_case(cell, "result", "", "", "no result now") for cell in report.gone]
    found += [_case(one.cell, "result", "", "", "", one.reason) for one in report.unpaired]
    yield from sorted(found, key=lambda case: case.suite)


def _case(
    cell: Any, what: str, words: str, text: str, failure: str = "", skipped: str = ""
) -> Case:
    return Case(
        cell.journals[0],
        f"{cell.journals[0]}.{cell.dataset}",
        f"{cell.task.label}, ε {level(cell.task.epsilon)}, {what}",
        ": ".join(filter(None, (words, text))),
        failure=failure,
        skipped=skipped,
    )


def json_of_baseline(report: BaselineReport) -> dict[str, Any]:
    """Return the check as what strict JSON can hold."""
    return {
        "passes": report.passes,
        "baseline": report.baseline,
        "counts": {verdict.value: count for verdict, count in report.counts.items()},
        "cells": [_row(cell) for cell in report.cells],
        "failing": [
            {"cell": place(cell), "splits": list(splits)} for cell, splits in report.failing
        ],
        "gone": [place(cell) for cell in report.gone],
        "not_compared": [{"cell": place(o.cell), "reason": o.reason} for o in report.unpaired],
        "new": report.new,
        "versions": list(report.versions),
        "changed_code": [asdict(one) for one in report.changed_code],
    }


def _row(cell: Compared) -> dict[str, Any]:
    pair, test, name = cell.pair, cell.test, cell.pair.metric.name
    is_private = pair.epsilon != float("inf")
    return {
        "configs": list(pair.first.journals),
        "dataset": pair.dataset,
        "method": pair.first.task.label,
        "epsilon": pair.epsilon if is_private else None,
        "metric": name,
        "splits": len(pair.splits),
        "before": pair.second.mean(name),
        "now": pair.first.mean(name),
        "difference": test.mean,
        "sd": test.sd,
        "low": test.low,
        "high": test.high,
        "margin": cell.margin,
        "p_equivalence": cell.p_equivalence,
        "p_holm": cell.p_holm,
        "verdict": cell.verdict.value,
        "changed": list(cell.changed),
    }
