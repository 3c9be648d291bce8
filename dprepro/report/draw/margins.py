"""Draw how boosting went: the advantage of each round and the margins that came of it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dprepro.inspect.pictured import BoostingRuns
from dprepro.report.draw.style import BLUE, open_frame
from dprepro.text import plain

_BINS = 41


def draw_margins(runs: BoostingRuns) -> Figure:
    """Return a figure of two panels.

    Left the mean advantage of each round over the fits, with a band of one standard deviation;
    right the share of training rows by margin, all fits together.
    """
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_advantages(left, runs)
    _draw_margins(right, runs)
    for axes in (left, right):
        open_frame(axes, grid=True)
    fits = len(runs.edges)
    title = f"{runs.title}: {fits} fit{'s' if fits > 1 else ''}, exact and therefore not private"
    figure.suptitle(plain(title), fontsize=11)
    return figure


def _draw_advantages(axes: Axes, runs: BoostingRuns) -> None:
    rounds = np.arange(1, runs.edges.shape[1] + 1)
    mean, spread = runs.edges.mean(axis=0), runs.edges.std(axis=0)
    axes.fill_between(rounds, mean - spread, mean + spread, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(rounds, mean, color=BLUE, linewidth=1.2)
    axes.axhline(0.0, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set(xlabel="round", ylabel="advantage over guessing")


def _draw_margins(axes: Axes, runs: BoostingRuns) -> None:
    margins = runs.margins.ravel()
    weights = np.full(margins.size, 1 / margins.size)
    borders = [float(border) for border in np.linspace(-1, 1, _BINS)]
    axes.hist(margins, bins=borders, weights=weights, color=BLUE)
    axes.axvline(0.0, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set(xlabel="margin: mean vote times label", ylabel="share of training rows")
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
