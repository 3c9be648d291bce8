"""Pictures compared with committed ones, which somebody has looked at.

`python -m tests.report.draw.test_pictures` draws them anew after a change of style.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.ticker import NullFormatter

from dprepro.report.draw.curves import looks_of
from dprepro.report.draw.pages import draw_curves
from dprepro.report.draw.shapes import draw_shapes
from tests.report.draw.test_curves import near_and_far
from tests.report.draw.test_shapes import AGE, PLAIN, PRIVATE

FOLDER = Path(__file__).with_name("pictures")
# Root mean square of the difference, of levels in [0, 1], where anything is drawn.
TOLERANCE = 0.03


def curves():
    return draw_curves([near_and_far()], looks_of([near_and_far()]))


def grid():
    return draw_shapes([PRIVATE], [AGE.name, "work $/h"])


def rows():
    return draw_shapes([PLAIN, PRIVATE], [AGE.name])


PICTURES = {"curves": curves, "shape-grid": grid, "shape-rows": rows}


def pixels(path):
    """Return a picture as grey levels and colours, every four by four pixels taken together."""
    found = imread(path)[..., :3]
    height, width = (side // 4 * 4 for side in found.shape[:2])
    parts = found[:height, :width].reshape(height // 4, 4, width // 4, 4, 3)
    return parts.mean(axis=(1, 3))


def difference(one, other):
    """Return the root mean square over what is drawn: pixels that are not white in both."""
    assert one.shape == other.shape
    drawn = (np.minimum(one, other) < 0.99).any(axis=2)
    return math.sqrt(float(((one - other)[drawn] ** 2).mean()))


def save(figure, path):
    """Write a figure without letters, which differ with the version of FreeType."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(NullFormatter())
    for text in figure.findobj(Text):
        text.set_visible(False)
    figure.savefig(path, dpi=60)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_looks_as_it_did(name, tmp_path):
    save(PICTURES[name](), tmp_path / "now.png")
    assert difference(pixels(tmp_path / "now.png"), pixels(FOLDER / f"{name}.png")) < TOLERANCE


def test_a_curve_that_has_moved_is_noticed(tmp_path):
    figure = curves()
    for line in figure.axes[1].lines:
        line.set_ydata(np.asarray(line.get_ydata()) - 0.003)
    save(figure, tmp_path / "now.png")
    assert difference(pixels(tmp_path / "now.png"), pixels(FOLDER / "curves.png")) > TOLERANCE


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        save(draw(), FOLDER / f"{name}.png")
