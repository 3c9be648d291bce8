"""Metric against a parameter: what a config's `grid` was run for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dprepro.report.draw.curves import End, Point, name_ends, room_for
from dprepro.report.draw.style import Look, metric_label, open_frame, with_dashes
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Metric, with_level
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import plain

_HEIGHT = 3.4  # of the axes, in inches
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


def draw_sweeps(sweeps: Sequence[Sweep], parameter: str, metric: Metric, heading: str) -> Figure:
    """Return a figure: a curve a sweep, bars of one standard deviation, levels as thin lines."""
    names = sum(1 + (sweep.level is not None) for sweep in sweeps)
    height = max(_HEIGHT, room_for(names))
    figure = Figure(figsize=(6.8, height + 1.0), layout="constrained")
    axes = figure.subplots()
    chosen = with_dashes([(sweep.method or sweep.title) for sweep in sweeps])
    for sweep, look in zip(sweeps, chosen, strict=True):
        _draw_sweep(axes, sweep, look)
    values = sorted({value for sweep in sweeps for value, _ in sweep.points})
    _set_values(axes, values)
    axes.set_xlabel(plain(parameter))
    axes.set_ylabel(metric_label(metric))
    axes.set_title(plain(heading), fontsize=11, loc="left")
    open_frame(axes, grid=True)
    axes.set_ylim(axes.get_ylim())
    ends = (_ends(sweep, look, values[-1]) for sweep, look in zip(sweeps, chosen, strict=True))
    name_ends(axes, [end for found in ends for end in found], height)
    return figure


def _ends(sweep: Sweep, look: Look, last: float) -> Iterable[End]:
    if sweep.points:
        value, point = sweep.points[-1]
        yield End(sweep.title, look, value, point.mean)
    if sweep.level is not None:
        yield End(f"{sweep.title}, none", look, last, sweep.level.mean)


def _draw_sweep(axes: Axes, sweep: Sweep, look: Look) -> None:
    axes.errorbar(
        [value for value, _ in sweep.points],
        [point.mean for _, point in sweep.points],
        yerr=[point.sd or 0.0 for _, point in sweep.points],
        color=look.colour, linestyle=look.dash, marker=look.marker, markersize=4.5,
        linewidth=1.4, elinewidth=0.9, capsize=2,
    )  # fmt: skip
    if sweep.level is not None:
        axes.axhline(sweep.level.mean, color=look.colour, linestyle=(0, (1, 2)), linewidth=1.2)


def _set_values(axes: Axes, values: Sequence[float]) -> None:
    """Put a tick at each value; values that span many octaves stand on a logarithmic axis."""
    if values and values[-1] > _LOGARITHMIC_FROM * values[0] > 0:
        axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()


def _defaults(cell: ResultCell) -> Mapping[str, Any]:
    from dprepro.methods import registry  # loads every library that trains: only when asked

    return registry.get(cell.task.method).defaults
