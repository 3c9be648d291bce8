"""In which numbers shape functions are drawn, and how much a function varies over the rows."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dprepro.additive.file import model_from_json
from dprepro.additive.shapes import Shape, Side
from dprepro.report.draw import shapes
from dprepro.report.draw.shapes import (
    MOST_FEATURES,
    MOST_MODELS,
    ModelShapes,
    classes_left_out,
    columns_of,
    draw_shapes,
    equally_wide,
    has_room,
    heights,
    in_range,
    most_important,
    select_features,
    variation,
    write_shapes,
)
from dprepro.runtime.errors import DpreproError
from tests.report.model_page.models import model, of_classes

AGE = Shape(
    name="age",
    labels=("[-inf, 30)", "[30, 50)", "[50, inf)", "(missing)"),
    edges=np.array([0.0, 30.0, 50.0, 90.0]),
    values=np.array([-0.5, 0.1, 0.4, 0.2]),
    released=np.array([-0.5, 0.1, 0.4, 0.2]),
    counts=np.array([30.0, 40.0, 20.0, 10.0]),
    noise=np.array([0.01, 0.02, 0.03, 0.04]),
)
WORK = Shape(
    name="work $/h",
    labels=("Private", "Self-employed, not incorporated"),
    edges=None,
    values=np.array([-0.2, 0.3]),
    released=np.array([-0.2, 0.3]),
    counts=np.array([70.0, 30.0]),
    noise=None,
)
PLAIN = ModelShapes("EBM", (replace(AGE, noise=None, values=3 * AGE.values), WORK))
PRIVATE = ModelShapes("DP-EBM", (AGE, WORK))


def drawn(*arguments, **options) -> Figure:
    figure = draw_shapes(*arguments, **options)
    figure.draw_without_rendering()
    return figure


def legend(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.legends[0].get_texts())


def stairs(axes):
    """The steps drawn as (values, edges, baseline)."""
    return [patch.get_data() for patch in axes.patches if hasattr(patch, "get_data")]


def test_numbers_are_steps_with_a_band_and_missing_ones_a_point():
    (axes,) = drawn([PRIVATE], ["age"]).axes
    _, band, steps = stairs(axes)
    np.testing.assert_array_equal(steps.values, AGE.values[:3])
    np.testing.assert_array_equal(steps.edges, AGE.edges)
    np.testing.assert_allclose(band.values, AGE.values[:3] + 2 * AGE.noise[:3])
    np.testing.assert_allclose(band.baseline, AGE.values[:3] - 2 * AGE.noise[:3])
    (point,) = axes.containers[-1].lines[0].get_xydata()
    assert point[0] > 90
    assert point[1] == 0.2


def test_density_is_rows_per_unit_in_the_lowest_part():
    (axes,) = drawn([PRIVATE], ["age"]).axes
    heights = stairs(axes)[0].values
    np.testing.assert_allclose(heights / heights.max(), [0.5, 1.0, 0.25])
    lowest = axes.get_ylim()[0]
    floor = axes.transData.inverted().transform(axes.transAxes.transform([0, heights.max()]))[1]
    assert lowest < floor < min(AGE.values)


def test_categories_are_bars_under_their_shortened_names():
    figure = drawn([PRIVATE], ["work $/h"])
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.containers[1]] == WORK.values.tolist()
    assert [t.get_text() for t in axes.get_xticklabels()] == ["Private", "Self-employed, …"]
    assert axes.get_xlabel() == r"work \$/h"
    assert "noise" not in legend(figure)


def test_an_edited_function_is_drawn_over_what_was_released():
    edited = replace(AGE, values=np.array([-0.5, 0.0, 0.4, 0.2]))
    figure = drawn([PRIVATE, ModelShapes("edited", (edited, WORK))], ["age"])
    before, after = figure.axes
    assert len(stairs(after)) == len(stairs(before)) + 1
    _, band, released, steps = stairs(after)
    np.testing.assert_array_equal(released.values, AGE.values[:3])
    np.testing.assert_array_equal(steps.values, edited.values[:3])
    np.testing.assert_allclose((band.values + band.baseline) / 2, AGE.values[:3])
    assert "before editing" in legend(figure)
    assert "before editing" not in legend(drawn([PRIVATE], ["age"]))


def test_models_stand_side_by_side_on_one_scale_or_on_their_own():
    figure = drawn([PLAIN, PRIVATE], ["age", "work $/h"], own_scale=True)
    assert len(figure.axes) == 4
    assert [axes.get_title() for axes in figure.axes[:2]] == ["EBM", "DP-EBM"]
    assert figure.axes[0].get_ylim()[1] > 2 * figure.axes[1].get_ylim()[1]
    shared = drawn([PLAIN, PRIVATE], ["age"])
    assert shared.axes[0].get_ylim() == shared.axes[1].get_ylim()


def test_bands_are_whole():
    wide = replace(AGE, noise=np.full(4, 5.0))
    (axes,) = drawn([ModelShapes("much noise", (wide,))], ["age"]).axes
    lowest, highest = axes.get_ylim()
    assert lowest < -10.5
    assert highest > 10.4
    flat = replace(AGE, values=np.zeros(4), released=np.zeros(4), noise=None)
    (axes,) = drawn([ModelShapes("flat", (flat,))], ["age"]).axes
    assert np.ptp(axes.get_ylim()) > 0


def test_one_model_is_a_grid_on_one_scale_within_a_page():
    many = wide(MOST_FEATURES)
    names = most_important([many], [shape.name for shape in many.shapes])
    figure = drawn([many], names)
    assert len({axes.get_position().y0.round(3) for axes in figure.axes}) == 5
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert (
        len({axes.get_ylim() for axes in draw_shapes([many], names[:4], own_scale=True).axes}) == 4
    )
    assert figure.get_size_inches().max() <= 11.7
    assert figure.get_supylabel() == "log odds"
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_nothing_is_cut_off_and_panels_do_not_overlap():
    figure = drawn([PLAIN, PRIVATE, PRIVATE], ["age", "work $/h"])
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for shown in (figure, drawn([PRIVATE], ["age"])):
        legend = shown.legends[0].get_window_extent()
        assert shown.bbox.x0 <= legend.x0 < legend.x1 <= shown.bbox.x1
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert not any(figure.legends[0].get_window_extent().overlaps(box) for box in boxes)


def test_features_can_be_chosen():
    columns = [PLAIN, PRIVATE]
    assert select_features(columns) == ["age", "work $/h"]
    assert select_features(columns, numeric=True) == ["age"]
    assert select_features(columns, ["work $/h", "age"]) == ["work $/h", "age"]
    with pytest.raises(DpreproError, match="did you mean 'age'"):
        select_features(columns, ["agee"])
    with pytest.raises(DpreproError, match="numeric"):
        select_features(columns, ["work $/h"], numeric=True)


def test_a_picture_a_feature_and_one_of_all_are_written_the_same_each_time(tmp_path):
    features = ["age", "work $/h"]
    first, second = (
        write_shapes([PLAIN, PRIVATE], features, "shapes", tmp_path / name, ["svg", "png"])
        for name in "ab"
    )
    names = ["shapes-age", "shapes-work___h-508e0cd9", "shapes"]
    assert [path.name for path in first] == [f"{n}.{e}" for n in names for e in ("svg", "png")]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert ElementTree.parse(first[0]).getroot().tag.endswith("svg")


def test_names_that_look_alike_in_a_path_do_not_overwrite_each_other(tmp_path):
    twins = tuple(replace(AGE, name=name) for name in ("a/b", "a:b", "../../a"))
    paths = write_shapes([ModelShapes("m", twins)], [s.name for s in twins], "s", tmp_path, ["svg"])
    assert len(set(paths)) == 4
    assert {path.parent for path in paths} == {tmp_path}


def wide(count: int) -> ModelShapes:
    """Return a model of many features, of which the later ones matter more."""
    shapes = (replace(AGE, name=f"f{k}", values=(k + 1.0) * AGE.values) for k in range(count))
    return ModelShapes("wide", tuple(shapes))


def test_of_many_features_those_that_vary_most_over_the_rows_come_first():
    many = wide(MOST_FEATURES + 2)
    names = [shape.name for shape in many.shapes]
    assert most_important([many], names) == names[:1:-1]
    assert most_important([many], names[:3]) == names[2::-1]
    # High, but only where there are no rows.
    empty = replace(AGE, name="f0", values=np.array([0.0, 0.0, 9.0, 0.0]),
                    counts=np.array([9.0, 9.0, 0.0, 9.0]))  # fmt: skip
    spread = replace(WORK, name="f1")
    assert most_important([ModelShapes("m", (empty, spread))], ["f0", "f1"], 1) == ["f1"]


def test_a_picture_of_many_features_keeps_its_size(tmp_path, monkeypatch):
    save = shapes.save_figures
    monkeypatch.setattr(  # the pictures of single features are not looked at
        shapes, "save_figures", lambda figures, *where: save({"s": figures["s"]}, *where)
    )
    many = wide(MOST_FEATURES + 10)
    names = [shape.name for shape in many.shapes]
    (whole,) = write_shapes([many], names, "s", tmp_path, ["svg"])
    height = float(ElementTree.parse(whole).getroot().attrib["height"].removesuffix("pt"))
    assert height < 72 * 11.7
    several = [replace(many, title=str(number)) for number in range(MOST_MODELS)]
    assert draw_shapes(several, names[: shapes._MOST_ROWS]).get_size_inches().max() <= 11.7


def test_too_many_models_side_by_side_are_refused():
    with pytest.raises(DpreproError, match=f"at most {MOST_MODELS} fit .*--method"):
        draw_shapes((MOST_MODELS + 1) * [PRIVATE], ["age"])


def test_an_unknown_feature_of_a_wide_model_does_not_list_them_all():
    with pytest.raises(DpreproError, match="and 980 more") as raised:
        select_features([wide(1000)], ["age"])
    assert len(str(raised.value)) < 400


def test_a_long_name_leaves_the_picture_its_size():
    long = replace(AGE, name="long\n\x1b" * 500)
    figure = drawn([ModelShapes("model " * 500, (long,))], [long.name])
    (axes,) = figure.axes
    assert axes.get_tightbbox().width < figure.bbox.width
    assert len(axes.get_xlabel()) < 50
    assert "\n" not in axes.get_xlabel()


BIG = 1.7e308


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "fields",
    [
        {"edges": np.array([-BIG, 0.0, 1.0, BIG])},
        {"edges": np.array([0.0, 5e-324, 1e-323, 1.5e-323])},
        {"edges": np.array([1e16, 1e16 + 2, 1e16 + 4, 1e16 + 6])},
        {"edges": np.full(4, 1e300)},
        {"edges": np.array([0.0, 5e-324, 1.0, 2.0])},
        {"values": np.array([-BIG, 0.0, 1.0, BIG])},
        {"values": AGE.values * 1e-300, "released": AGE.values * 1e-300},
        {"noise": np.full(4, BIG)},
        {"counts": np.full(4, BIG)},
        {"counts": np.zeros(4)},
        {"edges": None, "values": np.array([-BIG, 0.0, 1.0, BIG])},
        {"edges": None, "noise": np.full(4, BIG)},
    ],
)
def test_extreme_numbers_are_drawn(fields):
    shape = replace(AGE, **{"released": fields.get("values", AGE.released), **fields})
    (axes,) = drawn([ModelShapes("extreme", (shape,))], ["age"]).axes
    lines = [line for line in stairs(axes) if line.baseline is None]
    for values in (axes.get_xlim(), axes.get_ylim(), *(line.values for line in lines)):
        assert np.isfinite(values).all()
        assert np.ptp(values) > 0


def test_a_range_that_no_axis_shows_has_equally_wide_bins_with_their_bounds():
    shape = replace(AGE, edges=np.array([-1e300, 0.0, 1.0, 1e300]))
    (axes,) = drawn([ModelShapes("m", (shape,))], ["age"]).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["-1e+300", "0", "1", "1e+300"]
    assert np.diff(stairs(axes)[2].edges).tolist() == [1.0, 1.0, 1.0]
    near = replace(AGE, edges=np.array([1e16, 1e16 + 2, 1e16 + 4, 1e16 + 6]))
    (axes,) = drawn([ModelShapes("m", (near,))], ["age"]).axes
    names = [text.get_text() for text in axes.get_xticklabels()]
    assert names == ["1e+16", "1.0000000000000006e+16"]


def test_values_that_no_axis_shows_are_drawn_in_a_unit():
    shape = replace(AGE, values=AGE.values * 1e200, released=AGE.values * 1e200)
    (axes,) = drawn([ModelShapes("m", (shape,), "target")], ["age"]).axes
    assert axes.get_ylabel() == "target / 1e+199"
    np.testing.assert_allclose(stairs(axes)[2].values, 10 * AGE.values[:3])


def test_a_feature_that_one_model_lacks_leaves_its_panel_empty():
    figure = drawn([PRIVATE, ModelShapes("less", (WORK,))], ["age"])
    assert [axes.axison for axes in figure.axes] == [True, False]


# --- pairs ----------------------------------------------------------------------------------------

CELLS = np.array([-0.5, 0.01, 0.5, 0.25, -0.1, -0.15])
BOTH = Shape(
    name="age & work $/h",
    labels=tuple("abcdef"),
    edges=None,
    values=CELLS,
    released=CELLS,
    counts=np.ones(6),
    noise=np.full(6, 0.06),
    sides=(Side("age", ("young", "old")), Side("work", ("x", "y", "z"))),
)
PAIRED = ModelShapes("DP-EBM+", (AGE, WORK, BOTH))


def test_a_pair_is_a_heat_map_around_zero_with_the_noise_hatched():
    figure = drawn([PAIRED], [BOTH.name])
    axes, bar = figure.axes
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), CELLS.reshape(2, 3))
    assert image.get_clim() == (-0.5, 0.5)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("work", "age")
    assert [t.get_text() for t in axes.get_xticklabels()] == ["x", "y", "z"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["young", "old"]
    hatched = sorted((p.get_x() + 0.5, p.get_y() + 0.5) for p in axes.patches)
    assert hatched == [(1, 0), (1, 1)]
    assert all(p.get_hatch() and (p.get_width(), p.get_height()) == (1, 1) for p in axes.patches)
    assert {t.get_rotation() for t in axes.get_xticklabels()} == {90}
    assert bar.get_ylabel() == "log odds"
    assert legend(figure) == "hatched: within 2 sd of the noise around 0"


def test_all_pairs_of_a_model_have_the_same_colours_unless_each_has_its_own():
    small = replace(BOTH, name="other", values=CELLS / 5, released=CELLS / 5)
    column = ModelShapes("M", (AGE, BOTH, small))
    for own, most in ((False, 0.5), (True, 0.1)):
        figure = drawn([column], ["age", BOTH.name, "other"], own_scale=own)
        images = [axes.images[0] for axes in figure.axes if axes.images]
        assert images[1].get_clim() == pytest.approx((-most, most))
    assert "hatched" in legend(figure)
    assert "shape function" in legend(figure)


def test_beside_a_model_without_the_pair_its_place_stays_empty():
    figure = drawn([PAIRED, PRIVATE], ["age", BOTH.name])
    assert sum(bool(axes.images) for axes in figure.axes) == 1
    assert [axes.axison for axes in figure.axes][:4] == [True, True, True, False]


def test_pairs_are_no_numbers():
    assert select_features([PAIRED], numeric=True) == ["age"]


def test_variation_is_the_standard_deviation_over_the_rows():
    values = np.repeat(AGE.values, AGE.counts.astype(int))
    assert variation(AGE) == pytest.approx(values.std())
    assert variation(replace(AGE, counts=AGE.counts / 200)) == pytest.approx(values.std())
    assert variation(replace(AGE, values=np.zeros(4))) == 0


def test_without_any_rows_all_bins_count_alike():
    assert variation(replace(AGE, counts=np.zeros(4))) == pytest.approx(AGE.values.std())


@pytest.mark.parametrize("size", [1e-150, 1e-99, 0.5, 1e99, 1e150])
def test_values_get_a_unit_only_where_axes_need_one(size):
    extreme = replace(AGE, values=size * AGE.values, released=size * AGE.released, noise=None)
    (shown, none), unit = in_range([extreme, None])
    assert none is None
    assert (unit == 1.0) == (1e-100 < size < 1e100)
    np.testing.assert_allclose(unit * shown.values, extreme.values)
    assert 1e-100 <= np.abs(shown.values).max() <= 1e100
    if unit != 1.0:
        assert 1 <= np.abs(shown.values).max() < 10


def test_noise_has_the_unit_of_the_values_and_leaves_the_panel_at_most():
    values, noise = 1e150 * AGE.values, np.array([1e149, 1e150, 1e200, np.inf])
    shape = replace(AGE, values=values, released=values, noise=noise)
    (shown,), unit = in_range([shape])
    np.testing.assert_allclose(shown.noise[:2] * unit, noise[:2])
    size = np.abs(values).max() / unit
    np.testing.assert_allclose(shown.noise[2:], 1e6 * size)


def test_counts_are_scaled_only_where_their_sum_overflows():
    (shown,), _ = in_range([AGE])
    np.testing.assert_array_equal(shown.counts, AGE.counts)
    (shown,), _ = in_range([replace(AGE, counts=1e300 * AGE.counts)])
    np.testing.assert_allclose(shown.counts, AGE.counts / 40)


@pytest.mark.parametrize(
    ("edges", "room"),
    [
        ([0, 3, 9], True),
        ([1.0, 1.0 + 1e-13], False),
        ([1e6, 1e6 + 1e-3], True),
        ([0, 1e-101], False),
        ([0, 1e-99], True),
        ([-1e308, 1e308], False),
        ([5, 1, 6], True),
    ],
)
def test_a_range_has_room_where_axes_tell_its_ends_apart(edges, room):
    assert has_room(np.array(edges, float)) == room


def test_equally_wide_bins_are_named_at_some_borders():
    shape, places, names = equally_wide(AGE, np.array([0.0, 1e-8, 2.5, 50.0, 1e9]))
    np.testing.assert_array_equal(shape.edges, [0, 1, 2, 3, 4])
    assert places == [0, 1, 3, 4]
    assert names == ["0", "1e-08", "50", "1e+09"]
    _, places, names = equally_wide(AGE, np.array([1.0, 1.0 + 1e-9, 1.0 + 2e-9]))
    assert places == [0, 2]
    assert names == ["1.0", "1.000000002"]


def test_heights_are_shares_of_the_densest_bin():
    np.testing.assert_allclose(heights(AGE, 3), np.array([1.0, 2.0, 0.5]) / 2)
    assert heights(replace(WORK, edges=None), 2).max() == 1
    assert heights(replace(AGE, counts=np.zeros(4)), 3).max() == 0


def test_a_model_of_several_classes_has_a_column_for_each():
    (alone,) = columns_of("m", model())
    assert (alone.title, alone.unit) == ("m", "log odds of >50K")
    of_three = model_from_json(of_classes(3))
    columns = columns_of("m", of_three, "private")
    assert [column.title for column in columns] == ["rank 0 (m)", "rank 1 (m)", "rank 2 (m)"]
    for s, column in enumerate(columns):
        assert (column.unit, column.warning) == ("log odds of the class", "private")
        for shape, function in zip(column.shapes, of_three.shape_functions_, strict=True):
            np.testing.assert_array_equal(shape.values, function[:, s])
    assert len(drawn(columns, ["age", "city"]).axes) == 6
    assert classes_left_out(of_three) == ""
    assert classes_left_out(model()) == ""


def test_of_many_classes_those_with_the_largest_intercepts_are_drawn():
    many = model_from_json(of_classes(MOST_MODELS + 2))
    columns = columns_of("m", many)
    assert [column.title for column in columns] == [f"rank {c} (m)" for c in range(2, 10)]
    assert "8 of 10 classes are drawn, those with the largest" in classes_left_out(many)
