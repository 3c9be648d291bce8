"""Draw the normal scores of a document's cells against those expected if none differed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.special import betaincinv, ndtri

from dprepro.report.draw.overview import MARKS
from dprepro.report.draw.style import PHONE_WIDTH, framed, open_frame
from dprepro.report.judge.check import CheckReport
from dprepro.report.judge.omnibus import normal_score
from dprepro.report.judge.verdicts import CellVerdict
from dprepro.text import plain

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
