"""The figures of the page: normal scores of judged cells, curves, and functions of saved models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import betaincinv, ndtri

from dprepro.judge.check import CheckReport
from dprepro.judge.omnibus import normal_score
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.privacy.budget import PrivacyBudget
from dprepro.report.draw import shapes
from dprepro.report.draw.curves import looks_of
from dprepro.report.draw.files import Workers, draw_inline, inline
from dprepro.report.draw.pages import draw_curves
from dprepro.report.draw.panels import Panel, build_panels
from dprepro.report.draw.shapes import (
    ModelShapes,
    columns_of,
    left_out,
    most_important,
    select_features,
)
from dprepro.report.draw.style import BLUE, ORANGE, PHONE_WIDTH, framed, open_frame
from dprepro.report.layout import ResultTable
from dprepro.report.sheet import Sheet
from dprepro.runtime.text import legible, plain, shortened

if TYPE_CHECKING:
    from dprepro.additive.file import LoadedClassifier, LoadedRegressor

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


_RING = {"color": BLUE, "mfc": "none", "mew": 0.7}
MARKS = (
    Mark("equivalent", frozenset({Verdict.EQUIVALENT}), "o", {"color": BLUE, "mew": 0}),
    Mark("inconclusive", frozenset({Verdict.INCONCLUSIVE}), "o", _RING),
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
    cells = _judged(report)
    if len(cells) < 2:
        return None
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
    found = [
        (normal_score(cell), cell.published, cell.comparison.z)
        for cell in report.verdicts
        if cell.verdict.is_deviation and cell.comparison
    ]
    farthest = sorted(found, key=lambda one: -abs(one[0]))[:most]
    return "; ".join(
        plain(f"{printed.dataset}, {printed.method}: {score:+.1f} (z {z:+.1f})")
        for score, printed, z in farthest
    )


MODELS = "models"
"""The folder below the results' that holds saved models."""

# Of one dataset. Each panel of a saved model takes some ten thousand characters.
_MOST_FEATURES = 12
_MOST_MODELS = 6
_LONGEST_NAME = 80


@dataclass(frozen=True)
class PageFigure:
    """A figure with its caption, and what the filters go by."""

    caption: str
    svg: Markup
    paper: str | None = None
    dataset: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureGroup:
    """Figures of one kind. `text` says how to read them, `notes` what is not among them."""

    title: str
    text: str
    figures: tuple[PageFigure, ...]
    notes: tuple[str, ...] = ()


Drawing: TypeAlias = Callable[[], Markup]
_Planned: TypeAlias = tuple[FigureGroup, list[Drawing]]
"""Figures without their pictures, and what draws these."""


def figure_groups(
    tables: Sequence[ResultTable],
    report: CheckReport,
    shapes: Callable[[], FigureGroup],
    workers: Workers,
) -> list[FigureGroup]:
    """Return the figures of a page by kind; a kind without any is left out.

    `tables` are built with ``compare=True``. `shapes` returns what `shape_figures` does.
    """
    curves, drawings = curve_figures(tables)
    pictures = workers.share(drawings)
    drawn = tuple(
        replace(figure, svg=svg) for figure, svg in zip(curves.figures, pictures, strict=True)
    )
    groups = [quantile_figures(report), replace(curves, figures=drawn), shapes()]
    return [group for group in groups if group.figures]


def begin_shapes(folder: Path, workers: Workers) -> Callable[[], FigureGroup]:
    """Begin to draw saved models, which need no journal, and return what waits for the figures."""
    job = partial(shape_figures, folder)
    return workers.begin(job) if any((folder / MODELS).glob("*.json")) else job


def overview(report: CheckReport) -> PageFigure | None:
    """Draw the normal scores of all judged cells by document; None where none was judged."""
    figure = draw_overview(report)
    if figure is None:
        return None
    caption = "Every printed cell that was judged, by document"
    return PageFigure(caption, inline(figure, "o-", caption))


def quantile_figures(report: CheckReport) -> FigureGroup:
    """Draw the scores of each document's cells against those expected if nothing differed."""
    text = (
        "One dot is one printed cell, at the normal score of its z: the standard normal number of "
        "the same p-value. If every mean came from the published experiment, the dots "
        "would follow the line, most of them within the grey band. Dots above it on the right are "
        "larger than published, dots below it on the left are smaller."
    )
    figures = []
    for number, paper in enumerate(report.papers):
        own = report.of_paper(paper)
        figure = draw_quantiles(own)
        if figure is not None:
            caption = f"{paper}: normal scores of all cells"
            farthest = far_cells(own)
            notes = (f"The farthest that differ, by normal score: {farthest}.",) if farthest else ()
            svg = inline(figure, f"q{number}-", caption)
            figures.append(PageFigure(caption, svg, paper, notes=notes))
    return FigureGroup("All cells together", text, tuple(figures))


