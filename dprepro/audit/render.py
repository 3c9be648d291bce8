"""Audit results for the terminal, and a picture of the scores that were told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from rich.text import Text

from dprepro.audit.auditing import OneRunResult
from dprepro.audit.result import AuditResult, AuditVerdict
from dprepro.privacy.lower_bounds import CONFIDENCE, CURVE, REFUTING
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.extras import needs_extra
from dprepro.runtime.terminal import Renderable, StackedColumn, below, stacked_table
from dprepro.runtime.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


# --- picture --------------------------------------------------------------------------------------

FORMATS = (".png", ".svg")

_MAX_BINS = 60
_COLUMNS = 3
# Scores beyond are shown at the edge: a handful of runs must not squeeze the rest together.
_SHOWN = (0.002, 0.998)


def check_format(path: Path) -> None:
    """Raise DpreproError unless the file's ending is one of `FORMATS`, and Matplotlib is there."""
    if path.suffix not in FORMATS:
        raise DpreproError(f"{path}: pictures end in {' or '.join(FORMATS)}")
    with needs_extra("plot", "pictures need Matplotlib"):
        import matplotlib  # noqa: F401


def draw(results: Sequence[AuditResult], size: tuple[float, float] | None = None) -> Figure:
    """Return a figure with a panel for each result: histograms of the held-out scores.

    Filled grey is the world without the canary, the black outline the one with it, the dashed line
    the threshold. `size` is its width and height in inches; by default each panel has 4.2 x 2.8.
    """
    from matplotlib.figure import Figure  # late: it takes a while

    columns = min(_COLUMNS, len(results))
    rows = math.ceil(len(results) / columns)
    figure = Figure(figsize=size or (4.2 * columns, 2.8 * rows + 0.3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, result in zip(axes, results, strict=False):
        _draw_panel(axis, result)
    for axis in axes[len(results) :]:
        axis.set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8,
        handlelength=1.5, columnspacing=1.2,
    )  # fmt: skip
    return figure


def write_picture(
    results: Sequence[AuditResult], path: Path, size: tuple[float, float] | None = None
) -> None:
    """Write `draw` to a PNG or SVG file; the same results give the same bytes."""
    check_format(path)
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": "dprepro"}):
        draw(results, size).savefig(path, dpi=130, metadata=metadata)


def _draw_panel(axis: Axes, result: AuditResult) -> None:
    evidence = result.evidence
    low, high = np.quantile(evidence.scores, _SHOWN)
    if low == high:
        low, high = low - 0.5, high + 0.5
    bins = int(np.clip(np.sqrt(evidence.scores.size), 10, _MAX_BINS))
    edges = np.linspace(low, high, bins + 1).tolist()
    shown = np.clip(evidence.scores, low, high)
    without, with_canary = shown[~evidence.present], shown[evidence.present]
    axis.hist(without, edges, density=True, color="0.75", label="without the canary")
    axis.hist(
        with_canary, edges, density=True, histtype="step", color="black", label="with the canary"
    )
    threshold = float(np.clip(evidence.threshold, low, high))
    axis.axvline(threshold, color="black", linestyle="--", linewidth=1, label="threshold")
    task = f", {result.task}" if result.task else ""
    axis.set_title(
        plain(result.subject + task) + f"\nepsilon >= {result.lower_bound:.2f}, stated "
        f"{result.epsilon:g}: {result.verdict.value}",
        fontsize=9,
    )
    axis.set_xlabel("score", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.set_yticks([])
