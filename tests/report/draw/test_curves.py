"""A closer look at the good curves of a panel: which these are, and the range it has."""

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from dprepro.data import PRIVATE_PREFIX
from dprepro.papers.document import Column, load_documents
from dprepro.report.draw.curves import (
    Curve,
    Panel,
    Point,
    _tick_names,
    build_panels,
    draw_curves,
    kept_apart,
    looks_of,
    positions,
    write_figures,
    zoom_of,
)
from dprepro.report.draw.style import PHONE_WIDTH
from dprepro.report.layout import Entry, Group, ResultTable, build_tables
from dprepro.results.folder import Results
from dprepro.results.margins import METRICS
from dprepro.runtime.errors import DpreproError
from tests.report.journals import cell, spread

PAPER = load_documents()["dp-ebm-2021"]
INF = math.inf


def panels(*cells, methods=()):
    return build_panels(build_tables(Results(cells), [PAPER], compare=True), methods)


def measured(mean, epsilon, label="dp-ebm-gdp-2021", splits=25, **fields):
    return cell(spread(mean, 0.005, splits), label=label, epsilon=epsilon, **fields)


ADULT = (measured(0.87, 0.5), measured(0.89, 4.0), measured(0.92, INF, "ebm"))


def test_a_curve_holds_measured_and_published_points_in_order_of_epsilon():
    (panel,) = panels(*ADULT)
    (gdp,) = [c for c in panel.curves if c.method == "dp-ebm-gdp-2021"]
    assert [p.epsilon for p in gdp.measured] == [0.5, 4.0, INF]
    assert [p.mean for p in gdp.measured] == pytest.approx([0.87, 0.89, 0.92])
    assert gdp.measured[0].sd == pytest.approx(0.005)
    assert [p.epsilon for p in gdp.published] == [0.5, 1.0, 2.0, 4.0, 8.0, INF]
    assert gdp.published[0] == Point(0.5, 0.875, 0.005)


def test_methods_that_were_not_run_have_published_points_only():
    (panel,) = panels(*ADULT)
    assert [c.method for c in panel.curves] == [
        "dpboost-2021",
        "dp-logistic",
        "dp-ebm-classic-2021",
        "dp-ebm-gdp-2021",
    ]
    boost = panel.curves[0]
    assert (boost.measured, len(boost.published)) == ((), 6)
    assert boost.published[-1].mean == 0.928, "LightGBM stands at the end of DPBoost"


def test_every_published_cell_becomes_a_point():
    cells = [measured(0.8, 1.0, dataset=d) for d in PAPER.tables["2"].datasets]
    cells += [
        measured(5.0, 1.0, metric="rmse", dataset=dataset) for dataset in PAPER.tables["3"].datasets
    ]
    found = panels(*cells)
    assert [panel.metric.name for panel in found] == ["auc"] * 4 + ["rmse"] * 4
    points = {
        (panel.dataset, point) for panel in found for c in panel.curves for point in c.published
    }
    assert points == {(c.dataset, Point(c.epsilon, c.mean, c.std)) for c in PAPER.cells()}


def test_methods_can_be_chosen():
    (panel,) = panels(*ADULT, methods=["dp-ebm-gdp-2021"])
    assert [curve.method for curve in panel.curves] == ["dp-ebm-gdp-2021"]
    assert panels(*ADULT, methods=["dpebm-gdp (2021 code)"]) == [panel]
    with pytest.raises(DpreproError, match="did you mean 'dp-ebm-gdp-2021'"):
        panels(*ADULT, methods=["dp-ebm-gpd"])


def test_a_panel_without_a_chosen_method_is_left_out():
    other = measured(0.5, 1.0, "mine", dataset="shop")
    assert [p.dataset for p in panels(*ADULT, other, methods=["mine"])] == ["shop"]


def test_datasets_that_nobody_printed_have_no_published_points():
    (panel,) = panels(measured(0.5, 1.0, dataset="shop"))
    assert [(len(c.measured), len(c.published)) for c in panel.curves] == [(1, 0)]


def test_failed_cells_give_no_point():
    (panel,) = panels(*ADULT, cell([], "auc", label="dp-ebm-classic-2021", epsilon=1.0))
    (classic,) = [c for c in panel.curves if c.method == "dp-ebm-classic-2021"]
    assert [p.epsilon for p in classic.measured] == [INF]


def test_notes_warn_of_fewer_splits_and_of_private_data():
    assert panels(*ADULT)[0].notes == ()
    (few,) = panels(measured(0.87, 0.5, splits=3))
    assert few.notes == ("some points have fewer splits than planned",)
    (private,) = panels(measured(0.8, 0.5, dataset="healthcare"))
    assert private.notes == ("published: real patient data that was never released",)


