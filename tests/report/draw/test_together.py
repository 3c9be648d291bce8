"""One picture is put together from the files of several, which are not drawn again."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from dprepro.report.draw.files import contents
from dprepro.report.draw.svg import put_together

SVG = "{http://www.w3.org/2000/svg}"
COLOURS = ["#ff0000", "#00ff00", "#0000ff", "#ffff00"]
BELOW = 0.5


def filled(colour, wide=2.0, high=1.5):
    """Return a figure of one colour, with a black strip at its lower edge."""
    figure = Figure(figsize=(wide, high), facecolor=colour)
    figure.add_axes((0, 0, 1, BELOW / high), facecolor="black")
    return figure


def together(ending, widest=4.1):
    colours = [*COLOURS, "#00ffff"]
    (*files, keys) = (contents(filled(colour), [ending])[0] for colour in colours)
    return put_together(files, keys, ending, BELOW, widest)


def test_pictures_fill_rows_without_the_strip_and_the_keys_stand_below():
    pixels = imread(io.BytesIO(together("png")))
    assert pixels.shape[1] == 2 * 2 * 150
    seen = [tuple(np.rint(pixels[y, x, :3]).astype(int)) for y in (75, 250) for x in (150, 450)]
    assert seen == [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)]
    height = pixels.shape[0] - 225
    assert tuple(pixels[height + 10, 150, :3]) == (0, 1, 1), "the picture of the keys"
    assert not pixels[-10, 150, :3].any(), "with its lower strip"
    black = (pixels[..., :3] == 0).all(axis=2)
    assert black.sum() == pytest.approx(BELOW * 150 * 300, rel=0.02), "no other strip is left"


def test_the_parts_of_an_svg_file_keep_their_sizes_and_identifiers_apart():
    text = together("svg").decode()
    root = ElementTree.fromstring(text)
    parts = root.findall(f"{SVG}svg")
    places = [tuple(float(part.get(name)) for name in ("x", "y")) for part in parts]
    assert places[:2] == [(0, 0), (144, 0)]
    assert [float(part.get("height")) for part in parts] == [72.0] * 4 + [108.0]
    assert all(part.get("viewBox") == f"0 0 144 {part.get('height')}" for part in parts)
    bottom = places[-1][1] + 108
    assert float(root.get("viewBox").split()[-1]) == pytest.approx(bottom)
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(names) == len(set(names))
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', text)) <= set(names)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_files_give_the_same_bytes_and_narrow_paper_takes_one_a_row(ending):
    assert together(ending) == together(ending)
    tall = together(ending, widest=1.0)
    if ending == "png":
        assert imread(io.BytesIO(tall)).shape[1] == 300
    else:
        parts = ElementTree.fromstring(tall).findall(f"{SVG}svg")
        assert {part.get("x") for part in parts} == {"0"}
