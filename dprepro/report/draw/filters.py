"""Filters and attributions as pictures, and how boosting went: advantages and margins."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from dprepro.release.plot_data import BoostingRuns, Explanations
from dprepro.report.draw.style import BLUE, ORANGE, open_frame
from dprepro.runtime.text import plain, shortened

_BARS = 12
_LONGEST_NAME = 28
_BINS = 41


def draw_filters(found: Explanations) -> Figure:
    """Return a row an input, models side by side: images where columns are pixels, else bars."""
    side = math.isqrt(len(found.names))
    pixels = all(re.fullmatch(r"pixel\d+", name) for name in found.names)
    is_square = pixels and side**2 == len(found.names)
    return _draw_images(found, side) if is_square else _draw_bars(found)


def _draw_images(found: Explanations, side: int) -> Figure:
    widths = [model.vectors.shape[1] for model in found.models]
    rows, columns = len(found.inputs), 1 + sum(widths)
    size = (1.15 * columns + 0.3 * len(widths), 1.3 * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    parts = figure.subfigures(1, 1 + len(widths), width_ratios=[1, *widths], squeeze=False)
    first, *others = parts[0]
    labels = [[f"label {label}"] for label in found.labels]
    _draw_row_of(first, found.inputs[:, None], labels, side)
    first.suptitle(" ", fontsize=9)  # as high as the models' titles
    for part, model in zip(others, found.models, strict=True):
        _draw_row_of(part, model.vectors, model.captions, side, is_signed=True)
        part.suptitle(plain(model.title), fontsize=9)
    return figure


def _draw_row_of(
    part: SubFigure,
    vectors: np.ndarray,
    captions: Sequence[Sequence[str]],
    side: int,
    is_signed: bool = False,
) -> None:
    """Draw images, vectors (rows, columns, pixels), each with its caption above it."""
    grid = part.subplots(*vectors.shape[:2], squeeze=False)
    look = {"cmap": "RdBu", "vmin": -1, "vmax": 1} if is_signed else {"cmap": "gray_r"}
    for axes_row, images, titles in zip(grid, vectors, captions, strict=True):
        for axes, vector, caption in zip(axes_row, images, titles, strict=True):
            image = vector.reshape(side, side)
            shown = _normalised(image) if is_signed else image
            axes.imshow(shown, interpolation="nearest", **look)
            axes.set_title(plain(caption), fontsize=8, pad=2)
            axes.axis("off")


def _draw_bars(found: Explanations) -> Figure:
    """Return the strongest columns of each row as bars, in one order for all models."""
    rows, models = len(found.inputs), found.models
    figure = Figure(figsize=(2.2 + 2.3 * len(models), 2.6 * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, len(models), squeeze=False, sharey="row")
    for row in range(rows):
        strips = np.stack([_normalised(model.vectors[row, 0]) for model in models])
        order = np.argsort(-np.abs(strips).max(axis=0), kind="stable")[:_BARS][::-1]
        for axes, model, values in zip(grid[row], models, strips, strict=True):
            colours = [BLUE if value > 0 else ORANGE for value in values[order]]
            axes.barh(range(len(order)), values[order], color=colours)
            names = [plain(shortened(found.names[k], _LONGEST_NAME)) for k in order]
            axes.set_yticks(range(len(order)), names, fontsize=7)
            axes.axvline(0, color="0.5", linewidth=0.6)
            axes.set_xlim(-1.05, 1.05)
            axes.tick_params(axis="x", labelsize=7)
            open_frame(axes)
            title = f"{model.title}\nsays {model.predicted[row]}, weight {model.captions[row][0]}"
            axes.set_title(plain(title), fontsize=8)
        grid[row, 0].set_ylabel(plain(f"label {found.labels[row]}"), fontsize=8)
    return figure


def _normalised(values: np.ndarray) -> np.ndarray:
    return values / (float(np.abs(values).max()) or 1.0)


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
    axes.set_xticks([-1, 0, 1])