@pytest.mark.parametrize(
    ("metric", "means", "logarithmic"),
    [
        ("rmse", (1.0, 9.9), False),
        ("rmse", (1.0, 10.1), True),
        ("rmse", (0.0, 10.1), False),
        ("auc", (0.05, 0.95), False),
    ],
)
def test_losses_over_more_than_a_decade_are_logarithmic(metric, means, logarithmic):
    ours, theirs = (Point(1.0, mean, None) for mean in means)
    curve = Curve("m", "M", (ours,), (theirs,))
    assert Panel("d", "D", METRICS[metric], (curve,)).is_logarithmic is logarithmic


def test_tables_that_print_the_same_dataset_are_told_apart_and_single_points_left_out():
    table = ResultTable("t", METRICS["auc"], (Column(title="a", method="a"),), (), "p", "2")
    results = [cell([0.8, 0.9], label="a", epsilon=epsilon) for epsilon in (1.0, 2.0)]
    rows = [(Entry("a", result.task.epsilon, result),) for result in results]
    whole, single = (Group("adult", "Adult", 3, tuple(chosen)) for chosen in (rows, rows[:1]))
    found = build_panels(
        [
            replace(table, groups=(whole,)),
            replace(table, groups=(single,), table="4"),
            replace(table, groups=(whole,), table="figure-2"),
        ]
    )
    assert [panel.title for panel in found] == ["Adult (Table 2)", "Adult (figure-2)"]
    assert [panel.table for panel in found] == ["2", "figure-2"]
    (alone,) = build_panels([replace(table, groups=(single,))])
    assert (alone.title, alone.table) == ("Adult", "")


def test_a_picture_of_private_rows_says_so():
    (panel,) = panels(measured(0.88, 1.0, data_fingerprint=f"{PRIVATE_PREFIX}abc"))
    assert panel.title.endswith(" (PRIVATE)")
    assert "PRIVATE rows: exact scores, not for release" in panel.notes


def curve(title, *means, published=(), epsilons=(0.5, 1.0, 2.0, 4.0)):
    points = [
        tuple(Point(e, mean, None) for e, mean in zip(epsilons, those, strict=False))
        for those in (means, published)
    ]
    return Curve(title, title, *points)


def look(*curves, metric="auc"):
    return zoom_of(Panel("d", "D", METRICS[metric], curves))


def names(curves):
    return [one.title for one in curves]


def test_curves_at_a_fifth_of_the_way_are_good_and_those_below_are_not():
    found = look(curve("a", 1.0), curve("b", 0.8), curve("c", 0.79), curve("d", 0.0))
    assert names(found.good) == ["a", "b"]
    assert names(found.others) == ["c", "d"]
    assert (found.lowest, found.highest) == (0.8, 1.0)


def test_of_an_error_the_lowest_are_good():
    found = look(curve("a", 1.0), curve("b", 2.7), curve("c", 2.9), curve("d", 9.9), metric="rmse")
    assert names(found.good) == ["a", "b"]
    assert (found.lowest, found.highest) == (1.0, 2.7)


def test_errors_over_decades_are_compared_by_their_logarithms():
    curves = [curve("a", 1.0), curve("b", 2.4), curve("c", 2.7), curve("d", 100.0)]
    assert names(look(*curves, metric="rmse").good) == ["a", "b"]


def test_a_curve_counts_by_its_median_and_the_range_leaves_its_far_points_out():
    found = look(curve("a", 0.9, 1.0, 0.95), curve("b", 0.1, 0.9, 0.9), curve("c", 0.0, 0.1, 0.2))
    assert names(found.good) == ["a", "b"]
    assert (found.lowest, found.highest) == (0.9, 1.0)


def test_points_without_privacy_count_where_a_curve_has_no_others():
    endless = (math.inf,)
    best = curve("best", 0.9, 1.0, epsilons=(1.0, math.inf))
    found = look(best, curve("open", 0.95, epsilons=endless), curve("c", 0.0), curve("d", 0.1))
    assert names(found.good) == ["best", "open"]
    assert found.highest == 1.0


def test_printed_points_stand_in_for_measured_ones_and_belong_to_the_range():
    found = look(curve("a", 1.0, published=(0.99,)), curve("b", published=(0.9,)), curve("c", 0.0))
    assert names(found.good) == ["a", "b"]
    assert (found.lowest, found.highest) == (0.9, 1.0)


@pytest.mark.parametrize(
    "means", [(1.0, 0.9), (1.0, 0.5, 0.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0)], ids=str
)
def test_there_is_nothing_to_see_closer_for_two_curves_one_good_one_or_equal_ones(means):
    assert look(*(curve(str(k), mean) for k, mean in enumerate(means))) is None


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


def few(dataset="adult", metric="auc"):
    return panel(dataset, metric, titles=TITLES[:2])


