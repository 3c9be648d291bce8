"""Audit results for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from dprepro.audit.one_run import OneRunResult
from dprepro.audit.result import AuditResult, AuditVerdict
from dprepro.privacy.audit import CONFIDENCE, REFUTING
from dprepro.privacy.one_run_curve import CURVE
from dprepro.stacked import StackedColumn
from dprepro.terminal import Renderable, stacked_table

Result = AuditResult | OneRunResult

_NAME_WIDTH = 20
_SIDES: dict[str, Literal["left"]] = {"verdict": "left"}

_FEW_RUNS_MEAN = (
    f"{AuditVerdict.FEW_RUNS.value}: even a method that spends all of the ceiling would be "
    "expected to show less than a quarter of it in so many runs. That nothing was found says "
    "nothing: give more --trials, or leave the option out"
)
_UNDECIDED_MEANS = (
    f"{AuditVerdict.UNDECIDED.value}: the bound is above what is stated or spent, but holds with "
    f"{100 * CONFIDENCE:g} % confidence only: chance puts one in twenty too high. A refutation "
    f"needs {100 * REFUTING:g} %: give more --trials, or leave the option out"
)
_MEANINGS = {
    AuditVerdict.FEW_RUNS: _FEW_RUNS_MEAN,
    AuditVerdict.UNDECIDED: _UNDECIDED_MEANS,
}
_NO_REASON = "the ledger names no reason: a fault of the method, or of its ledger"


def render(results: Sequence[Result]) -> Group:
    """Return a table with a row each, then a line on each pair and what the ledger says of it."""
    parts: list[RenderableType] = [_table(results), ""]
    for result in results:
        parts.append(f"[bold]{_name(result)}[/] ({result.adjacency}): {escape(_basis(result))}")
        if result.verdict.is_refuted:
            parts.extend(f"    - {escape(gap)}" for gap in result.gaps or (_NO_REASON,))
    verdicts = {result.verdict for result in results}
    parts.extend(f"\n{words}" for verdict, words in _MEANINGS.items() if verdict in verdicts)
    return Group(*parts)


def _basis(result: Result) -> str:
    """Return what the bound rests on."""
    if isinstance(result, AuditResult):
        ceiling = "" if result.ceiling is None else f"; ceiling {result.ceiling.basis}"
        return (
            f"{result.neighbours}. {result.trials:,} runs, bound by {result.bound.value}{ceiling}"
        )
    under = "" if result.curve_bound is None else f"; the bound by curve is under a {CURVE}"
    return f"{result.neighbours}. {result.correct} of {result.guesses} guesses right{under}"


def _table(results: Sequence[Result]) -> Renderable:
    """All results are of one kind: by many runs, or by one."""
    rows = [_cells(result) for result in results]
    columns = [
        StackedColumn(heading, [row[heading] for row in rows], least=_NAME_WIDTH)
        if heading == "audited"
        else StackedColumn(
            heading, [(Text(row[heading]),) for row in rows], _SIDES.get(heading, "right")
        )
        for heading in rows[0]
    ]
    return stacked_table("", columns, 1, is_tight=True)


def _cells(result: Result) -> dict[str, str]:
    bounds = {"epsilon >=": f"{result.lower_bound:.3f}"}
    if isinstance(result, OneRunResult):
        sharper = {"by curve": result.curve_bound, "if indep.": result.independent_bound}
        bounds |= {name: "" if found is None else f"{found:.3f}" for name, found in sharper.items()}
    else:
        share = result.share_of_ceiling
        bounds["ceiling"] = "" if result.ceiling is None else f"{result.ceiling.epsilon:.3f}"
        bounds["reached"] = "" if share is None else f"{share:.0%}"
    return {
        "audited": _name(result),
        **bounds,
        "ledger": f"{result.spent_epsilon:.3f}",
        "stated": f"{result.epsilon:.4g}",
        "verdict": result.verdict.value,
    }


def _name(result: Result) -> str:
    return f"{result.subject} {result.task}" if result.task else result.subject
