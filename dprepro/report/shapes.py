"""Shape functions as pictures: features in rows, models in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dprepro.errors import DpreproError, nearest
from dprepro.report.figures import save_figures

if TYPE_CHECKING:
    from dprepro.ebm.additive import AdditiveModel
    from dprepro.ebm.shapes import Shape

FUNCTION, RELEASED, ROWS = "#0072B2", "#D55E00", "0.82"

# The lowest part of a panel belongs to the density of the rows.
_STRIP = 0.18
_DEVIATIONS = 2
_LONGEST_LABEL = 16


@dataclass(frozen=True)
class Column:
    """The functions of one model. `unit` says what they are measured in."""

    title: str
    shapes: tuple[Shape, ...]
    unit: str = "log odds"

    def get(self, feature: str) -> Shape | None:
        """Return the function of a feature, or None."""
        return next((shape for shape in self.shapes if shape.name == feature), None)


def column_of(title: str, model: AdditiveModel) -> Column:
    """Return the functions of a fitted or loaded model."""
    from dprepro.ebm.shapes import shapes_of

    unit = "log odds" if hasattr(model, "classes_") else "target"
    return Column(title, tuple(shapes_of(model)), unit)


def select_features(
    columns: Sequence[Column], wanted: Sequence[str] = (), numeric: bool = False
) -> list[str]:
    """Return the names of the features to draw, in the models' order or as wanted.

    Raises
    ------
    DpreproError
        If a wanted feature is in none of the models, or none is left.
    """
    shapes = [shape for column in columns for shape in column.shapes]
    known = list(dict.fromkeys(shape.name for shape in shapes))
    for name in wanted:
        if name not in known:
            raise DpreproError(
                f"no feature {name!r}{nearest(name, known) or '.'} There are: {', '.join(known)}"
            )
    numbers = {shape.name for shape in shapes if shape.edges is not None}
    chosen = [name for name in wanted or known if not numeric or name in numbers]
    if not chosen:
        raise DpreproError("none of these features is numeric")
    return chosen


def write_shapes(
    columns: Sequence[Column],
    features: Sequence[str],
    name: str,
    folder: Path,
    formats: Iterable[str],
    same_scale: bool = False,
) -> list[Path]:
    """Write a picture a feature, ``NAME-FEATURE``, and one of all, ``NAME``; return the paths."""
    figures = {}
    for position, feature in enumerate(features):
        own = f"{name}-{_file_name(feature)}"
        # Names that differ only in what a path forbids would overwrite each other.
        figures[f"{own}-{position}" if own in figures else own] = draw(
            columns, [feature], same_scale
        )
    if len(features) > 1:
        figures[name] = draw(columns, features, same_scale)
    return save_figures(figures, folder, formats)


def draw(columns: Sequence[Column], features: Sequence[str], same_scale: bool = False) -> Figure:
    """Return a figure with a row a feature and a column a model.

    Lines are the functions, dashed ones what was released where somebody edited it, bands two
    standard deviations of the noise of boosting, grey bars the density of the rows. `same_scale`
    gives the panels of a row one vertical scale: sizes can be compared, but where one model
    shrinks its functions their form is hard to see.
    """
    n_rows, n_columns = len(features), len(columns)
    size = (max(4.8, 3.1 * n_columns + 0.5), 2.35 * n_rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes_row, feature in zip(grid, features, strict=True):
        shapes = [column.get(feature) for column in columns]
        shown = [shape for shape in shapes if shape is not None]
        limits = _limits(shown) if same_scale else None
        for axes, shape in zip(axes_row, shapes, strict=True):
            if shape is None:
                axes.set_axis_off()
                continue
            draw_shape(axes, shape, limits)
            axes.set_xlabel(_plain(feature), fontsize=9)
        axes_row[0].set_ylabel(_plain(columns[0].unit), fontsize=9)
    for axes, column in zip(grid[0], columns, strict=True):
        axes.set_title(_plain(column.title), fontsize=10)
    keys = _keys([shape for column in columns for shape in column.shapes if shape.name in features])
    figure.legend(
        handles=keys, loc="outside lower center", ncols=min(len(keys), 2 * n_columns),
        frameon=False, fontsize=8,
    )  # fmt: skip
    return figure


def draw_shape(axes: Axes, shape: Shape, limits: tuple[float, float] | None = None) -> None:
    """Draw one function; `limits` are the lowest and highest value to make room for."""
    lowest, highest = limits or _limits([shape])
    margin = 0.06 * (highest - lowest or 1.0)
    height = (highest - lowest + 2 * margin) / (1 - _STRIP)
    axes.set_ylim(highest + margin - height, highest + margin)
    axes.axhline(0.0, color="0.6", linewidth=0.6)
    if shape.edges is None:
        _draw_categories(axes, shape)
    else:
        _draw_numbers(axes, shape, shape.edges)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_numbers(axes: Axes, shape: Shape, edges: np.ndarray) -> None:
    ordinary = edges.size - 1
    # A feature that is constant by its bounds still needs a width to be seen.
    edges = edges if edges[-1] > edges[0] else edges[0] + np.array([-0.5, 0.5])
    density = shape.densities[:ordinary]
    axes.bar(
        edges[:-1], 0.9 * _STRIP * density / (density.max() or 1.0), np.diff(edges), align="edge",
        color=ROWS, transform=axes.get_xaxis_transform(), linewidth=0,
    )  # fmt: skip
    if shape.noise is not None:
        lower, upper = (bound[:ordinary] for bound in _band(shape))
        axes.stairs(upper, edges, baseline=lower, fill=True, color=FUNCTION, alpha=0.22, lw=0)
    if shape.is_edited:
        axes.stairs(shape.released[:ordinary], edges, baseline=None, color=RELEASED, ls=(0, (3, 2)))
    axes.stairs(shape.values[:ordinary], edges, baseline=None, color=FUNCTION, linewidth=1.4)
    if shape.values.size > ordinary:
        _draw_missing(axes, shape, edges)


def _draw_missing(axes: Axes, shape: Shape, edges: np.ndarray) -> None:
    """Draw the bin of missing values as a point to the right of all numbers."""
    place = edges[-1] + 0.08 * (edges[-1] - edges[0])
    noise = 0.0 if shape.noise is None else _DEVIATIONS * shape.noise[-1]
    axes.errorbar(place, shape.values[-1], yerr=noise, fmt="o", color=FUNCTION, markersize=4)
    axes.annotate("missing", (place, 1.0), xycoords=("data", "axes fraction"),
                  ha="center", va="top", fontsize=7, color="0.3")  # fmt: skip


def _draw_categories(axes: Axes, shape: Shape) -> None:
    places = np.arange(shape.values.size)
    densities = shape.densities
    axes.bar(
        places, 0.9 * _STRIP * densities / (densities.max() or 1.0), 0.9, color=ROWS,
        transform=axes.get_xaxis_transform(), linewidth=0,
    )  # fmt: skip
    axes.bar(places, shape.values, 0.55, color=FUNCTION)
    if shape.noise is not None:
        axes.errorbar(
            places, shape.released, yerr=_DEVIATIONS * shape.noise, fmt="none",
            ecolor="black", elinewidth=0.9, capsize=2,
        )  # fmt: skip
    if shape.is_edited:
        axes.hlines(shape.released, places - 0.4, places + 0.4, color=RELEASED, ls=(0, (3, 2)))
    names = [_plain(_shortened(label)) for label in shape.labels]
    many = len(names) > 12
    axes.set_xticks(places, names, rotation=90, fontsize=5 if many else 7)
    axes.set_xlim(-0.7, places[-1] + 0.7)


def _band(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the noise around what was released; the function itself without."""
    noise = 0.0 if shape.noise is None else _DEVIATIONS * shape.noise
    return shape.released - noise, shape.released + noise


