"""Audit results for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.text import Text

from dprepro.audit.one_run import OneRunResult
from dprepro.audit.result import AuditResult, AuditVerdict
from dprepro.privacy.audit import CONFIDENCE, REFUTING
from dprepro.privacy.one_run_curve import CURVE
from dprepro.stacked import StackedColumn
from dprepro.terminal import Renderable, below, stacked_table

Result = AuditResult | OneRunResult

# With it the verdict stands beside the name at 80 columns.
_NAME_WIDTH = 16
_SIDES: dict[str, Literal["left"]] = {"verdict": "left"}

_FEW_RUNS_MEAN = (
    f"{AuditVerdict.FEW_RUNS.value}: even a method that spends all of the ceiling would be "
    "expected to show less than a quarter of it in so many runs. That nothing was found says "
    "nothing: give more --trials, or leave the option out"
)
_UNDECIDED_MEANS = (
    f"{AuditVerdict.UNDECIDED.value}: the bound is above what is stated or spent, but holds with "
    f"{100 * CONFIDENCE:g} % confidence only: chance puts up to one in twenty too high. A "
    f"refutation needs {100 * REFUTING:g} %: "
)
_MORE_RUNS = "give more --trials, or leave the option out"
_MANY_RUNS = "leave --one-run out"
_WITHIN_MEANS = (
    f"{AuditVerdict.WITHIN.value}: the bound is not above what is stated or spent. That is no "
    "proof: other tables, or more runs, could show more"
)
_ABOVE_LEDGER_MEANS = (
    f"{AuditVerdict.ABOVE_LEDGER.value}: the bound is above what the ledger adds up to, though not "
    "above what is stated: the ledger is wrong"
)
_EXCEEDED_MEANS = (
    f"{AuditVerdict.EXCEEDED.value}: the bound is above what is stated: the guarantee is refuted"
)
_BLIND_MEANS = (
    "ceiling 0.000: what is observed of these tables hardly tells them apart, so a bound of 0 "
    "says nothing"
)
_MEANINGS = {
    AuditVerdict.WITHIN: _WITHIN_MEANS,
    AuditVerdict.ABOVE_LEDGER: _ABOVE_LEDGER_MEANS,
    AuditVerdict.EXCEEDED: _EXCEEDED_MEANS,
    AuditVerdict.FEW_RUNS: _FEW_RUNS_MEAN,
}
_NO_REASON = "the ledger names no reason: a fault of the method, or of its ledger"


def render(results: Sequence[Result]) -> Renderable:
    """Return a table with a row each, then a line on each pair and what the ledger says of it."""
    parts: list[Renderable] = [_table(results), ""]
    for result in results:
        said = f" ({result.adjacency}): {_basis(result)}"
        parts.append(Text.assemble((_name(result), "bold"), said))
        if result.verdict.is_refuted:
            parts.extend(f"    - {gap}" for gap in result.gaps or (_NO_REASON,))
    verdicts = {result.verdict for result in results}
    parts.extend(f"\n{words}" for verdict, words in _MEANINGS.items() if verdict in verdicts)
    if AuditVerdict.UNDECIDED in verdicts:
        once = isinstance(results[0], OneRunResult)
        parts.append(f"\n{_UNDECIDED_MEANS}{_MANY_RUNS if once else _MORE_RUNS}")
    if any(_is_blind(result) for result in results):
        parts.append(f"\n{_BLIND_MEANS}")
    return below(*parts)


def _is_blind(result: Result) -> bool:
    """Whether the ceiling that is shown is 0."""
    if not isinstance(result, AuditResult) or result.ceiling is None:
        return False
    return _figure(result.ceiling.epsilon) == _figure(0.0)


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
    bounds = {"epsilon >=": _figure(result.lower_bound)}
    if isinstance(result, OneRunResult):
        sharper = {"by curve": result.curve_bound, "if indep.": result.independent_bound}
        bounds |= {name: _figure(found) for name, found in sharper.items()}
    else:
        share = result.share_of_ceiling
        bounds["ceiling"] = _figure(None if result.ceiling is None else result.ceiling.epsilon)
        bounds["reached"] = "" if share is None else f"{share:.0%}"
    return {
        "audited": _name(result),
        **bounds,
        "ledger": _figure(result.spent_epsilon),
        "stated": f"{result.epsilon:.4g}",
        "verdict": result.verdict.value,
    }


def _figure(epsilon: float | None) -> str:
    return "" if epsilon is None else f"{epsilon:.3f}"


def _name(result: Result) -> str:
    return f"{result.subject} {result.task}" if result.task else result.subject