def drawn(one, is_narrow=False):
    figure = draw_curves(one, looks_of([one]), is_narrow)
    figure.draw_without_rendering()
    return figure


def markers(axes):
    """Return the lines of filled markers, then those of rings."""
    return [[line for line in axes.lines if line.get_markersize() == size] for size in (4, 8)]


def labels_of(axes):
    """Return the names beside the curves, from top to bottom."""
    return [t.get_text() for t in sorted(axes.texts, key=_top) if t.get_text()]


def _top(text):
    return -text.get_window_extent().y1


def test_the_axis_counts_octaves_and_puts_non_private_behind():
    places = positions(EPSILONS)
    assert [places[e] for e in EPSILONS[:-1]] == [-1, 0, 1, 2, 3]
    assert places[INF] > places[8.0] + 1
    assert positions([INF]) == {INF: 0.0}


def test_filled_markers_are_measured_and_rings_published_at_their_true_epsilon():
    one = panel()
    whole = drawn(one).axes[0]
    filled, rings = markers(whole)
    for lines, side in ((filled, "measured"), (rings, "published")):
        assert len(lines) == len(one.curves)
        for line, curve in zip(lines, one.curves, strict=True):
            across, up = line.get_data()
            there = np.isfinite(across)
            assert list(up[there]) == [point.mean for point in getattr(curve, side)]
            assert list(across[there])[:-1] == [math.log2(e) for e in EPSILONS[:-1]]
    for line in rings:
        assert line.get_markerfacecolor() == "none"


def test_lines_join_the_private_points_only():
    axes = drawn(panel()).axes[0]
    filled, rings = markers(axes)
    assert len(filled) == len(TITLES)
    places = positions(EPSILONS)
    for line in filled:
        expected = [*(places[e] for e in EPSILONS[:-1]), math.nan, places[INF]]
        np.testing.assert_array_equal(line.get_xdata(), expected)  # nothing crosses the gap
    assert {line.get_linestyle() for line in rings} == {"None"}


def test_error_bars_reach_one_standard_deviation():
    (axes,) = drawn(panel(titles=TITLES[:1])).axes
    pale, thin, _ = axes.collections
    for bars, mean in ((pale, 0.51), (thin, 0.5)):
        for (_, low), (_, high) in bars.get_segments():
            assert (low, high) == pytest.approx((mean - 0.02, mean + 0.02))
        assert len(bars.get_segments()) == len(EPSILONS)
    assert pale.get_linewidth()[0] > 5 * thin.get_linewidth()[0]


def near_and_far():
    """Return a panel of three good methods within 0.02 and a bad one far below."""
    means = {"Best": 0.92, "Good": 0.91, "Fair": 0.9, "Bad": 0.5}
    curves = [
        Curve(title.lower(), title, tuple(Point(e, mean, 0.01) for e in EPSILONS), ())
        for title, mean in means.items()
    ]
    return Panel("adult", "Adult", METRICS["auc"], tuple(curves))


def test_good_methods_are_shown_closer_and_each_name_stands_once():
    whole, near = drawn(near_and_far()).axes
    assert labels_of(whole) == ["Bad"]
    assert labels_of(near) == ["Best", "Good", "Fair"]
    assert near.get_ylim()[0] > 0.89
    assert whole.get_ylim()[0] < 0.5
    assert near.get_title(loc="left") == "Adult, closer"


def test_without_a_bad_method_there_is_no_closer_look():
    assert zoom_of(panel()) is None
    assert zoom_of(replace(near_and_far(), curves=near_and_far().curves[:2])) is None
    (axes,) = drawn(panel()).axes
    assert sorted(labels_of(axes)) == sorted(TITLES)


def test_lower_losses_are_the_good_ones():
    upside = {"Best": 0.1, "Good": 0.12, "Fair": 0.13, "Bad": 0.6}
    curves = tuple(
        Curve(t, t, tuple(Point(e, m, 0.01) for e in EPSILONS), ()) for t, m in upside.items()
    )
    found = zoom_of(Panel("pol", "Pol", METRICS["rmse"], curves))
    assert [curve.title for curve in found.good] == ["Best", "Good", "Fair"]


LONG = ["W" * 40, "DP gradient descent (logistic), linear", *(f"method {i}" for i in range(12))]
WORDS = "a note of the paper that takes more than a single line of the panel"


