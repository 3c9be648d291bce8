"""The figures of the page, from one provider a kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from markupsafe import Markup

from dprepro.judge.check import CheckReport
from dprepro.privacy.budget import PrivacyBudget
from dprepro.report.draw import shapes
from dprepro.report.draw.curves import Panel, build_panels
from dprepro.report.draw.figures import draw_curves, looks_of
from dprepro.report.draw.files import in_processes
from dprepro.report.draw.overview import draw_overview, draw_quantiles, far_cells
from dprepro.report.draw.shapes import (
    ModelShapes,
    column_of,
    left_out,
    most_important,
    select_features,
)
from dprepro.report.draw.svg import draw_inline, inline
from dprepro.report.layout.tables import ResultTable
from dprepro.report.layout.view import FigureGroup, PageFigure
from dprepro.runtime.text import legible, shortened

if TYPE_CHECKING:
    from dprepro.additive.file import LoadedClassifier, LoadedRegressor

MODELS = "models"
"""The folder below the results' that holds saved models."""

# Of one dataset. Each panel of a saved model takes some ten thousand characters.
_MOST_FEATURES = 12
_MOST_MODELS = 6
_LONGEST_NAME = 80

Drawing: TypeAlias = Callable[[], Markup]
_Planned: TypeAlias = tuple[FigureGroup, list[Drawing]]
"""Figures without their pictures, and what draws these."""


def figure_groups(
    tables: Sequence[ResultTable], folder: Path, report: CheckReport
) -> list[FigureGroup]:
    """Return the figures of a page by kind; a kind without any is left out.

    Parameters
    ----------
    tables
        Built with ``compare=True``.
    folder
        The results' folder: saved models lie below it, in `MODELS`.
    report
        The verdicts on printed cells.
    """
    planned = [curve_figures(tables), shape_figures(folder)]
    pictures = iter(in_processes([draw for _, drawings in planned for draw in drawings]))
    groups = [quantile_figures(report)]
    for group, _ in planned:
        figures = tuple(replace(figure, svg=next(pictures)) for figure in group.figures)
        groups.append(replace(group, figures=figures))
    return [group for group in groups if group.figures]


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


def shape_figures(folder: Path) -> _Planned:
    """Return, to be drawn, the models saved below a results' folder.

    These are their numeric features, or all where none is. Of many features and models of a
    dataset, the most important and the most private are drawn.
    """
    text = (
        "The shape functions of saved models. Bands are two standard deviations of the noise that "
        "boosting added. Grey bars are the density of the training rows. The panels of a feature "
        "have one scale."
    )
    paths = sorted((folder / MODELS).glob("*.json"))
    planned: list[tuple[PageFigure, Drawing]] = []
    notes: list[str] = []
    for number, (dataset, columns) in enumerate(_saved(paths).items()):
        shown = columns[-_MOST_MODELS:]
        numeric = any(s.edges is not None for column in shown for s in column.shapes)
        there = select_features(shown, numeric=numeric)
        features = most_important(shown, there, _MOST_FEATURES)
        planned += _shapes(number, dataset, shown, features)
        notes += _left_out(dataset, columns, features, there)
    figures = tuple(figure for figure, _ in planned)
    group = FigureGroup("Shape functions", text, figures, tuple(notes))
    return group, [draw for _, draw in planned]


def _curves(tables: Sequence[ResultTable]) -> Iterator[tuple[PageFigure, Drawing]]:
    for number, table in enumerate(tables):
        panels = [_legible(panel) for panel in build_panels([table]) if _has_levels(panel)]
        looks = looks_of(panels)
        for position, panel in enumerate(panels):
            place = f" ({table.paper}, Table {table.table})" if table.paper else ""
            caption = f"{panel.title}: {panel.metric.title} against ε{place}"
            # Title and notes stand above it already.
            draw = partial(draw_curves, replace(panel, title="", notes=()), looks, is_narrow=True)
            figure = PageFigure(caption, Markup(), table.paper, panel.dataset, panel.notes)
            yield figure, partial(draw_inline, draw, f"c{number}-{position}-", caption)


def _shapes(
    number: int, dataset: str, columns: Sequence[ModelShapes], features: Sequence[str]
) -> Iterator[tuple[PageFigure, Drawing]]:
    for position, feature in enumerate(features):
        titles = ", ".join(_named(column) for column in columns)
        caption = f"{shortened(feature, _LONGEST_NAME)} on {dataset}: {titles}"
        draw = partial(shapes.draw_column, columns, feature)
        svg = partial(draw_inline, draw, f"s{number}-{position}-", caption)
        yield PageFigure(caption, Markup(), None, dataset), svg


def _named(column: ModelShapes) -> str:
    return f"{column.title} ({column.warning})" if column.warning else column.title


def _left_out(
    dataset: str, columns: Sequence[ModelShapes], features: Sequence[str], there: Sequence[str]
) -> Iterator[str]:
    if len(columns) > _MOST_MODELS:
        yield (
            f"{dataset}: the {_MOST_MODELS} most private of {len(columns)} saved models are drawn; "
            "dprepro plot shapes --model FILE draws any other."
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
        found.append((-budget.epsilon, dataset, column_of(legible(title), model, _warning(model))))
    by_dataset: dict[str, list[ModelShapes]] = {}
    for _, dataset, column in sorted(found, key=lambda entry: entry[:2]):
        by_dataset.setdefault(dataset, []).append(column)
    return by_dataset


def _warning(model: LoadedClassifier | LoadedRegressor) -> str:
    """Say that a model is not for release, where its file says so."""
    if "not_for_release" not in model.origin_:
        return ""
    from dprepro.estimators.contract import ledger_of

    how = "its ledger does not hold" if ledger_of(model) else "fitted without privacy"
    return f"PRIVATE rows, {how}: not for release"


def _has_levels(panel: Panel) -> bool:
    return any(math.isfinite(point.epsilon) for point in panel.points)


def _legible(panel: Panel) -> Panel:
    renamed = tuple(replace(curve, title=legible(curve.title)) for curve in panel.curves)
    return replace(panel, title=legible(panel.title), curves=renamed)
