"""Draw how boosting went: the advantage of each round and the margins that came of it."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dprepro.inspect.pictured import BoostingRuns
from dprepro.report.text import plain

_COLOUR = "#0072B2"
_BINS = 41


def draw_margins(runs: BoostingRuns) -> Figure:
    """Return a figure of two panels.

    Left the mean advantage of each round over the fits, with a band of one standard deviation;
    right the share of training rows by margin, all fits together.
    """
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    rounds = np.arange(1, runs.edges.shape[1] + 1)
    mean, spread = runs.edges.mean(axis=0), runs.edges.std(axis=0)
    left.fill_between(rounds, mean - spread, mean + spread, color=_COLOUR, alpha=0.25, linewidth=0)
    left.plot(rounds, mean, color=_COLOUR, linewidth=1.2)
    left.axhline(0.0, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)))
    left.set(xlabel="round", ylabel="advantage over guessing")
    margins = runs.margins.ravel()
    right.hist(
        margins, bins=np.linspace(-1, 1, _BINS), weights=np.full(margins.size, 1 / margins.size),
        color=_COLOUR,
    )  # fmt: skip
    right.axvline(0.0, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)))
    right.set(xlabel="margin: mean vote times label", ylabel="share of training rows")
    right.set_xticks([-1, -0.5, 0, 0.5, 1])
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
    fits = len(runs.edges)
    figure.suptitle(
        plain(
            f"{runs.title}: {fits} fit{'s' if fits > 1 else ''}, exact and therefore not private"
        ),
        fontsize=11,
    )
    return figure