@pytest.mark.parametrize("is_narrow", [False, True])
@pytest.mark.parametrize(
    "one",
    [
        panel(titles=LONG[1:], notes=(WORDS, WORDS)),
        panel(titles=LONG[:3], metric="rademacher_bound", factor=1e7),
        panel("a dataset with " + "w" * 60, titles=LONG[1:], metric="rmse"),
        replace(near_and_far(), title=""),
        near_and_far(),
    ],
    ids=["notes", "large", "title", "untitled", "near"],
)
def test_nothing_overlaps_and_nothing_is_cut_off(one, is_narrow):
    figure = drawn(one, is_narrow)
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert not any(figure.legends[0].get_window_extent().overlaps(box) for box in boxes)
    assert all(figure.bbox.contains(*corner) for box in boxes for corner in (box.min, box.max))
    found = [name for axes in figure.axes for name in labels_of(axes) if name in LONG[2:]]
    assert len(found) == len(set(found)) == sum(c.title in LONG[2:] for c in one.curves)
    for axes in figure.axes:
        written = [text for text in axes.texts if text.get_text() in {c.title for c in one.curves}]
        extents = sorted(Text.get_window_extent(text).y0 for text in written)
        assert min(np.diff(extents), default=INF) > 0.9 * 7.5 * figure.dpi / 72
        label, ticks = axes.yaxis.label, axes.get_yticklabels()
        shown = [tick for tick in ticks if axes.bbox.y0 <= tick.get_window_extent().y0]
        if label.get_text():
            beside = label.get_window_extent().x1
            assert all(beside <= tick.get_window_extent().x0 for tick in shown)


def test_on_a_phone_the_closer_look_stands_below():
    figure = drawn(near_and_far(), is_narrow=True)
    whole, near = (axes.get_tightbbox() for axes in figure.axes)
    assert near.y1 <= whole.y0
    assert figure.get_figwidth() == PHONE_WIDTH


@pytest.mark.parametrize("wanted", [[0.5, 0.5, 0.5], [0.0, 0.01, 1.0], [0.9, 1.0, 0.95], [0.2]])
def test_names_stay_in_order_apart_and_inside(wanted):
    found = kept_apart(wanted, 0.1)
    assert np.argsort(found, kind="stable").tolist() == np.argsort(wanted, kind="stable").tolist()
    assert min(np.diff(sorted(found)), default=1) >= 0.1 - 1e-9
    assert min(found) >= 0
    assert max(found) <= 1 + 1e-9
    assert kept_apart([0.2, 0.8], 0.1) == pytest.approx([0.2, 0.8])


def test_a_kind_that_is_not_drawn_is_not_in_the_legend():
    curve = Curve("mine", "Mine", (Point(1.0, 0.5, None),), ())
    figure = drawn(Panel("shop", "Shop", METRICS["auc"], (curve,)))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["measured, mean ± sd"]
    assert len(drawn(panel()).legends[0].get_texts()) == 2


def test_only_long_ranges_of_losses_get_a_logarithmic_axis():
    wide = Curve("m", "M", (Point(1.0, 0.004, 0.001),), (Point(1.0, 4.7, 2.0),))
    long = Panel("elevators", "Elevators", METRICS["rmse"], (wide,))
    axes = [drawn(one).axes[0] for one in (long, panel(metric="rmse"))]
    assert [a.get_yscale() for a in axes] == ["log", "linear"]
    assert "RMSE (lower is better)" in axes[0].get_ylabel()
    assert "AUROC (higher is better)" in drawn(panel()).axes[0].get_ylabel()


def test_titles_are_taken_literally():
    figure = drawn(panel("costs $5 and $6", titles=("a $x^2$ method",)))
    assert figure.axes[0].get_title(loc="left") == r"Costs \$5 And \$6"
    assert labels_of(figure.axes[0]) == [r"a \$x^2\$ method"]


def test_one_picture_a_dataset_and_a_grid_are_written(tmp_path):
    paths = write_figures([few(), few("telco")], tmp_path / "new", ["png", "svg"])
    names = ["curves-auc-adult", "curves-auc-telco", "curves-auc"]
    assert [p.name for p in paths] == [f"{n}.{e}" for n in names for e in ("png", "svg")]
    for path in paths:
        if path.suffix == ".png":
            pixels = imread(path)
            assert pixels.std() > 0.05, "it is not blank"
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_panels_of_several_tables_have_files_of_their_own(tmp_path):
    both = [replace(few(), table=table) for table in ("2", "figure-2")]
    names = [path.name for path in write_figures(both, tmp_path, ["svg"])]
    assert names == ["curves-auc-adult-2.svg", "curves-auc-adult-figure-2.svg", "curves-auc.svg"]


def test_a_dataset_names_no_file_outside_the_folder(tmp_path):
    (path,) = write_figures([few("../../adult")], tmp_path / "out", ["svg"])
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
    assert [p.name for p in write_figures([few()], tmp_path, ["svg"])] == ["curves-auc-adult.svg"]
    both = write_figures([few(), few("pol", "rmse")], tmp_path, ["svg"])
    assert both[-1].name == "curves.svg"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_curves_give_the_same_bytes(tmp_path, ending):
    first, second = (write_figures([few()], tmp_path / n, [ending])[0] for n in "ab")
    assert first.read_bytes() == second.read_bytes()
