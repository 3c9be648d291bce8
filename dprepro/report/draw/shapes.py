"""Shape functions as pictures: features in rows, models in columns, pairs as heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dprepro.report.draw.files import save_figures
from dprepro.report.draw.style import BLUE, ORANGE, PHONE_WIDTH, open_frame
from dprepro.report.sheet import Sheet
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import file_names, plain, shortened

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel
    from dprepro.additive.shapes import Shape, Side

# Beyond these matplotlib's own arithmetic overflows or takes a range for a point.
_SMALLEST, _LARGEST = 1e-100, 1e100
# What is narrower beside its distance from zero, doubles cannot tell apart on an axis.
_NARROWEST = 1e-12
# A band this many times the function's size leaves any panel as well as a wider one.
_WIDEST_NOISE = 1e6

COLOURS = "PuOr_r"
"""From one colour through white to another: readable for colour-blind readers, and dark at both
ends in greyscale."""
FUNCTION, RELEASED, ROWS = BLUE, ORANGE, "0.82"
DEVIATIONS = 2
_HATCH = "////"
# The lowest part of a panel belongs to the density of the rows.
_STRIP = 0.18
_TICKS, _PAIR_TICKS = 4, 6
_LONGEST_LABEL, _LONGEST_PAIR_LABEL, _LONGEST_NAME = 16, 18, 44
_MOST_NAMED = 20

MOST_FEATURES = 20
"""So many rows a figure has at most, and so many features are drawn where none is named."""
MOST_MODELS = 8
"""So many columns a figure has at most."""
_MOST_ROWS = 6
# Inches: a picture is no larger than a page, A4 or letter, one way up or the other.
_PAGE_WIDTH, _PAGE_HEIGHT = 11.0, 11.0
_GRID_COLUMNS = 4

MaybeShape = TypeVar("MaybeShape", "Shape", "Shape | None")


def variation(shape: Shape) -> float:
    """Return the standard deviation of a function over the rows, by the counts of its bins."""
    size = float(np.abs(shape.values).max()) or 1.0
    largest = float(shape.counts.max())
    weights = shape.counts / largest if largest > 0 else np.ones(shape.counts.size)
    values = shape.values / size
    mean = np.average(values, weights=weights)
    return size * math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))


def in_range(shapes: Sequence[MaybeShape]) -> tuple[list[MaybeShape], float]:
    """Return functions in units that axes can show, and the unit: 1 but for extreme values."""
    values = [np.append(s.values, s.released) for s in shapes if s is not None]
    size = max((float(np.abs(found).max()) for found in values), default=0.0)
    unit = 1.0
    if size > 0 and not _SMALLEST <= size <= _LARGEST:
        unit = 10.0 ** max(math.floor(math.log10(size)), -300)
    return [None if s is None else _in_unit(s, unit, size / unit) for s in shapes], unit


def _in_unit(shape: Shape, unit: float, size: float) -> Shape:
    noise, counts = shape.noise, shape.counts
    if noise is not None:
        with np.errstate(over="ignore"):
            noise = np.minimum(noise / unit, _WIDEST_NOISE * size or _LARGEST)
    largest = float(counts.max())
    return replace(
        shape,
        values=shape.values / unit,
        released=shape.released / unit,
        noise=noise,
        # Only their ratios are drawn; the sum of extreme ones overflows.
        counts=counts / largest if largest > _LARGEST else counts,
    )


def has_room(edges: np.ndarray) -> bool:
    """Whether an axis can show a range with these borders of bins."""
    with np.errstate(over="ignore"):
        span = float(edges[-1] - edges[0])
    return _SMALLEST <= span <= _LARGEST and span > _NARROWEST * float(np.abs(edges).max())


def equally_wide(shape: Shape, edges: np.ndarray) -> tuple[Shape, list[int], list[str]]:
    """Return a function with all bins one wide, some borders, and what these really are."""
    places = sorted({round(place) for place in np.linspace(0, edges.size - 1, _TICKS)})
    names = [f"{edges[place]:.4g}" for place in places]
    if len(set(names)) < len(names):  # digits enough to tell them apart leave room for two
        places = [0, edges.size - 1]
        names = [repr(float(edges[place])) for place in places]
    return replace(shape, edges=np.arange(edges.size, dtype=float)), places, names


def heights(shape: Shape, n_bins: int) -> np.ndarray:
    """Return the densities of the first bins as shares of the largest of them."""
    with np.errstate(over="ignore"):  # a bin can be narrower than its share allows
        found = np.minimum(shape.densities[:n_bins], _LARGEST)
    shares: np.ndarray = found / (found.max() or 1.0)
    return shares


def draw_pair(axes: Axes, shape: Shape, largest: float | None = None, measure: str = "") -> None:
    """Draw the function of a pair: a cell for each pair of groups, with a colour bar around 0.

    Cells are hatched whose value as released lies within two standard deviations of its noise.
    `largest` is what the strongest colours stand for, by default the largest value, and `measure`
    what stands beside the colour bar.
    """
    assert shape.sides is not None
    first, second = shape.sides
    grid = shape.values.reshape(len(first.labels), len(second.labels))
    most = largest or float(np.abs(shape.values).max()) or 1.0
    image = axes.imshow(
        grid, cmap=COLOURS, vmin=-most, vmax=most, aspect="auto", origin="lower",
        interpolation="nearest",
    )  # fmt: skip
    for cell in np.flatnonzero(lost_in_noise(shape)):
        row, column = divmod(int(cell), grid.shape[1])
        box = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, linewidth=0)
        box.set(hatch=_HATCH, edgecolor="0.55")
        axes.add_patch(box)
    _name_side(axes.xaxis, second, rotation=90)
    _name_side(axes.yaxis, first)
    axes.tick_params(labelsize=7)
    figure = axes.figure
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    bar.locator = MaxNLocator(5, symmetric=True)
    bar.update_ticks()
    bar.set_label(measure, fontsize=8)


def lost_in_noise(shape: Shape) -> np.ndarray:
    """Return which cells were released within two deviations of their noise around 0, bool (B,)."""
    if shape.noise is None:
        return np.zeros(shape.values.size, dtype=bool)
    return np.asarray(np.abs(shape.released) < DEVIATIONS * shape.noise)


def key_of_noise() -> Patch:
    """Return what the legend says of hatched cells."""
    label = f"hatched: within {DEVIATIONS} sd of the noise around 0"
    return Patch(facecolor="white", edgecolor="0.55", hatch=_HATCH, linewidth=0, label=label)


def _name_side(axis: object, side: Side, rotation: float = 0.0) -> None:
    """Name the feature, and some of its groups."""
    step = -(-len(side.labels) // _PAIR_TICKS)
    places = np.arange(0, len(side.labels), step)
    names = [plain(shortened(side.labels[k], _LONGEST_PAIR_LABEL)) for k in places]
    axis.set_ticks(places, names, rotation=rotation)  # type: ignore[attr-defined]
    axis.set_label_text(plain(shortened(side.name, 44)), fontsize=9)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class ModelShapes:
    """The functions of one model.

    `unit` says what they are measured in, `warning` what a caption has to say of the model.
    """

    title: str
    shapes: tuple[Shape, ...]
    unit: str = "log odds"
    warning: str = ""

    def get(self, feature: str) -> Shape | None:
        """Return the function of a feature, or None."""
        return next((shape for shape in self.shapes if shape.name == feature), None)


def columns_of(title: str, model: AdditiveModel, warning: str = "") -> list[ModelShapes]:
    """Return the functions of a fitted or loaded model; of several classes a column for each class.

    Of more than `MOST_MODELS` classes those with the largest intercepts have one.
    """
    from dprepro.additive.describe import measure_of
    from dprepro.additive.shapes import shapes_of

    unit = shortened(measure_of(model), _LONGEST_NAME)
    shapes = shapes_of(model)
    if not model.several_classes:
        return [ModelShapes(title, tuple(shapes), unit, warning)]
    drawn = np.sort(np.argsort(-model.intercept_, kind="stable")[:MOST_MODELS])
    return [
        ModelShapes(
            f"{model.class_names[place]} ({title})",
            tuple(shape.of_class(place) for shape in shapes),
            "log odds of the class",
            warning,
        )
        for place in drawn.tolist()
    ]


def select_features(
    columns: Sequence[ModelShapes], wanted: Sequence[str] = (), numeric: bool = False
) -> list[str]:
    """Return the names of the features to draw, in the models' order or as wanted.

    Raises DpreproError if a wanted feature is in none of the models, or none is left.
    """
    shapes = [shape for column in columns for shape in column.shapes]
    known = list(dict.fromkeys(shape.name for shape in shapes))
    there = [shortened(name, _LONGEST_NAME) for name in known[:_MOST_NAMED]]
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    for name in wanted:
        if name not in known:
            raise DpreproError(
                f"no feature {name!r}{nearest(name, known) or '.'} "
                f"There are: {', '.join(there)}{more}"
            )
    numbers = {shape.name for shape in shapes if shape.edges is not None}
    chosen = [name for name in dict.fromkeys(wanted or known) if not numeric or name in numbers]
    if not chosen:
        raise DpreproError("none of these features is numeric")
    return chosen


def most_important(
    columns: Sequence[ModelShapes], features: Sequence[str], most: int = MOST_FEATURES
) -> list[str]:
    """Return at most so many of the features, those that say most, in that order.

    A feature says as much as the largest standard deviation of its functions over the rows.
    """
    said = dict.fromkeys(features, 0.0)
    for shape in (shape for column in columns for shape in column.shapes):
        if shape.name in said:
            said[shape.name] = max(said[shape.name], variation(shape))
    return sorted(features, key=lambda name: -said[name])[:most]


def classes_left_out(model: AdditiveModel) -> str:
    """Say that `columns_of` has not all classes of a model; empty where it has."""
    if not model.several_classes or len(model.class_names) <= MOST_MODELS:
        return ""
    return (
        f"{MOST_MODELS} of {len(model.class_names)} classes are drawn, those with the largest "
        "intercepts; dprepro show draws any other"
    )


def left_out(drawn: int, there: int) -> str:
    """Say that not all features are drawn; empty where they are."""
    if drawn == there:
        return ""
    return (
        f"{drawn} of {there} features are drawn, those whose functions vary most over the rows; "
        "dprepro plot shapes --feature NAME draws any other"
    )


def require_room(models: int) -> None:
    """Raise `DpreproError` where a figure cannot hold so many models side by side."""
    if models > MOST_MODELS:
        raise DpreproError(
            f"{models} models or classes side by side, but at most {MOST_MODELS} fit into a "
            "picture; choose with --method and --epsilon, or name fewer with --model"
        )


def write_shapes(
    columns: Sequence[ModelShapes],
    features: Sequence[str],
    name: str,
    folder: Path,
    formats: Iterable[str],
    own_scale: bool = False,
    sheet: Sheet | None = None,
) -> list[Path]:
    """Write a picture a feature, ``NAME-FEATURE``, and one of all, ``NAME``; return the paths.

    The picture of all fills one page at most: of one model it holds the first `MOST_FEATURES`, of
    several fewer. A feature whose name is no safe, short and distinct name of a
    file has what is left of it there, with a digest.
    """
    figures = {
        f"{name}-{own}": partial(draw_shapes, columns, [feature], own_scale)
        for feature, own in zip(features, file_names(features), strict=True)
    }
    if len(features) > 1:
        most = MOST_FEATURES if len(columns) == 1 else _MOST_ROWS
        figures[name] = partial(draw_shapes, columns, features[:most], own_scale)
    return save_figures(figures, folder, formats, sheet)


def draw_shapes(
    columns: Sequence[ModelShapes], features: Sequence[str], own_scale: bool = False
) -> Figure:
    """Return a figure of the functions of one or more models.

    With several models each feature has a row, and each model a column. With one model its features
    fill a grid.

    Lines are the functions, dashed ones what was released where somebody edited it, bands two
    standard deviations of the noise of boosting, grey bars the density of the rows. Panels that
    show one feature, and all panels of one model, have the same vertical scale, so that sizes can
    be compared. `own_scale` gives each panel its own, so that forms can be seen.
    """
    require_room(len(columns))
    if len(columns) == 1:
        figure = _draw_grid(columns[0], features, own_scale)
    else:
        figure = _draw_rows(columns, features, own_scale)
    _draw_keys(figure, columns, features, 1 if len(figure.axes) == 1 else 2)
    return figure


def draw_column(columns: Sequence[ModelShapes], feature: str) -> Figure:
    """Return a figure that fits a phone: a feature's function in one model below the other."""
    require_room(len(columns))
    size = (PHONE_WIDTH, 1.9 * len(columns) + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(columns), 1, squeeze=False)[:, 0]
    _draw_row(list(axes), columns, feature, own_scale=False)
    for one, column in zip(axes, columns, strict=True):
        one.set_title(plain(shortened(column.title, _LONGEST_NAME)), fontsize=10, loc="left")
        one.label_outer()
        one.tick_params(labelbottom=True)
    _draw_keys(figure, columns, [feature], 1)
    return figure


