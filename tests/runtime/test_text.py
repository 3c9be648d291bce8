"""Text from journals, cards and models becomes safe before it is drawn or names a file."""

import xml.etree.ElementTree as ElementTree
from pathlib import PureWindowsPath

import numpy as np
import pytest
from matplotlib.figure import Figure

from dprepro.release.plot_data import Explained, Explanations
from dprepro.report.draw.files import save_figures
from dprepro.report.draw.filters import draw_filters
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import file_names, plain, shortened


def test_a_safe_name_stays_and_any_other_gets_a_digest():
    plain_name, changed = file_names(["capital-gain", "work $/h"])
    assert plain_name == "capital-gain"
    assert changed.startswith("work___h-")
    assert file_names(["work $/h"]) == [changed], "whatever stands beside it"


@pytest.mark.parametrize(
    "texts",
    [
        ["a/b", "a:b", "a_b"],
        ["Age", "age", "AGE"],
        ["x" * 300, "x" * 301, "\U0001d4d0" * 300],
        ["", ".", "..", "../..", "\x00", "\ud800"],
    ],
)
def test_names_of_files_are_short_distinct_and_stay_in_their_folder(texts, tmp_path):
    names = file_names(texts)
    assert len({name.casefold() for name in names}) == len(texts)
    for name in names:
        path = tmp_path / f"shapes-{name}.png"
        path.touch()
        assert path.parent == tmp_path
        assert len(path.name.encode()) < 150


@pytest.mark.parametrize("text", ["CON", "aux", "nul.txt", "Com1", "lpt¹.a.b", "a.", "a. ", "a|b?"])
def test_no_name_is_one_that_windows_refuses(text):
    (name,) = file_names([text])
    device = PureWindowsPath(f"{name}.png")
    assert not device.is_reserved()
    assert not PureWindowsPath(name).is_reserved()
    assert not set(name) & set('<>:"/\\|?*')
    assert not name.endswith((".", " "))


def test_a_name_that_looks_like_a_digest_does_not_hide_another():
    (changed,) = file_names(["a b"])
    assert len(set(file_names([changed, "a b"]))) == 2


def test_lines_are_cut():
    assert shortened("a\nb  c", 10) == "a b c"
    assert shortened("x" * 10**6, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("text", ["$\\nothing$", "50 $ and 60 $", "a\x00b\x1b"])
def test_what_is_drawn_is_no_formula_and_no_broken_picture(text, tmp_path):
    figure = Figure()
    figure.text(0.5, 0.5, plain(text))
    (path,) = save_figures({"t": lambda: figure}, tmp_path, ["svg"])
    ElementTree.parse(path)


def test_columns_that_look_like_formulas_are_drawn():
    model = Explained("$\\m$", ("$\\p$",), np.ones((1, 1, 2)), (("1.0",),))
    found = Explanations(np.ones((1, 2)), ("$\\frac$", "b"), ("$\\y$",), (model,))
    figure = draw_filters(found)
    figure.draw_without_rendering()
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert r"\$\frac\$" in names


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DpreproError, match=r"file.*cannot be written.*--output"):
        save_figures({"t": Figure}, tmp_path / "file", ["svg"])
    with pytest.raises(DpreproError, match="cannot be written"):
        save_figures({"n" * 300: Figure}, tmp_path, ["svg"])
