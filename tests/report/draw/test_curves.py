"""Curves: what they hold, how they share a page, and that nothing on it overlaps or is cut off."""

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread

from dprepro.data import PRIVATE_PREFIX
from dprepro.papers.document import Column, load_documents
from dprepro.report.draw.curves import kept_apart, looks_of, positions
from dprepro.report.draw.pages import draw_curves, write_figures
from dprepro.report.draw.panels import (
    Curve,
    Panel,
    Point,
    build_panels,
    methods_to_colour,
    most_methods,
    zoom_of,
)
from dprepro.report.draw.style import MOST_COLOURED, PHONE_WIDTH
from dprepro.report.layout import Entry, Group, ResultTable, build_tables
from dprepro.report.sheet import Sheet
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
    names = ["dp-ebm-gdp-2021", "dpboost-2021"]
    (both,) = panels(*ADULT, methods=[",".join(names)])
    assert [curve.method for curve in both.curves] == names
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


def test_of_tables_that_print_the_same_dataset_single_points_are_left_out():
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
    assert [(p.title, p.document, p.table, p.number) for p in found] == [
        ("Adult", "p", "2", 0),
        ("Adult", "p", "figure-2", 2),
    ]
    (alone,) = build_panels([replace(table, groups=(single,))])
    assert (alone.title, alone.table) == ("Adult", "2")


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


COLUMN = Sheet(3.3, 2.4, 8.0)


def drawn(*panels, sheet=None, **options):
    figure = draw_curves(panels, looks_of(panels, **options), sheet)
    figure.draw_without_rendering()
    return figure


def of_kind(axes, has_face):
    """Return the lines of filled markers, or those of rings, one a method."""
    found = [line for line in axes.lines if line.get_marker() not in ("None", "", None)]
    return [line for line in found if (line.get_markerfacecolor() != "none") is has_face]


def texts_of(figure):
    """Return all that is written: around the axes, and the names of ticks within their limits."""
    shown = list(figure.texts)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
            shown += [label for place, label in ticks if low <= place <= high]
    return [text for text in shown if text.get_text()]


