"""`dprepro tree`: what it prints and writes, and what it refuses."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.methods.privatree.rules import Leaf, Question
from dprepro.report.draw.tree import draw_tree
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.lab import Lab, lab

__all__ = ["lab"]

METHODS = ["privatree-sound", "dp-one-rule"]


def test_a_tree_is_printed_with_its_accuracy(lab: Lab) -> None:
    shown = dprepro("tree", lab.config(methods=METHODS), "--epsilon", 8, "--split", 1)
    assert "privatree-sound, ε=8 on tiny" in shown
    assert "  yes:\n" in shown
    assert "accuracy 0." in shown
    outcome = CliRunner().invoke(app, ["tree", str(lab.folder / "lab.yaml"), "--epsilon", "8"])
    assert "PRIVATE DATA: the accuracy is exact" in outcome.stderr


@pytest.mark.parametrize(
    ("ending", "beginning"),
    [
        ("txt", "privatree-sound"),
        ("svg", "<?xml"),
        ("sql", "-- Predictions of a tree"),
        ("py", '"""'),
    ],
)
def test_the_ending_says_what_is_written(lab: Lab, ending: str, beginning: str) -> None:
    output = lab.folder / f"tree.{ending}"
    more = ("--dialect", "sqlite") if ending == "sql" else ()
    config = lab.config(methods=METHODS)
    dprepro("tree", config, "--epsilon", 8, "--output", output, *more)
    assert output.read_text(encoding="utf-8").startswith(beginning)
    assert output.stat().st_mode & 0o077 == 0  # of private rows: for its owner alone


def test_what_is_no_tree_or_no_form_of_one_is_refused(lab: Lab) -> None:
    config = lab.config(methods=METHODS)
    with pytest.raises(DpreproError, match="no single tree: choose a method such as privatree"):
        dprepro("tree", config, "--method", "dp-one-rule", "--epsilon", 8)
    for output, said in (("tree.doc", "allowed endings are .txt"), ("tree.sql", "--dialect")):
        with pytest.raises(DpreproError, match=said):
            dprepro("tree", config, "--epsilon", 8, "--output", lab.folder / output)
        assert not Path(lab.folder / output).exists()
    for given, said in (
        (("--dialect", "sqlite"), "--dialect is about an SQL query, and the text writes none"),
        (("--table", "x", "--output", lab.folder / "t.svg"), "ends in .svg writes none"),
    ):
        with pytest.raises(DpreproError, match=said):
            dprepro("tree", config, "--epsilon", 8, *given)


def test_boxes_of_a_picture_do_not_overlap() -> None:
    """Where a question is wider than what is below it, and beside a short label, too."""
    long = "native-country is one of a very long list of countries"
    deep = Question(long, Leaf("no"), Question("x <= 1", Leaf("yes"), Leaf("no")))
    root = Question(
        "x <= 2", Question("z is known", Leaf("no"), deep), Question(long, deep, Leaf("a"))
    )
    figure = draw_tree(root, "a title", "yes")
    (axes,) = figure.axes
    figure.draw_without_rendering()
    boxes = [
        text.get_bbox_patch().get_window_extent()
        for text in axes.texts
        if text.get_bbox_patch() is not None and text.get_zorder() == 3
    ]
    assert len(boxes) == 15
    pairs = [(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
    assert not any(a.overlaps(b) for a, b in pairs)
    assert min(box.x0 for box in boxes) > 0
    assert max(box.x1 for box in boxes) < figure.bbox.x1
