"""Pixels become images, other columns bars; both say what was predicted and how heavy a map is."""

import numpy as np
import pytest

from dprepro.release.plot_data import BoostingRuns, Explained, Explanations
from dprepro.report.draw.files import save_figures
from dprepro.report.draw.filters import draw_filters, draw_margins
from dprepro.report.sheet import Sheet


def explanations(names, panels=2):
    rng = np.random.default_rng(0)
    models = tuple(
        Explained(
            title, ("a", "b"), rng.normal(size=(2, panels, len(names))), (("0.90", "0.10"),) * 2
        )
        for title in ("dp-llm, ε=2", "llm")
    )
    return Explanations(rng.random((2, len(names))), tuple(names), ("a", "a"), models)


def test_pixels_are_drawn_as_images():
    figure = draw_filters(explanations([f"pixel{k}" for k in range(1, 10)]))
    images = [axes for axes in figure.axes if axes.images]
    assert len(images) == 2 * (1 + 2 * 2)
    assert {axes.images[0].get_array().shape for axes in images} == {(3, 3)}
    filters = [axes.images[0] for axes in images if axes.get_title().startswith("0.")]
    assert all(image.norm.vmin == -image.norm.vmax for image in filters)
    assert [part.get_suptitle() for part in figure.subfigs] == [" ", "dp-llm, ε=2", "llm"]


@pytest.mark.parametrize("count", [5, 40])
def test_other_columns_are_drawn_as_bars_the_strongest_of_each_row(count):
    found = explanations([f"column {k}" for k in range(count)])
    figure = draw_filters(found)
    assert len(figure.axes) == 4
    assert all(len(axes.patches) == min(count, 12) for axes in figure.axes)
    assert "says a, weight 0.90" in figure.axes[0].get_title()
    strongest = np.abs(np.stack([m.vectors[0, 0] / np.abs(m.vectors[0, 0]).max()
                                 for m in found.models])).max(axis=0).argmax()  # fmt: skip
    assert figure.axes[0].get_yticklabels()[-1].get_text() == f"column {strongest}"


def test_an_image_stands_beside_its_row_with_its_label_and_caption():
    figure = draw_filters(explanations([f"pixel{k}" for k in range(1, 10)]))
    assert not any(axes.axison for axes in figure.axes)
    first, *others = figure.subfigs
    assert [axes.get_title() for axes in first.axes] == ["label a"] * 2
    for part in others:
        assert [axes.get_title() for axes in part.axes] == 2 * ["0.90", "0.10"]
    figure.draw_without_rendering()
    for k in range(2):
        row = [part.axes[k * len(part.axes) // 2] for part in figure.subfigs]
        middles = {round(sum(axes.bbox.intervaly) / 2) for axes in row}
        assert max(middles) - min(middles) <= 1, "an input and its filters are in one row"


@pytest.mark.parametrize("names", [[f"pixel{k}" for k in range(1, 10)], list("abcde")])
def test_filters_and_margins_fill_a_column_and_nothing_is_cut(names, tmp_path):
    figures = {
        "filters": draw_filters(explanations(names)),
        "margins": draw_margins(
            BoostingRuns("lazybb-1r, ε=1", np.full((3, 20), 0.1), np.full((3, 9), 0.2))
        ),
    }
    for name, figure in figures.items():
        save_figures({name: lambda f=figure: f}, tmp_path, ["svg"], Sheet(3.3, 3.0, 6.0))
        assert tuple(figure.get_size_inches()) == (3.3, 3.0)
        drawn = figure.get_tightbbox()
        assert drawn.x0 >= -0.01
        assert drawn.x1 <= 3.31
        assert drawn.y0 >= -0.01
        assert drawn.y1 <= 3.01


@pytest.mark.parametrize("names", [["pixel1", "pixel2", "pixel3"], list("abcd")])
def test_only_the_pixels_of_a_square_are_an_image(names):
    figure = draw_filters(explanations(names))
    assert not any(axes.images for axes in figure.axes)


def test_a_bar_says_which_way_a_column_points():
    found = explanations([f"a column with quite a long name: {k}" for k in range(5)])
    axes = draw_filters(found).axes[0]
    values = found.models[0].vectors[0, 0]
    widths = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(sorted(widths), np.sort(values / np.abs(values).max()))
    blue, orange = (
        {bar.get_facecolor() for bar in axes.patches if (bar.get_width() > 0) == up}
        for up in (True, False)
    )
    assert len(blue) == len(orange) == 1
    assert blue != orange
    assert all(len(tick.get_text()) <= 28 for tick in axes.get_yticklabels())
    assert axes.get_ylabel() == "label a"
    assert axes.lines[0].get_xdata() == [0, 0]


def test_a_map_of_zeros_is_drawn():
    found = explanations(["x", "y"])
    found.models[0].vectors[:] = 0.0
    assert [bar.get_width() for bar in draw_filters(found).axes[0].patches] == [0, 0]


def test_every_round_and_every_row_is_drawn():
    edges = np.array([[0.3, 0.1, 0.0], [0.1, 0.1, 0.0]])
    margins = np.array([[-1.0, 0.2, 0.2, 1.0], [0.2, 0.2, 0.2, 1.0]])
    figure = draw_margins(BoostingRuns("lazybb-1r, ε=1", edges, margins))
    left, right = figure.axes
    assert left.lines[0].get_ydata().tolist() == [0.2, 0.1, 0.0]
    assert np.isclose(sum(bar.get_height() for bar in right.patches), 1.0)
    assert "not private" in figure.get_suptitle()
    assert "2 fits" in figure.get_suptitle()


def test_the_panels_say_what_they_show():
    edges = np.array([[0.3, 0.1, 0.0], [0.1, 0.1, 0.0]])
    figure = draw_margins(
        BoostingRuns("lazybb-1r", edges, np.array([[-1.0, -0.96, 0.97, 1.0]] * 2))
    )
    left, right = figure.axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("round", "advantage over guessing")
    assert (right.get_xlabel(), right.get_ylabel()) == (
        "margin: mean vote times label",
        "share of training rows",
    )
    assert left.lines[0].get_xdata().tolist() == [1, 2, 3]
    (band,) = left.collections[0].get_paths()
    at_first = band.vertices[band.vertices[:, 0] == 1, 1]
    assert (at_first.min(), at_first.max()) == (pytest.approx(0.1), pytest.approx(0.3))
    assert left.lines[1].get_ydata() == [0.0, 0.0]
    assert right.lines[0].get_xdata() == [0.0, 0.0]
    assert list(right.get_xticks()) == [-1, 0, 1]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in right.patches]
    np.testing.assert_allclose(bars[0], (-1, -0.95, 0.5))
    np.testing.assert_allclose(bars[-1], (0.95, 1, 0.5))


def test_one_fit_is_no_fits():
    figure = draw_margins(BoostingRuns("x", np.array([[0.3]]), np.array([[0.2]])))
    assert figure.get_suptitle() == "x: 1 fit, exact and therefore not private"