def assert_legible(figure):
    """Nothing that is written stands on anything else, or leaves the figure."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    for (one, box), (other, beside) in combinations(boxes, 2):
        assert not box.overlaps(beside), (one, other)
    for said, box in boxes:
        assert figure.bbox.padded(0.5).contains(box.x0, box.y0), said
        assert figure.bbox.padded(0.5).contains(box.x1, box.y1), said
    for axes in figure.axes:
        for said, box in boxes:
            assert not axes.bbox.padded(-1).overlaps(box), said
    for one, other in combinations([axes.bbox for axes in figure.axes], 2):
        assert not one.overlaps(other)


def coloured_lines(axes):
    """Return the colours of lines that are not grey, each once."""
    colours = {to_hex(line.get_color()) for line in axes.lines}
    return {c for c in colours if not c[1:3] == c[3:5] == c[5:7] or c == "#000000"}


def labels_of(figure):
    """Return what stands in the legend, in its order."""
    return [text.get_text() for text in figure.texts if text.get_ha() == "left"]


def test_the_axis_counts_octaves_and_puts_non_private_behind():
    places = positions(EPSILONS)
    assert [places[e] for e in EPSILONS[:-1]] == [-1, 0, 1, 2, 3]
    assert places[INF] > places[8.0] + 1
    assert positions([INF]) == {INF: 0.0}
    wide = positions([2.0**-16, 1.0, INF])
    assert wide[INF] == 2.0, "an eighth of what the others take"


def test_filled_markers_are_measured_and_rings_published_at_their_true_epsilon():
    one = panel()
    axes = drawn(one).axes[0]
    for has_face, side in ((True, "measured"), (False, "published")):
        lines = of_kind(axes, has_face)
        assert len(lines) == len(one.curves)
        for line, curve in zip(lines, one.curves, strict=True):
            across, up = line.get_data()
            there = np.isfinite(across)
            assert list(np.asarray(up)[there]) == [point.mean for point in getattr(curve, side)]
            assert list(np.asarray(across)[there])[:-1] == [math.log2(e) for e in EPSILONS[:-1]]


def test_lines_join_the_private_points_only():
    axes = drawn(panel()).axes[0]
    places = positions(EPSILONS)
    for line in of_kind(axes, True):
        expected = [*(places[e] for e in EPSILONS[:-1]), math.nan, places[INF]]
        np.testing.assert_array_equal(line.get_xdata(), expected)  # nothing crosses the gap
    assert {line.get_linestyle() for line in of_kind(axes, False)} == {"None"}


def test_error_bars_reach_one_standard_deviation():
    (axes,) = drawn(panel(titles=TITLES[:1])).axes
    pale, thin = axes.collections
    for bars, mean in ((pale, 0.51), (thin, 0.5)):
        for (_, low), (_, high) in bars.get_segments():
            assert (low, high) == pytest.approx((mean - 0.02, mean + 0.02))
        assert len(bars.get_segments()) == len(EPSILONS)
    assert pale.get_linewidth()[0] > 5 * thin.get_linewidth()[0]
    assert axes.get_ylim()[0] < 0.48
    assert axes.get_ylim()[1] > 0.53


def test_at_a_single_epsilon_methods_stand_side_by_side():
    alone = tuple(
        replace(c, measured=c.measured[:1], published=c.published[:1]) for c in panel().curves
    )
    (axes,) = drawn(replace(panel(), curves=alone)).axes
    across = [line.get_xdata()[0] for line in of_kind(axes, True)]
    assert np.diff(across) == pytest.approx(0.7 / len(TITLES))
    assert [line.get_xdata()[0] for line in of_kind(axes, False)] == pytest.approx(across)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.5"]


def near_and_far():
    """Return a panel of three good methods within 0.02 and a bad one far below."""
    means = {"Best": 0.92, "Good": 0.91, "Fair": 0.9, "Bad": 0.5}
    curves = [
        Curve(title.lower(), title, tuple(Point(e, mean, 0.01) for e in EPSILONS), ())
        for title, mean in means.items()
    ]
    return Panel("adult", "Adult", METRICS["auc"], tuple(curves))


def test_good_methods_are_shown_closer():
    whole, near = drawn(near_and_far()).axes
    assert near.get_ylim()[0] > 0.89
    assert whole.get_ylim()[0] < 0.5
    (band,) = whole.patches
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx(near.get_ylim())


def test_without_a_bad_method_there_is_no_closer_look():
    assert zoom_of(panel()) is None
    assert zoom_of(replace(near_and_far(), curves=near_and_far().curves[:2])) is None
    assert len(drawn(panel()).axes) == 1


def test_lower_losses_are_the_good_ones():
    upside = {"Best": 0.1, "Good": 0.12, "Fair": 0.13, "Bad": 0.6}
    curves = tuple(
        Curve(t, t, tuple(Point(e, m, 0.01) for e in EPSILONS), ()) for t, m in upside.items()
    )
    found = zoom_of(Panel("pol", "Pol", METRICS["rmse"], curves))
    assert [curve.title for curve in found.good] == ["Best", "Good", "Fair"]


MANY = tuple(f"method {i}" for i in range(13))
LONG = ("W" * 40, "DP gradient descent (logistic), linear", *MANY)
WORDS = "a note of the paper that takes more than a single line of the panel"


@pytest.mark.parametrize(
    "sheet",
    [None, Sheet(3.3, 2.4, 8.0), Sheet(7.0, 5.0, 10.0), Sheet(PHONE_WIDTH)],
    ids=["free", "column", "page", "phone"],
)
@pytest.mark.parametrize(
    "one",
    [
        panel(titles=LONG[1:], notes=(WORDS,)),
        panel(titles=LONG[:3], metric="rademacher_bound", factor=1e7),
        panel("a dataset with " + "w" * 60, titles=LONG[1:], metric="rmse"),
        replace(near_and_far(), title=""),
        near_and_far(),
        panel(titles=("mine",)),
        panel(metric="rmse", factor=1e-6),
    ],
    ids=["notes", "large", "title", "untitled", "near", "one", "small"],
)
def test_nothing_overlaps_and_nothing_is_cut_off(one, sheet):
    figure = drawn(one, sheet=sheet)
    assert_legible(figure)
    if sheet and sheet.height:
        assert tuple(figure.get_size_inches()) == (sheet.width, sheet.height)
    said = labels_of(figure)
    assert all(title in said for title in [c.title for c in one.curves][:8] if title in MANY)


@pytest.mark.parametrize("number", [2, 3, 4, 8])
@pytest.mark.parametrize("sheet", [None, Sheet(7.0, 9.0, 8.0)], ids=["free", "page"])
def test_the_panels_of_a_table_fill_a_grid_with_one_legend_below(number, sheet):
    several = [replace(near_and_far(), dataset=f"d{k}", title=f"D {k}") for k in range(number)]
    figure = drawn(*several, sheet=sheet)
    assert_legible(figure)
    assert len(figure.axes) == 2 * number, "each with its closer look"
    assert figure.get_figwidth() == 7.0
    assert figure.get_figheight() < 10
    assert [said for said in labels_of(figure) if said == "Good"] == ["Good"], "one legend"
    lowest = min(axes.bbox.y0 for axes in figure.axes)
    (key,) = [text for text in figure.texts if text.get_text() == "Good"]
    assert key.get_window_extent().y1 < lowest
    assert len({round(axes.bbox.width) for axes in figure.axes}) == 1
    columns = {round(axes.bbox.x0) for axes in figure.axes}
    assert len(columns) == (4 if sheet is None or number == 8 else 2)


def test_of_more_than_eight_methods_the_others_are_grey():
    one = panel(titles=MANY)
    axes = drawn(one).axes[0]
    assert len(coloured_lines(axes)) == MOST_COLOURED == 8
    assert len(of_kind(axes, False)) == 8, "published values of grey ones are left out"
    said = labels_of(drawn(one))
    assert "5 other methods" in said
    assert [title for title in said if title in MANY] == list(MANY[:8])
    named = labels_of(drawn(one, name_grey=True))
    assert {title for title in named if title in MANY} == set(MANY)
    assert len([title for title in named if title in MANY]) == len(MANY)
    assert "5 other methods" not in named
    assert most_methods([one, few()]) == 13


def test_grey_lines_with_names_differ_in_marker_or_dash_and_fit():
    one = panel(titles=MANY)
    figure = drawn(one, name_grey=True)
    assert_legible(figure)
    styles = looks_of([one], name_grey=True)
    assert len({(str(look.dash), look.marker) for look in styles.values() if look.is_grey}) == 5
    assert len(coloured_lines(figure.axes[0])) == 8


def test_those_with_printed_numbers_have_colours_first_and_then_the_best():
    titles = [f"m{k}" for k in range(12)]
    curves = [curve(title, 0.5 + 0.01 * k) for k, title in enumerate(titles)]
    curves[0] = replace(curves[0], published=(Point(1.0, 0.5, None),))
    one = Panel("d", "D", METRICS["auc"], tuple(curves))
    coloured = [name for name, look in looks_of([one]).items() if not look.is_grey]
    assert coloured == ["m0", *titles[-7:]]
    loss = replace(one, metric=METRICS["rmse"])
    assert [n for n, look in looks_of([loss]).items() if not look.is_grey] == titles[:8]
    columns = [replace(c, published=(), is_column=c.title == "m1") for c in curves]
    without = replace(one, curves=tuple(columns))
    assert [n for n, look in looks_of([without]).items() if not look.is_grey] == [
        "m1", *titles[-7:],
    ]  # fmt: skip
    open_ones = [replace(c, measured=(Point(INF, 0.9, None),)) for c in curves[:4]]
    mixed = replace(one, curves=(*open_ones, *columns[4:]))
    assert [n for n, look in looks_of([mixed]).items() if not look.is_grey] == ["m0", *titles[-7:]]
    chosen = looks_of([one], highlight=["m3", "m5"])
    assert [name for name, look in chosen.items() if not look.is_grey] == ["m3", "m5"]


def test_a_panel_without_any_of_the_chosen_methods_is_grey():
    figure = drawn(panel(), highlight=["elsewhere"])
    assert_legible(figure)
    assert coloured_lines(figure.axes[0]) == set()
    assert "5 other methods" in labels_of(figure)


def test_methods_to_colour_are_eight_at_most_and_known():
    columns = tuple(Column(title=f"M {k}", method=f"m{k}") for k in range(10))
    tables = [ResultTable("t", METRICS["auc"], columns, ())]
    assert methods_to_colour(tables, ["m1,m2", "m3"]) == ["m1", "m2", "m3"]
    with pytest.raises(DpreproError, match="did you mean 'm1'"):
        methods_to_colour(tables, ["m11"])
    with pytest.raises(DpreproError, match=r"names 9 methods.*8 colours"):
        methods_to_colour(tables, [f"m{k}" for k in range(9)])


def test_a_method_and_its_variants_share_a_hue_and_differ_in_dash():
    names = ["dp-ebm-gdp", "dp-ebm-gdp-25", "dpboost"]
    one = panel(titles=names)
    renamed = tuple(replace(c, method=n) for c, n in zip(one.curves, names, strict=True))
    axes = drawn(replace(one, curves=renamed)).axes[0]
    first, second, other = of_kind(axes, True)
    assert first.get_linestyle() != second.get_linestyle()
    assert len({line.get_color() for line in (first, second, other)}) == 3


def test_what_does_not_fit_says_what_would_do():
    one = panel(titles=LONG[1:10])
    with pytest.raises(DpreproError, match=r"3.3 x 1 inches .* about 3\.3x(\S+) inches") as raised:
        drawn(one, sheet=Sheet(3.3, 1.0, 8.0))
    height = float(str(raised.value).partition("3.3x")[2].split()[0])
    assert_legible(drawn(one, sheet=Sheet(3.3, height, 8.0)))
    with pytest.raises(DpreproError, match="--font"):
        drawn(one, sheet=Sheet(3.3, 2.4, 20.0))


def test_letters_have_the_size_that_is_asked_for():
    for points in (6.0, 8.0, 11.0):
        figure = drawn(near_and_far(), sheet=Sheet(6.0, 5.0, points))
        (title,) = [text for text in figure.texts if text.get_text() == "Adult"]
        assert title.get_fontsize() == points
        sizes = {text.get_fontsize() for axes in figure.axes for text in axes.get_xticklabels()}
        assert sizes == {0.875 * points}


def test_names_of_ticks_that_would_touch_are_left_out_but_never_the_ends():
    spans = {k: (0.1 * k, 0.15) for k in range(11)}
    kept = kept_apart(spans, 0.02)
    assert {0, 10} <= kept
    assert len(kept) == 6
    assert kept_apart({1: (0.0, 0.1)}, 0.1) == {1}


def test_a_kind_that_is_not_drawn_is_not_in_the_legend():
    curve = Curve("mine", "Mine", (Point(1.0, 0.5, None),), ())
    said = labels_of(drawn(Panel("shop", "Shop", METRICS["auc"], (curve,))))
    assert sorted(said) == ["Mine", "Shop", "measured, mean ± sd"]
    assert "published, pale bar: sd" in labels_of(drawn(panel()))


def test_only_long_ranges_of_losses_get_a_logarithmic_axis():
    wide = Curve("m", "M", (Point(1.0, 0.004, 0.001),), (Point(1.0, 4.7, 2.0),))
    long = Panel("elevators", "Elevators", METRICS["rmse"], (wide,))
    figures = [drawn(one) for one in (long, panel(metric="rmse"))]
    assert [figure.axes[0].get_yscale() for figure in figures] == ["log", "linear"]
    said = [text.get_text() for text in figures[0].texts]
    assert "RMSE (lower is better)" in said
    assert "AUROC (higher is better)" in [t.get_text() for t in drawn(panel()).texts]
    low, high = figures[0].axes[0].get_ylim()
    assert low < 0.003
    assert high > 6.7


def test_values_without_a_place_leave_the_others_theirs():
    points = [(0.5, 0.3), (1.0, INF), (2.0, math.nan), (4.0, 0.5)]
    curve = Curve("m", "M", tuple(Point(e, mean, 0.1) for e, mean in points), ())
    low, high = drawn(Panel("d", "D", METRICS["rmse"], (curve,))).axes[0].get_ylim()
    assert (low, high) == pytest.approx((0.172, 0.628))
    gone = Curve("m", "M", (Point(1.0, math.nan, None),), ())
    assert_legible(drawn(Panel("d", "D", METRICS["rmse"], (gone,))))


@pytest.mark.parametrize(
    ("epsilons", "said"),
    [
        ((1.0,), "ε"),
        ((1.0, 2.0), "ε, logarithmic"),
        ((1.0, INF), "ε; ∞: not private"),
        (EPSILONS, "ε, logarithmic; ∞: not private"),
        ((INF,), "not private (ε = ∞)"),
    ],
)
def test_the_axis_says_what_is_across(epsilons, said):
    curve = Curve("m", "M", tuple(Point(e, 0.5, 0.1) for e in epsilons), ())
    figure = drawn(Panel("d", "D", METRICS["auc"], (curve,)))
    assert said in [text.get_text() for text in figure.texts]


def test_notes_name_their_panels_where_not_all_have_them():
    one, other = replace(few(), notes=("of one",)), replace(few("telco"), notes=())
    assert "Adult: of one" in labels_of(drawn(one, other))
    both = labels_of(drawn(one, replace(other, notes=("of one",))))
    assert both.count("of one") == 1


def test_titles_are_taken_literally():
    figure = drawn(panel("costs $5 and $6", titles=("a $x^2$ method",)))
    said = labels_of(figure)
    assert r"Costs \$5 And \$6" in said
    assert r"a \$x^2\$ method" in said


PRINTED = {"document": "dp-ebm-2021", "table": "2"}


def named(tmp_path, *panels, **options):
    return [path.name for path in write_figures(panels, tmp_path / "new", ["svg"], **options)]


def test_names_say_document_table_dataset_and_metric(tmp_path):
    one = replace(few(), **PRINTED)
    assert named(tmp_path, one) == ["curves-dp-ebm-2021-table-2-adult-auc.svg"]
    figure = replace(one, table="figure-2")
    assert named(tmp_path, figure) == ["curves-dp-ebm-2021-figure-2-adult-auc.svg"]
    assert named(tmp_path, few()) == ["curves-adult-auc.svg"]


def test_a_picture_a_table_or_with_each_a_picture_a_dataset(tmp_path):
    both = [replace(few(name), **PRINTED) for name in ("adult", "telco")]
    other = replace(few("pol", "rmse"), number=1)
    whole = "curves-dp-ebm-2021-table-2-auc.svg"
    assert named(tmp_path, *both, other) == [whole, "curves-pol-rmse.svg"]
    apart = [f"curves-dp-ebm-2021-table-2-{name}-auc.svg" for name in ("adult", "telco")]
    assert named(tmp_path, *both, other, each=True) == [*apart, "curves-pol-rmse.svg"]


def test_panels_without_room_on_one_sheet_have_one_each(tmp_path):
    four = [replace(near_and_far(), dataset=f"d{k}") for k in range(4)]
    assert named(tmp_path, *four, sheet=COLUMN) == [f"curves-d{k}-auc.svg" for k in range(4)]
    assert named(tmp_path, *four, sheet=Sheet(7.0, 5.0)) == ["curves-auc.svg"]


def test_a_method_looks_the_same_in_all_pictures_of_a_table(tmp_path):
    crowded, lonely = panel(titles=MANY), panel("telco", titles=MANY[9:])
    styles = looks_of([crowded, lonely])
    assert styles["method-0"].is_grey is False
    assert set(styles) == {f"method-{k}" for k in range(13)}


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_written_at_their_size_the_same_each_time(tmp_path, ending):
    sheet = Sheet(3.3, 2.4, 8.0, dpi=100)
    first, second = (
        write_figures([near_and_far()], tmp_path / n, [ending], sheet)[0] for n in "ab"
    )
    assert first.read_bytes() == second.read_bytes()
    if ending == "png":
        pixels = imread(first)
        assert pixels.shape[:2] == (240, 330)
        assert pixels.std() > 0.05, "it is not blank"
    elif ending == "svg":
        root = ElementTree.parse(first).getroot()
        assert (root.get("width"), root.get("height")) == ("237.6pt", "172.8pt")
    else:
        assert b"/MediaBox [ 0 0 237.6 172.8 ]" in first.read_bytes()


def test_a_dataset_names_no_file_outside_the_folder(tmp_path):
    (path,) = write_figures([few("../../adult")], tmp_path / "out", ["svg"])
    assert path.parent == tmp_path / "out"
    assert path.name.startswith("curves-.._.._adult-")
