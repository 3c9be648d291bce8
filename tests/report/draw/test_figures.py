import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.image import imread

from dprepro.report.draw.curves import Curve, Panel, Point
from dprepro.report.draw.figures import _tick_names, draw_curves, looks_of, positions, write_figures
from dprepro.report.read.metrics import METRICS

INF = math.inf
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, INF)
TITLES = ("DPBoost", "Logistic regression", "DPEBM-Classic", "DPEBM-GDP", "Fair")


def panel(dataset="adult", metric="auc", factor=1.0, titles=TITLES, **fields):
    """Return a panel of curves that measure a hundredth less than is published."""
    curves = [
        Curve(
            f"method-{i}",
            title,
            tuple(Point(e, factor * (0.5 + 0.06 * i), 0.02) for e in EPSILONS),
            tuple(Point(e, factor * (0.51 + 0.06 * i), 0.02) for e in EPSILONS),
        )
        for i, title in enumerate(titles)
    ]
    return Panel(dataset, dataset.title(), METRICS[metric], tuple(curves), **fields)


def drawn(*panels):
    figure = draw_curves(panels, looks_of(panels))
    figure.draw_without_rendering()
    return figure


def markers(axes):
    """Return the marker lines of the error bars: filled ones, then hollow ones."""
    lines = [container.lines[0] for container in axes.containers]
    hollow = [matplotlib.colors.same_color(line.get_markerfacecolor(), "white") for line in lines]
    return (
        [line for line, is_hollow in zip(lines, hollow, strict=True) if not is_hollow],
        [line for line, is_hollow in zip(lines, hollow, strict=True) if is_hollow],
    )


def test_the_axis_counts_octaves_and_puts_non_private_behind():
    places = positions(EPSILONS)
    assert [places[e] for e in EPSILONS[:-1]] == [-1, 0, 1, 2, 3]
    assert places[INF] > places[8.0] + 1
    assert positions([INF]) == {INF: 0.0}


def test_filled_markers_are_measured_and_hollow_ones_published():
    one = panel()
    (axes,) = drawn(one).axes
    filled, hollow = markers(axes)
    for lines, side in ((filled, "measured"), (hollow, "published")):
        assert len(lines) == len(one.curves)
        for line, curve in zip(lines, one.curves, strict=True):
            assert list(line.get_ydata()) == [point.mean for point in getattr(curve, side)]


def test_lines_join_the_private_points_only():
    (axes,) = drawn(panel()).axes
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    joined = [line for line in lines if len(line.get_xdata()) == 5]
    assert len(joined) == len(TITLES)
    split = positions(EPSILONS)[8.0] + 0.75
    assert all(max(line.get_xdata()) < split for line in joined)


def test_error_bars_reach_one_standard_deviation():
    (axes,) = drawn(panel(titles=TITLES[:1])).axes
    for container in axes.containers:
        (bars,) = container.lines[2]
        heights = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
        assert heights == pytest.approx([0.04] * len(EPSILONS))


def test_no_two_points_of_one_epsilon_share_a_place():
    (axes,) = drawn(panel()).axes
    filled, hollow = markers(axes)
    first = [line.get_xdata()[0] for line in (*filled, *hollow)]
    assert len(set(np.round(first, 6))) == 2 * len(TITLES)
    assert max(first) - min(first) < 1, "they stay nearer than the next epsilon"


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_legend_covers_no_data_and_nothing_is_cut_off(count):
    figure = drawn(*(panel(f"data-{i}") for i in range(count)))
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1
    corners = [
        c for axes in figure.axes for c in (axes.get_tightbbox().min, axes.get_tightbbox().max)
    ]
    assert all(figure.bbox.contains(x, y) for x, y in corners)


def test_panels_do_not_overlap():
    figure = drawn(*(panel(f"data-{i}", notes=("a note", "another")) for i in range(5)))
    assert len(figure.axes) == 5
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_the_legend_names_each_method_once_and_both_kinds():
    figure = drawn(panel(), panel("telco", titles=TITLES[2:]))
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*TITLES, "measured, mean ± sd", "published"]


