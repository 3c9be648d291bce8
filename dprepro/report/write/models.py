"""Saved models as tables: their features, the bins of one, their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dprepro.terminal import BareTable, Renderable, below

if TYPE_CHECKING:
    from dprepro.additive.shapes import Shape

_FIGURES = ("bins", "lowest", "highest", "noise (median)", "edited")


def model_overview(
    shapes: Sequence[Shape], title: str, intercept: float, edits: Iterable[str]
) -> Renderable:
    """Return a table of the features, the intercept, and the edits in their order."""
    table = BareTable(["feature"], _FIGURES, title)
    for shape in shapes:
        table.add_row(
            shape.name,
            str(shape.values.size),
            f"{shape.values.min():.4g}",
            f"{shape.values.max():.4g}",
            "" if shape.noise is None else f"{np.median(shape.noise):.3g}",
            "yes" if shape.is_edited else "",
        )
    lines = [f"  {number}. {edit}" for number, edit in enumerate(edits, start=1)]
    return below(table, f"Intercept: {intercept:.4g}", "Edits:" if lines else "Edits: none", *lines)


def bins(shape: Shape) -> Renderable:
    """Return a table of the bins of one feature: value, released value, noise, rows."""
    table = BareTable(["bin"], ["value", "released", "noise (sd)", "rows"], shape.name)
    for b, label in enumerate(shape.labels):
        moved = shape.values[b] != shape.released[b]
        table.add_row(
            label,
            f"{shape.values[b]:.4g}",
            f"{shape.released[b]:.4g}" if moved else "",
            "" if shape.noise is None else f"{shape.noise[b]:.3g}",
            f"{shape.counts[b]:.0f}",
        )
    return table


def scores(found: Mapping[str, Mapping[str, float]]) -> Renderable:
    """Return a table of metrics, a row for each model."""
    names = list(next(iter(found.values())))
    table = BareTable([""], names)
    for title, metrics in found.items():
        table.add_row(title, *(f"{metrics[name]:.5g}" for name in names))
    return table