def _limits(shapes: Sequence[Shape]) -> tuple[float, float]:
    """Return the range of functions and bands, cut where a band dwarfs every function."""
    values = np.concatenate([np.append(shape.values, shape.released) for shape in shapes])
    bands = np.concatenate([np.concatenate(_band(shape)) for shape in shapes])
    room = 0.75 * float(np.ptp(values))
    lowest = max(float(bands.min()), float(values.min()) - room)
    highest = min(float(bands.max()), float(values.max()) + room)
    return min(lowest, float(values.min())), max(highest, float(values.max()))


def _keys(shapes: Sequence[Shape]) -> list[Line2D | Patch]:
    keys: list[Line2D | Patch] = [Line2D([], [], color=FUNCTION, label="shape function")]
    if any(shape.is_edited for shape in shapes):
        keys.append(Line2D([], [], color=RELEASED, linestyle=(0, (3, 2)), label="before editing"))
    if any(shape.noise is not None for shape in shapes):
        label = f"band or whisker: ± {_DEVIATIONS} sd of the noise of boosting"
        keys.append(Patch(color=FUNCTION, alpha=0.22, linewidth=0, label=label))
    return [*keys, Patch(color=ROWS, linewidth=0, label="density of the training rows")]


def _shortened(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def _file_name(feature: str) -> str:
    """Return a feature's name with nothing in it that a path could mean."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in feature).lstrip(".")


def _plain(text: str) -> str:
    """Return `text` so that matplotlib reads no formula into it."""
    return text.replace("$", r"\$")