def test_a_kind_that_is_not_drawn_is_not_in_the_legend():
    curve = Curve("mine", "Mine", (Point(1.0, 0.5, None),), ())
    figure = drawn(Panel("shop", "Shop", METRICS["auc"], (curve,)))
    assert "published" not in [text.get_text() for text in figure.legends[0].get_texts()]


def test_methods_look_the_same_in_all_panels_and_differ_without_colour():
    looks = looks_of([panel(titles=TITLES[:3]), panel(titles=TITLES[1:])])
    assert list(looks) == list(TITLES)
    many = looks_of([panel(titles=[f"method {i}" for i in range(14)])]).values()
    assert len({(str(look.dash), look.marker) for look in many}) == 14
    assert len({look.marker for look in list(many)[:8]}) == 8


def test_only_long_ranges_of_losses_get_a_logarithmic_axis():
    wide = Curve("m", "M", (Point(1.0, 0.004, 0.001),), (Point(1.0, 4.7, 2.0),))
    long = Panel("elevators", "Elevators", METRICS["rmse"], (wide,))
    axes = drawn(long, panel(metric="rmse")).axes
    assert [a.get_yscale() for a in axes] == ["log", "linear"]
    assert "RMSE (lower is better)" in axes[0].get_ylabel()
    assert "AUROC (higher is better)" in drawn(panel()).axes[0].get_ylabel()


def test_titles_are_taken_literally():
    figure = drawn(panel("costs $5 and $6", titles=("a $x^2$ method",)))
    assert figure.axes[0].get_title() == r"Costs \$5 And \$6"
    assert figure.legends[0].get_texts()[0].get_text() == r"a \$x^2\$ method"


def test_one_picture_a_dataset_and_a_grid_are_written(tmp_path):
    paths = write_figures([panel(), panel("telco")], tmp_path / "new", ["png", "svg"])
    names = ["curves-auc-adult", "curves-auc-telco", "curves-auc"]
    assert [p.name for p in paths] == [f"{n}.{e}" for n in names for e in ("png", "svg")]
    for path in paths:
        if path.suffix == ".png":
            pixels = imread(path)
            assert pixels.std() > 0.05, "it is not blank"
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_panels_of_several_tables_have_files_of_their_own(tmp_path):
    both = [replace(panel(), table=table) for table in ("2", "figure-2")]
    names = [path.name for path in write_figures(both, tmp_path, ["svg"])]
    assert names == ["curves-auc-adult-2.svg", "curves-auc-adult-figure-2.svg", "curves-auc.svg"]


def test_a_dataset_names_no_file_outside_the_folder(tmp_path):
    (path,) = write_figures([panel("../../adult")], tmp_path / "out", ["svg"])
    assert path.parent == tmp_path / "out"
    assert path.name.startswith("curves-auc-.._.._adult-")


def test_labels_of_crowded_privacy_levels_are_left_out():
    crowded = [0.1 + 0.01 * step for step in range(20)] + [8.0, math.inf]
    names = _tick_names(positions(crowded))
    assert names[0] == "0.1"
    assert names[-2:] == ["8", "not\nprivate"]
    assert names.count("") > 10
    assert _tick_names(positions([0.5, 1.0, 2.0]))[:3] == ["0.5", "1", "2"]


def test_a_single_panel_needs_no_grid_and_several_metrics_share_one(tmp_path):
    assert [p.name for p in write_figures([panel()], tmp_path, ["svg"])] == ["curves-auc-adult.svg"]
    both = write_figures([panel(), panel("pol", "rmse")], tmp_path, ["svg"])
    assert both[-1].name == "curves.svg"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_curves_give_the_same_bytes(tmp_path, ending):
    first, second = (write_figures([panel()], tmp_path / n, [ending])[0] for n in "ab")
    assert first.read_bytes() == second.read_bytes()