def _draw_keys(
    figure: Figure, columns: Sequence[ModelShapes], features: Sequence[str], across: int
) -> None:
    keys = _keys([shape for column in columns for shape in column.shapes if shape.name in features])
    figure.legend(handles=keys, loc="outside lower center", ncols=across, frameon=False, fontsize=8)


def _draw_grid(column: ModelShapes, features: Sequence[str], own_scale: bool) -> Figure:
    across = min(_GRID_COLUMNS, len(features))
    down = math.ceil(len(features) / across)
    size = (max(4.8, 2.7 * across), min(2.1 * down + 1.2, _PAGE_HEIGHT))
    figure = Figure(figsize=size if across > 1 else (4.8, 3.25), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    shapes, unit = in_range([column.get(feature) for feature in features])
    drawn = [shape for shape in shapes if shape is not None]
    limits = None if own_scale else _limits(drawn)
    largest = None if own_scale else _largest_of_pairs(drawn)
    for axes, shape, feature in zip(grid.flat, drawn, features, strict=False):
        # The sides of a heat map are features: what it measures stands beside its colours.
        measure = _measure(column, unit) if len(drawn) == 1 else ""
        _draw_panel(axes, shape, feature, limits, largest, measure)
    for axes in list(grid.flat)[len(drawn) :]:
        axes.remove()
    title = plain(shortened(column.title, _LONGEST_NAME))
    if len(drawn) > 1:
        figure.suptitle(title, fontsize=10)
        figure.supylabel(_measure(column, unit), fontsize=9)
    else:
        grid[0, 0].set_title(title, fontsize=10)
        if drawn[0].sides is None:
            grid[0, 0].set_ylabel(_measure(column, unit), fontsize=9)
    return figure


def _draw_rows(columns: Sequence[ModelShapes], features: Sequence[str], own_scale: bool) -> Figure:
    n_rows, n_columns = len(features), len(columns)
    size = (
        max(4.8, min(2.9 * n_columns + 0.5, _PAGE_WIDTH)),
        min(2.35 * n_rows + 0.9, max(_PAGE_HEIGHT, 1.4 * n_rows)),
    )
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes_row, feature in zip(grid, features, strict=True):
        _draw_row(axes_row, columns, feature, own_scale)
    length = min(_LONGEST_NAME, int(12 * size[0] / n_columns))
    for axes, column in zip(grid[0], columns, strict=True):
        axes.set_title(plain(shortened(column.title, length)), fontsize=10 if length > 25 else 8)
    return figure


def _draw_row(
    axes_row: Sequence[Axes], columns: Sequence[ModelShapes], feature: str, own_scale: bool
) -> None:
    shapes, unit = in_range([column.get(feature) for column in columns])
    there = [shape for shape in shapes if shape is not None]
    limits = None if own_scale else _limits(there)
    largest = None if own_scale else _largest_of_pairs(there)
    for axes, shape in zip(axes_row, shapes, strict=True):
        if shape is None:
            axes.set_axis_off()
            continue
        _draw_panel(axes, shape, feature, limits, largest, _measure(columns[0], unit))
    if all(shape is None or shape.sides is None for shape in shapes):
        axes_row[0].set_ylabel(_measure(columns[0], unit), fontsize=9)


def _draw_panel(
    axes: Axes,
    shape: Shape,
    feature: str,
    limits: tuple[float, float] | None,
    largest: float | None,
    measure: str,
) -> None:
    if shape.sides is not None:
        draw_pair(axes, shape, largest, measure)
        return
    draw_shape(axes, shape, limits)
    axes.set_xlabel(plain(shortened(feature, _LONGEST_NAME)), fontsize=9)


def _largest_of_pairs(shapes: Sequence[Shape]) -> float | None:
    sizes = [float(np.abs(shape.values).max()) for shape in shapes if shape.sides is not None]
    return max(sizes, default=None)


def _measure(column: ModelShapes, unit: float) -> str:
    return plain(column.unit if unit == 1 else f"{column.unit} / {unit:g}")


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
    open_frame(axes)


def _draw_numbers(axes: Axes, shape: Shape, edges: np.ndarray) -> None:
    ordinary = edges.size - 1
    if not has_room(edges):
        shape, places, names = equally_wide(shape, edges)
        edges = np.arange(edges.size, dtype=float)
        axes.set_xticks(places, names)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(_TICKS))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    axes.stairs(
        0.9 * _STRIP * heights(shape, ordinary), edges, fill=True, color=ROWS, lw=0,
        transform=axes.get_xaxis_transform(),
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
    noise = 0.0 if shape.noise is None else DEVIATIONS * shape.noise[-1]
    axes.errorbar(place, shape.values[-1], yerr=noise, fmt="o", color=FUNCTION, markersize=4)
    axes.annotate("missing", (place, 1.0), xycoords=("data", "axes fraction"),
                  ha="center", va="top", fontsize=7.5, color="0.3")  # fmt: skip


def _draw_categories(axes: Axes, shape: Shape) -> None:
    places = np.arange(shape.values.size)
    axes.bar(
        places, 0.9 * _STRIP * heights(shape, places.size), 0.9, color=ROWS,
        transform=axes.get_xaxis_transform(), linewidth=0,
    )  # fmt: skip
    axes.bar(places, shape.values, 0.55, color=FUNCTION)
    if shape.noise is not None:
        axes.errorbar(
            places, shape.released, yerr=DEVIATIONS * shape.noise, fmt="none",
            ecolor="black", elinewidth=0.9, capsize=2,
        )  # fmt: skip
    if shape.is_edited:
        axes.hlines(shape.released, places - 0.4, places + 0.4, color=RELEASED, ls=(0, (3, 2)))
    names = [plain(shortened(label, _LONGEST_LABEL)) for label in shape.labels]
    many = len(names) > 12
    axes.set_xticks(places, names, rotation=90, fontsize=5 if many else 7)
    axes.set_xlim(-0.7, places[-1] + 0.7)


def _band(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of the noise around what was released; the function itself without."""
    noise = 0.0 if shape.noise is None else DEVIATIONS * shape.noise
    return shape.released - noise, shape.released + noise


def _limits(shapes: Sequence[Shape]) -> tuple[float, float]:
    """Return the range of functions and of whole bands."""
    shapes = [shape for shape in shapes if shape.sides is None]
    if not shapes:
        return -1.0, 1.0
    values = np.concatenate([np.append(shape.values, shape.released) for shape in shapes])
    bands = np.concatenate([np.concatenate(_band(shape)) for shape in shapes])
    return float(min(bands.min(), values.min())), float(max(bands.max(), values.max()))


def _keys(shapes: Sequence[Shape]) -> list[Line2D | Patch]:
    pairs = [shape for shape in shapes if shape.sides is not None]
    hatched = [key_of_noise()] if any(shape.noise is not None for shape in pairs) else []
    shapes = [shape for shape in shapes if shape.sides is None]
    if not shapes:
        return [*hatched]
    keys: list[Line2D | Patch] = [Line2D([], [], color=FUNCTION, label="shape function")]
    if any(shape.is_edited for shape in shapes):
        keys.append(Line2D([], [], color=RELEASED, linestyle=(0, (3, 2)), label="before editing"))
    if any(shape.noise is not None for shape in shapes):
        label = f"band or whisker: ± {DEVIATIONS} sd of the noise of boosting"
        keys.append(Patch(color=FUNCTION, alpha=0.22, linewidth=0, label=label))
    density = Patch(color=ROWS, linewidth=0, label="density of the training rows")
    return [*keys, *hatched, density]
