"""Sweeps find the cells that differ in one parameter, and nothing else."""

import math
from dataclasses import replace

import pytest

from dprepro.report.draw.style import MOST_COLOURED
from dprepro.report.draw.sweeps import build_sweeps, draw_sweeps
from dprepro.report.sheet import Sheet
from dprepro.results.folder import Results
from dprepro.results.margins import METRICS
from dprepro.runtime.errors import DpreproError
from tests.report.draw.test_curves import assert_legible, coloured_lines, labels_of
from tests.report.journals import cell

ACCURACY = METRICS["accuracy"]


def maps(value, mean, label="", epsilon=2.0, **params):
    given = {} if value == "default" else {"n_maps": value}
    return cell(
        [mean, mean + 0.01], "accuracy", method="dp-llm", label=label or f"dp-llm n_maps={value}",
        epsilon=epsilon, dataset="mnist", params={**params, **given},
    )  # fmt: skip


def sweeps(*cells):
    return build_sweeps(Results(cells), "n_maps", ACCURACY, {"dp-llm": "DP-LLM"})


def test_points_are_in_order_and_the_default_joins_them():
    found = sweeps(maps(60, 0.92), maps(3, 0.9), maps("default", 0.94))
    (sweep,) = found["mnist"]
    assert sweep.title == "DP-LLM, ε=2"
    assert [value for value, _ in sweep.points] == [3, 30, 60]
    assert [point.mean for _, point in sweep.points] == pytest.approx([0.905, 0.945, 0.925])


def test_cells_that_differ_in_more_than_the_parameter_stay_out():
    found = sweeps(maps(1, 0.8), maps(3, 0.9), maps("default", 0.94, accountant="moments"))
    assert [value for value, _ in found["mnist"][0].points] == [1, 3]


def test_each_privacy_level_is_a_curve_and_none_is_a_level():
    found = sweeps(
        maps(1, 0.8), maps(3, 0.9), maps(None, 0.7), maps(1, 0.9, epsilon=math.inf),
        maps(9, 0.95, epsilon=math.inf), maps(9, 0.95, epsilon=0.5),
    )["mnist"]  # fmt: skip
    assert [sweep.title for sweep in found] == ["DP-LLM, ε=2", "DP-LLM"]
    assert found[0].level is not None
    assert found[0].level.mean == pytest.approx(0.705)
    figure = draw_sweeps(found, "n_maps", ACCURACY, "mnist")
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "3", "9"]
    assert axes.get_xscale() == "log"
    assert labels_of(figure) == ["DP-LLM, ε=2", "DP-LLM", "the same, none", "mean ± sd"]


def test_a_value_of_zero_is_a_point_like_any_other():
    (sweep,) = sweeps(maps(0, 0.8), maps(3, 0.9))["mnist"]
    assert [value for value, _ in sweep.points] == [0, 3]


def test_without_a_sweep_there_is_nothing_to_draw():
    with pytest.raises(DpreproError, match="no results over several values of 'n_maps'"):
        sweeps(maps(1, 0.8), maps("default", 0.9, accountant="pld"))


def test_a_curve_has_bars_of_one_deviation_and_a_level_is_a_line():
    found = sweeps(maps(1, 0.8), maps(3, 0.9), maps(None, 0.7))["mnist"]
    figure = draw_sweeps(found, "n_maps", ACCURACY, "mnist, by maps")
    (axes,) = figure.axes
    assert "mnist, by maps" in [text.get_text() for text in figure.texts]
    (bars,) = axes.containers
    line, _, (spans,) = bars.lines
    assert list(line.get_xdata()) == [1, 3]
    assert list(line.get_ydata()) == pytest.approx([0.805, 0.905])
    lower, upper = spans.get_segments()[0][:, 1]
    assert upper - lower == pytest.approx(2 * found[0].points[0][1].sd)
    levels = [one for one in axes.lines if list(one.get_ydata()) == [found[0].level.mean] * 2]
    assert len(levels) == 1


@pytest.mark.parametrize(("first", "scale"), [(0, "linear"), (1, "log"), (4, "linear")])
def test_values_over_many_octaves_are_on_a_logarithmic_axis(first, scale):
    found = sweeps(maps(first, 0.8), maps(9, 0.9))["mnist"]
    assert draw_sweeps(found, "n_maps", ACCURACY, "mnist").axes[0].get_xscale() == scale


@pytest.mark.parametrize("sheet", [None, Sheet(3.3, 2.4, 8.0), Sheet(7.0, 5.0, 12.0)])
@pytest.mark.parametrize("number", [1, 4, 10])
def test_nothing_overlaps_and_eight_curves_have_a_colour(number, sheet):
    one = sweeps(maps(1, 0.8), maps(3, 0.9), maps(None, 0.7))["mnist"][0]
    several = [replace(one, title=f"DP-LLM, ε={k}", level=None) for k in range(1, number)]
    figure = draw_sweeps([one, *several], "n_maps", ACCURACY, "mnist", sheet)
    figure.draw_without_rendering()
    assert_legible(figure)
    assert len(coloured_lines(figure.axes[0])) == min(number, MOST_COLOURED)
    if sheet:
        assert tuple(figure.get_size_inches()) == (sheet.width, sheet.height)


def test_a_sweep_without_room_says_so():
    found = sweeps(maps(1, 0.8), maps(3, 0.9))["mnist"]
    with pytest.raises(DpreproError, match=r"3 x 1 inches have no room.*--size"):
        draw_sweeps(found, "n_maps", ACCURACY, "mnist", Sheet(3.0, 1.0, 8.0))
