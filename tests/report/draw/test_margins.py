import numpy as np

from dprepro.inspect.pictured import BoostingRuns
from dprepro.report.draw.margins import draw_margins


def test_every_round_and_every_row_is_drawn():
    edges = np.array([[0.3, 0.1, 0.0], [0.1, 0.1, 0.0]])
    margins = np.array([[-1.0, 0.2, 0.2, 1.0], [0.2, 0.2, 0.2, 1.0]])
    figure = draw_margins(BoostingRuns("lazybb-1r, ε=1", edges, margins))
    left, right = figure.axes
    assert left.lines[0].get_ydata().tolist() == [0.2, 0.1, 0.0]
    assert np.isclose(sum(bar.get_height() for bar in right.patches), 1.0)
    assert "not private" in figure.get_suptitle()
    assert "2 fits" in figure.get_suptitle()
