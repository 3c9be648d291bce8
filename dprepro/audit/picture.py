"""Draw the scores of both worlds: what the distinguisher had to tell apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dprepro.audit.result import AuditResult
from dprepro.errors import DpreproError
from dprepro.text import plain

FORMATS = (".png", ".svg")

_MAX_BINS = 60
_COLUMNS = 3
# Scores beyond are shown at the edge: a handful of runs must not squeeze the rest together.
_SHOWN = (0.002, 0.998)


def check_format(path: Path) -> None:
    """Raise DpreproError unless the file's ending is one of `FORMATS`."""
    if path.suffix not in FORMATS:
        raise DpreproError(f"{path}: pictures end in {' or '.join(FORMATS)}")


def draw(results: Sequence[AuditResult]) -> Figure:
    """Return a figure with a panel for each result: histograms of the held-out scores.

    Filled grey is the world without the canary, the black outline the one with it, the dashed line
    the threshold.
    """
    columns = min(_COLUMNS, len(results))
    rows = math.ceil(len(results) / columns)
    figure = Figure(figsize=(4.2 * columns, 2.8 * rows + 0.3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, result in zip(axes, results, strict=False):
        _draw_panel(axis, result)
    for axis in axes[len(results) :]:
        axis.set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def write_picture(results: Sequence[AuditResult], path: Path) -> None:
    """Write `draw` to a PNG or SVG file; the same results give the same bytes."""
    check_format(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": "dprepro"}):
        draw(results).savefig(path, dpi=130, metadata=metadata)


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