def curve_figures(tables: Sequence[ResultTable]) -> _Planned:
    """Return each dataset's metric against epsilon, to be drawn."""
    text = (
        "Lines and filled markers are measured values, rings published ones. Bars are standard "
        "deviations over splits, pale ones those published. The tables have the same numbers."
    )
    planned = list(_curves(tables))
    figures = tuple(figure for figure, _ in planned)
    return FigureGroup("Metric against ε", text, figures), [draw for _, draw in planned]


def shape_figures(folder: Path) -> FigureGroup:
    """Draw the models saved in `MODELS` below a results' folder.

    These are their numeric features, or all where none is. Of many features and models of a
    dataset, the most important and the most private are drawn.
    """
    text = (
        "The shape functions of saved models. Bands are two standard deviations of the noise that "
        "boosting added. Grey bars are the density of the training rows. The panels of a feature "
        "have one scale."
    )
    paths = sorted((folder / MODELS).glob("*.json"))
    figures: list[PageFigure] = []
    notes: list[str] = []
    for number, (dataset, columns) in enumerate(_saved(paths).items()):
        shown = columns[-_MOST_MODELS:]
        numeric = any(s.edges is not None for column in shown for s in column.shapes)
        there = select_features(shown, numeric=numeric)
        features = most_important(shown, there, _MOST_FEATURES)
        figures += _shapes(number, dataset, shown, features)
        notes += _left_out(dataset, columns, features, there)
    return FigureGroup("Shape functions", text, tuple(figures), tuple(notes))


def _curves(tables: Sequence[ResultTable]) -> Iterator[tuple[PageFigure, Drawing]]:
    for number, table in enumerate(tables):
        built = build_panels([table])
        levels = ({point.epsilon for point in panel.points} - {math.inf} for panel in built)
        panels = [_legible(p) for p, private in zip(built, levels, strict=True) if private]
        looks = looks_of(panels)
        for position, panel in enumerate(panels):
            place = f" ({table.paper}, Table {table.table})" if table.paper else ""
            caption = f"{panel.title}: {panel.metric.title} against ε{place}"
            # Title and notes stand above it already.
            bare = [replace(panel, title="", notes=())]
            draw = partial(draw_curves, bare, looks, Sheet(width=PHONE_WIDTH, font=9.0))
            figure = PageFigure(caption, Markup(), table.paper, panel.dataset, panel.notes)
            yield figure, partial(draw_inline, draw, f"c{number}-{position}-", caption)


def _shapes(
    number: int, dataset: str, columns: Sequence[ModelShapes], features: Sequence[str]
) -> Iterator[PageFigure]:
    for position, feature in enumerate(features):
        named = (f"{c.title} ({c.warning})" if c.warning else c.title for c in columns)
        titles = ", ".join(named)
        caption = f"{shortened(feature, _LONGEST_NAME)} on {dataset}: {titles}"
        svg = inline(shapes.draw_column(columns, feature), f"s{number}-{position}-", caption)
        yield PageFigure(caption, svg, None, dataset)


def _left_out(
    dataset: str, columns: Sequence[ModelShapes], features: Sequence[str], there: Sequence[str]
) -> Iterator[str]:
    if len(columns) > _MOST_MODELS:
        yield (
            f"{dataset}: of each feature {_MOST_MODELS} of {len(columns)} functions of saved "
            "models are drawn, those of the most private; dprepro plot shapes --model FILE draws "
            "any other."
        )
    if note := left_out(len(features), len(there)):
        yield f"{dataset}: {note}."


def _saved(paths: Sequence[Path]) -> dict[str, list[ModelShapes]]:
    """Return the functions of saved models by dataset, those of most privacy last."""
    if not paths:
        return {}  # without loading what loads models
    from dprepro.additive.file import load_model
    from dprepro.estimators.contract import ledger_of
    from dprepro.release.provenance import take_missing_names

    found = []
    for path in paths:
        model = load_model(path)
        task = model.origin_.get("task", model.origin_)  # that of all rows names no task
        task = task if isinstance(task, Mapping) else {}
        dataset, label = (
            shortened(str(task.get(key, path.stem)), _LONGEST_NAME) for key in ("dataset", "label")
        )
        take_missing_names(model, dataset)
        ledger = ledger_of(model)
        budget = ledger.budget if ledger else PrivacyBudget(math.inf, 0.0)
        title = budget.name(label)
        found.append((-budget.epsilon, dataset, columns_of(legible(title), model, _warning(model))))
    by_dataset: dict[str, list[ModelShapes]] = {}
    for _, dataset, columns in sorted(found, key=lambda entry: entry[:2]):
        by_dataset.setdefault(dataset, []).extend(columns)
    return by_dataset


def _warning(model: LoadedClassifier | LoadedRegressor) -> str:
    """Say that a model is not for release, where its file says so."""
    if "not_for_release" not in model.origin_:
        return ""
    from dprepro.estimators.contract import ledger_of

    how = "its ledger does not hold" if ledger_of(model) else "fitted without privacy"
    return f"PRIVATE rows, {how}: not for release"


def _legible(panel: Panel) -> Panel:
    renamed = tuple(replace(curve, title=legible(curve.title)) for curve in panel.curves)
    return replace(panel, title=legible(panel.title), curves=renamed)
