"""Metric against a parameter: what a config's `grid` was run for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from dprepro.report.draw.curves import kept_apart
from dprepro.report.draw.keys import EDGE, Key, draw_legend, line_style, set_out
from dprepro.report.draw.panels import Point
from dprepro.report.draw.style import (
    MOST_COLOURED,
    POINTS_PER_INCH,
    Look,
    fitted,
    grey_looks,
    looks,
    metric_label,
    open_frame,
    text_width,
)
from dprepro.report.sheet import COLUMN, Sheet
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Metric, with_level
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import plain

# In letters of labels: axes of a free height, and the least axes.
_HIGH, _LEAST = 16.0, 6.0
_SMALL = 0.875
_DOTTED = (0, (1, 2))
_LOGARITHMIC_FROM = 8.0
"""A factor between the smallest and the largest value from which they are spread in octaves."""


@dataclass(frozen=True)
class Sweep:
    """One method at one privacy level: (value, mean, sd), in the order of the values.

    `level` is the point of the value none (null in the config), which has no place on the axis.
    Sweeps of one `method` differ in their privacy level, and share its colour and marker.
    """

    title: str
    points: tuple[tuple[float, Point], ...]
    level: Point | None = None
    method: str = ""


def build_sweeps(
    results: Results, parameter: str, metric: Metric, titles: Mapping[str, str]
) -> dict[str, list[Sweep]]:
    """Return the sweeps over a parameter, by dataset.

    A cell belongs to a sweep if its config sets the parameter, or if it differs from such a cell in
    the parameter alone, which then has its default. `titles` are headings of methods, by name.

    Raises DpreproError if no result sets the parameter to at least two values.
    """
    cells = [cell for cell in results.cells if cell.values.get(metric.name)]
    found: dict[str, list[Sweep]] = {}
    groups: dict[tuple[str, str, float], dict[float | None, ResultCell]] = {}
    for cell in cells:
        if _is_part(cell, cells, parameter):
            key = (cell.dataset, cell.task.method, cell.task.epsilon)
            groups.setdefault(key, {})[_value(cell, parameter)] = cell
    for (dataset, method, epsilon), by_value in sorted(groups.items(), key=lambda g: g[0]):
        if len(by_value) > 1:
            title = with_level(titles.get(method, method), epsilon)
            found.setdefault(dataset, []).append(_sweep(title, method, by_value, metric.name))
    if not found:
        raise DpreproError(
            f"no results over several values of {parameter!r}; a config's `grid` runs them, e.g. "
            "mnist-maps for n_maps"
        )
    return found


def _is_part(cell: ResultCell, cells: Iterable[ResultCell], parameter: str) -> bool:
    if parameter in cell.task.params:
        return True
    if parameter not in _defaults(cell):
        return False
    return any(
        parameter in other.task.params
        and _place(other) == _place(cell)
        and _rest(other, parameter) == _rest(cell, parameter)
        for other in cells
    )


def _place(cell: ResultCell) -> tuple[str, str, float]:
    return (cell.dataset, cell.task.method, cell.task.epsilon)


def _rest(cell: ResultCell, parameter: str) -> dict[str, Any]:
    return {name: value for name, value in cell.task.params.items() if name != parameter}


def _value(cell: ResultCell, parameter: str) -> float | None:
    default = _defaults(cell).get(parameter)
    value = cell.task.params.get(parameter, default)
    if value is not None and not isinstance(value, int | float):
        raise DpreproError(f"{parameter!r} of {cell.task.method} is no number: {value!r}")
    return value


def _sweep(
    title: str, method: str, by_value: Mapping[float | None, ResultCell], metric: str
) -> Sweep:
    points = {
        value: Point(cell.task.epsilon, cell.mean(metric), cell.sd(metric))
        for value, cell in by_value.items()
    }
    level = points.pop(None, None)
    placed = sorted((float(v), p) for v, p in points.items() if v is not None)
    return Sweep(title, tuple(placed), level, method)


def draw_sweeps(
    sweeps: Sequence[Sweep],
    parameter: str,
    metric: Metric,
    heading: str,
    sheet: Sheet | None = None,
) -> Figure:
    """Return a figure: a curve a sweep, bars of one standard deviation, levels as dotted lines.

    At most `MOST_COLOURED` curves have a colour; levels of one method share its hue.

    Raises DpreproError if they do not fit on the sheet.
    """
    sheet = sheet or Sheet()
    em, small = sheet.points / POINTS_PER_INCH, _SMALL * sheet.points
    styles = _styles(sweeps)
    width = sheet.width or COLUMN
    legend = set_out(_keys(sweeps, styles), width, small, sheet.height)
    below = legend.height + EDGE + 3.2 * em
    above = EDGE + 1.5 * em
    height = sheet.height or below + above + _HIGH * em
    if height - below - above < _LEAST * em or width < 2 * _LEAST * em:
        raise DpreproError(
            f"{width:g} x {height:g} inches have no room for these curves with letters of "
            f"{sheet.points:g} points. Choose a larger --size, or a smaller --font"
        )
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    for sweep, look in zip(sweeps, styles, strict=True):
        _draw_sweep(axes, sweep, look, sheet.points)
    values = sorted({value for sweep in sweeps for value, _ in sweep.points})
    _set_values(axes, values)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(labelsize=small)
    open_frame(axes, grid=True)
    names = axes.yaxis.get_major_formatter().format_ticks(list(axes.yaxis.get_majorticklocs()))
    left = EDGE + 2.2 * em + max(text_width(name, small) for name in names)
    box = Bbox.from_extents(left, below, width - 2 * em, height - above)
    axes.set_position(Bbox(box.get_points() / figure.get_size_inches()))
    _name_values(axes, values, box.width, small)
    inches = figure.dpi_scale_trans
    for text, room, across, up, rotation in (
        (plain(heading), width - left, (left + width) / 2, height - EDGE - 0.6 * em, 0),
        (plain(parameter), width - left, (left + width) / 2, below - 2.5 * em, 0),
        (metric_label(metric), height - below, EDGE + 0.55 * em, (below + height) / 2, 90),
    ):
        said, size = fitted(text, sheet.points, room)
        figure.text(
            across, up, said, fontsize=size, rotation=rotation, ha="center", va="center",
            transform=inches,
        )  # fmt: skip
    draw_legend(figure, legend, legend.height + EDGE)
    return figure


def _styles(sweeps: Sequence[Sweep]) -> list[Look]:
    places = [str(place) for place in range(len(sweeps))]
    coloured, others = places[:MOST_COLOURED], places[MOST_COLOURED:]
    families = [sweep.method or sweep.title for sweep in sweeps[:MOST_COLOURED]]
    found = {**looks(coloured, families), **grey_looks(others, named=True)}
    return [found[place] for place in places]


def _keys(sweeps: Sequence[Sweep], styles: Sequence[Look]) -> list[Key]:
    keys = [Key(sweep.title, look) for sweep, look in zip(sweeps, styles, strict=True)]
    if any(sweep.level for sweep in sweeps):
        keys.append(Key("the same, none", Look("0.3", _DOTTED, "")))
    return [*keys, Key("mean ± sd", bar=0.7)]


def _draw_sweep(axes: Axes, sweep: Sweep, look: Look, points: float) -> None:
    axes.errorbar(
        [value for value, _ in sweep.points],
        [point.mean for _, point in sweep.points],
        yerr=[point.sd or 0.0 for _, point in sweep.points],
        elinewidth=0.08 * points, **line_style(look, points),
    )  # fmt: skip
    if sweep.level is not None:
        axes.axhline(
            sweep.level.mean, color=look.colour, linestyle=_DOTTED, linewidth=0.12 * points
        )


def _set_values(axes: Axes, values: Sequence[float]) -> None:
    """Put a tick at each value; values that span many octaves stand on a logarithmic axis."""
    if values and values[-1] > _LOGARITHMIC_FROM * values[0] > 0:
        axes.set_xscale("log", base=2)
    axes.minorticks_off()


def _name_values(axes: Axes, values: Sequence[float], wide: float, size: float) -> None:
    """Name each value under its place, but for those that would stand on another's name."""
    names = {value: f"{value:g}" for value in values}
    share = (axes.transData + axes.transAxes.inverted()).transform
    spans = {
        value: (float(share((value, 0.0))[0]) * wide, 1.1 * text_width(name, size))
        for value, name in names.items()
    }
    kept = kept_apart(spans, 0.3 * size / POINTS_PER_INCH)
    axes.set_xticks(values, [name if value in kept else "" for value, name in names.items()])
    axes.minorticks_off()


def _defaults(cell: ResultCell) -> Mapping[str, Any]:
    from dprepro.methods import registry  # loads every library that trains: only when asked

    return registry.get(cell.task.method).defaults
