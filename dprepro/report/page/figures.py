"""The figures of the page, from one provider a kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from dprepro.report.curves import Panel, build_panels
from dprepro.report.figures import draw, looks_of
from dprepro.report.page.svg import inline, legible
from dprepro.report.tables import ResultTable

# Inches; small enough for a phone, where a point is about a pixel.
_WIDTH = 4.7
_HEIGHT = 3.1
_LEGEND_ROW = 0.19


@dataclass(frozen=True)
class PageFigure:
    """A figure with its caption, and what the filters go by."""

    caption: str
    svg: Markup
    paper: str | None = None
    dataset: str | None = None


@dataclass(frozen=True)
class FigureGroup:
    """Figures of one kind. `text` says how to read them."""

    title: str
    text: str
    figures: tuple[PageFigure, ...]


@dataclass(frozen=True)
class FigureSources:
    """What figures are drawn from: tables built with ``compare=True``, the results' folder."""

    tables: Sequence[ResultTable]
    folder: Path


Provider = Callable[[FigureSources], "FigureGroup"]


def curves(sources: FigureSources) -> FigureGroup:
    """Draw each dataset's metric against epsilon."""
    text = (
        "Lines and filled markers are measured, hollow markers published; bars are standard "
        "deviations over splits. The same numbers stand in the tables."
    )
    return FigureGroup("Metric against ε", text, tuple(_curves(sources.tables)))


PROVIDERS: tuple[Provider, ...] = (curves,)


def figure_groups(sources: FigureSources) -> list[FigureGroup]:
    """Return the groups of all providers, those without a figure left out."""
    groups = [provide(sources) for provide in PROVIDERS]
    return [group for group in groups if group.figures]


def _curves(tables: Sequence[ResultTable]) -> Iterator[PageFigure]:
    for number, table in enumerate(tables):
        panels = [_legible(panel) for panel in build_panels([table]) if _has_levels(panel)]
        looks = looks_of(panels)
        for position, panel in enumerate(panels):
            height = _HEIGHT + _LEGEND_ROW * math.ceil(len(panel.curves) / 2 + 1)
            place = f" ({table.paper}, Table {table.table})" if table.paper else ""
            caption = f"{panel.title}: {panel.metric.title} against ε{place}"
            # The caption stands above it already.
            figure = draw([replace(panel, title="")], looks, (_WIDTH, height))
            svg = inline(figure, f"c{number}-{position}-", caption)
            yield PageFigure(caption, svg, table.paper, panel.dataset)


def _has_levels(panel: Panel) -> bool:
    return any(math.isfinite(point.epsilon) for point in panel.points)


def _legible(panel: Panel) -> Panel:
    renamed = tuple(replace(curve, title=legible(curve.title)) for curve in panel.curves)
    return replace(panel, title=legible(panel.title), curves=renamed)
