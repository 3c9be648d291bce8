"""All judged cells at a glance: one dot a cell by its normal score, one row a document.

Draw the normal scores of a document's cells against those expected if none differed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import betaincinv, ndtri

from dprepro.judge.check import CheckReport
from dprepro.judge.omnibus import normal_score
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.report.draw.style import BLUE, ORANGE, PHONE_WIDTH, framed, open_frame
from dprepro.runtime.text import plain, shortened

FARTHEST = 8.0
"""Cells with a larger score stand at this edge."""

# Inches.
_ROW = 0.62
_BIN = 0.25
_DOT = 3.4
_LONGEST = 40
# A row has room for so many dots one above the other before they move closer together.
_TALLEST = 9


@dataclass(frozen=True)
class Mark:
    """How the cells of some verdicts are drawn: shape, and keywords of `Axes.plot`."""

    name: str
    verdicts: frozenset[Verdict]
    shape: str
    look: Mapping[str, Any]


MARKS = (
    Mark("equivalent", frozenset({Verdict.EQUIVALENT}), "o", {"color": BLUE, "mew": 0}),
    Mark(
        "inconclusive",
        frozenset({Verdict.INCONCLUSIVE}),
        "o",
        {"color": BLUE, "mfc": "none", "mew": 0.7},
    ),
    Mark("different", frozenset({Verdict.BETTER, Verdict.WORSE}), "^", {"color": ORANGE, "mew": 0}),
)
"""Disc, ring and triangle: apart without colour, too."""


def draw_overview(report: CheckReport) -> Figure | None:
    """Return a figure of the normal scores of all judged cells; None where no cell was judged.

    A circle is a cell that is equivalent, a ring one that is inconclusive, a triangle one that is
    different. Dots of about the same score stand on each other. The band holds 95 % of the dots if
    nothing differs.
    """
    papers = [(paper, _judged(report.of_paper(paper))) for paper in report.papers]
    papers = [(paper, cells) for paper, cells in papers if cells]
    if not papers:
        return None
    figure = Figure(figsize=(PHONE_WIDTH, _ROW * len(papers) + 0.6))
    axes = framed(figure, 0.1, 0.52, 0.1, 0.08)
    axes.axvspan(-1.96, 1.96, color="0.9", linewidth=0)
    for row, (paper, cells) in enumerate(papers):
        _draw_row(axes, -row, paper, cells)
    axes.set_xlim(-FARTHEST - 0.6, FARTHEST + 0.6)
    axes.set_ylim(0.85 - len(papers), 0.95)
    ticks = [-8, -4, -2, 0, 2, 4, 8]
    axes.set_xticks(ticks, [f"{'≤ ' if t == -8 else '≥ ' if t == 8 else ''}{t}" for t in ticks])
    axes.set_yticks([])
    axes.set_xlabel("normal score of z (measured minus published)", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines["left"].set_visible(False)
    open_frame(axes)
    return figure


def _judged(report: CheckReport) -> list[CellVerdict]:
    found = (cell for cell in report.verdicts if cell.verdict.is_final and cell.comparison)
    return sorted(found, key=normal_score)


def _draw_row(axes: Axes, floor: float, paper: str, cells: Sequence[CellVerdict]) -> None:
    scores = np.clip([normal_score(cell) for cell in cells], -FARTHEST, FARTHEST)
    across = np.round(scores / _BIN) * _BIN
    ranks = np.array([int((across[:k] == place).sum()) for k, place in enumerate(across)])
    up = floor + 0.55 * ranks / max(_TALLEST, int(ranks.max()) + 1)
    verdicts = [cell.verdict for cell in cells]
    for mark in MARKS:
        chosen = np.array([verdict in mark.verdicts for verdict in verdicts])
        axes.plot(across[chosen], up[chosen], mark.shape, markersize=_DOT, **mark.look)
    different = sum(verdict.is_deviation for verdict in verdicts)
    counts = f"{len(cells)} cells, {different} different"
    name = plain(f"{shortened(paper, _LONGEST)}: {counts}")
    axes.text(-FARTHEST - 0.5, floor + 0.62, name, fontsize=8, va="bottom")
    axes.axhline(floor - 0.06, color="0.8", linewidth=0.5)


_BAND = 0.95
_HEIGHT = 3.4


def draw_quantiles(report: CheckReport) -> Figure | None:
    """Return a figure of one dot a judged cell; None where fewer than two were judged.

    Across: the standard normal quantile of the cell's rank. Up: its normal score (see `Omnibus`).
    Without differences the dots follow the line. The band holds 95 % of the dots of each
    rank if cells were independent; those of one dataset are not, so it is a guide and no test.
    """
    cells = [
        cell for cell in report.verdicts if cell.verdict.is_final and cell.comparison is not None
    ]
    if len(cells) < 2:
        return None
    cells.sort(key=normal_score)
    scores = np.array([normal_score(cell) for cell in cells])
    ranks = np.arange(1, len(cells) + 1)
    across = ndtri((ranks - 0.5) / len(cells))
    figure = Figure(figsize=(PHONE_WIDTH, _HEIGHT))
    axes = framed(figure, 0.72, 0.48, 0.1, 0.08)
    # The rank-th smallest of n uniform numbers has the distribution Beta(rank, n + 1 - rank).
    low, high = (
        ndtri(betaincinv(ranks, len(cells) + 1 - ranks, share))
        for share in ((1 - _BAND) / 2, (1 + _BAND) / 2)
    )
    axes.fill_between(across, low, high, color="0.9", linewidth=0)
    axes.plot(across, across, color="0.4", linewidth=0.8)
    for mark in MARKS:
        chosen = np.array([cell.verdict in mark.verdicts for cell in cells])
        if chosen.any():
            label = f"{mark.name} ({chosen.sum()})"
            axes.plot(
                across[chosen], scores[chosen], mark.shape, markersize=3.5, label=label, **mark.look
            )
    axes.set(xlabel="expected if nothing differs", ylabel="normal score of z")
    axes.legend(frameon=False, fontsize="small", loc="upper left")
    open_frame(axes, grid=True)
    return figure


def far_cells(report: CheckReport, most: int = 5) -> str:
    """Name the cells with the largest scores, as the axis has them; at most so many.

    ``"pol, ebm: +14.0 (z +52.9)"``
    """
    judged: Sequence[CellVerdict] = [
        cell for cell in report.verdicts if cell.verdict.is_deviation and cell.comparison
    ]
    farthest = sorted(judged, key=lambda cell: -abs(normal_score(cell)))[:most]
    return "; ".join(
        plain(
            f"{cell.published.dataset}, {cell.published.method}: {normal_score(cell):+.1f} "
            f"(z {cell.comparison.z:+.1f})"
        )
        for cell in farthest
        if cell.comparison
    )
