import numpy as np
import pytest

from dprepro.release.plot_data import BoostingRuns
from dprepro.report.draw.filters import draw_margins


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
    assert list(right.get_xticks()) == [-1, -0.5, 0, 0.5, 1]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_height()) for bar in right.patches]
    np.testing.assert_allclose(bars[0], (-1, -0.95, 0.5))
    np.testing.assert_allclose(bars[-1], (0.95, 1, 0.5))


def test_one_fit_is_no_fits():
    figure = draw_margins(BoostingRuns("x", np.array([[0.3]]), np.array([[0.2]])))
    assert figure.get_suptitle() == "x: 1 fit, exact and therefore not private"
