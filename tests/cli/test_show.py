"""`dprepro show` and `votes`: what they write, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.additive.editing import level
from dprepro.additive.file import load_model, save_model
from dprepro.cli import app
from dprepro.cli.show import title_of
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.lab import Lab, lab
from tests.report.model_page.models import model, paired, values

__all__ = ["lab"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model file."""
    save_model(model(), tmp_path / "model.json")
    return tmp_path / "model.json"


def test_the_page_lies_beside_the_model_or_where_it_is_asked_for(path: Path) -> None:
    assert "model.html: 3 functions" in dprepro("show", path)
    other = path.parent / "deep" / "page.htm"
    dprepro("show", path, "--output", other)
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert page == other.read_text(encoding="utf-8")
    assert "<h1>dp-ebm-plus on people</h1>" in page
    assert "model-edited.json" in page


def test_functions_of_pairs_are_counted(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps(paired()), encoding="utf-8")
    assert "model.html: 5 functions" in dprepro("show", tmp_path / "model.json")


def test_open_starts_a_browser_or_says_that_it_cannot(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: asked.append(url) or True)
    dprepro("show", path)
    assert asked == []
    dprepro("show", path, "--open")
    assert asked == [path.with_suffix(".html").as_uri()]
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    with pytest.raises(DpreproError, match=r"no browser could be started; open .*\.html in"):
        dprepro("show", path, "--open")


@pytest.mark.parametrize("output", ["page.txt", "page"])
def test_another_ending_is_refused(path: Path, output: str) -> None:
    with pytest.raises(DpreproError, match=r"allowed endings are \.html and \.htm"):
        dprepro("show", path, "--output", path.parent / output)
    assert sorted(p.name for p in path.parent.iterdir()) == ["model.json"]


def test_a_release_folder_names_its_model_and_is_left_as_it_is(path: Path) -> None:
    """`show` replaced the page of a release, and `edit` its model, so that `verify` failed."""
    folder = path.parent
    for name in ("statement.json", "model.html"):
        (folder / name).write_text("as released", encoding="utf-8")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    for arguments in (
        ("show", folder),
        ("show", path),
        ("edit", folder, "--feature", "age", "--level", "60", "90"),
    ):
        with pytest.raises(DpreproError, match=r"belongs to a release.* another place with --out"):
            dprepro(*arguments)
    assert {file: file.read_bytes() for file in folder.iterdir()} == before
    page = folder / "elsewhere" / "model.html"
    assert "3 functions" in dprepro("show", folder, "--output", page)
    assert page.exists()
    assert "age" in dprepro("edit", folder)  # shows the model


def test_the_model_is_never_overwritten(path: Path) -> None:
    renamed = path.rename(path.with_suffix(".html"))
    text = renamed.read_text(encoding="utf-8")
    with pytest.raises(DpreproError, match="is the model itself; name the page with --output"):
        dprepro("show", renamed)
    assert renamed.read_text(encoding="utf-8") == text


def test_a_damaged_model_leaves_no_page(path: Path) -> None:
    broken = values()
    broken["features"][0]["values"][0] = "1"
    path.write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(DpreproError, match=r"features\.0\.categorical\.values\.0"):
        dprepro("show", path)
    assert not path.with_suffix(".html").exists()


def test_a_page_that_cannot_be_written_is_said(path: Path) -> None:
    (path.parent / "page.html").mkdir()
    with pytest.raises(DpreproError, match="cannot be written"):
        dprepro("show", path, "--output", path.parent / "page.html")


@pytest.mark.parametrize(
    ("origin", "title"),
    [
        ({"method": "dp-ebm-gdp", "label": "coarse", "dataset": "shop"}, "coarse on shop"),
        ({"config": "c", "task": {"method": "ebm", "dataset": "adult"}}, "ebm on adult"),
        ({"dataset": "shop"}, "mine"),
        ({}, "mine"),
    ],
)
def test_the_title_comes_from_the_origin(origin: dict[str, object], title: str) -> None:
    assert title_of(origin, "mine") == title


def test_a_range_is_levelled_from_the_command_line_as_in_python(path: Path) -> None:
    output = dprepro("edit", path, "--feature", "age", "--level", 30, 50)
    assert "age: level from 30 to 50; " in output
    made = model()
    level(made, "age", 30.0, 50.0)
    assert load_model(path).edits_ == made.edits_
    with pytest.raises(DpreproError, match="with --level FROM TO, or with both"):
        dprepro("edit", path, "--feature", "age", "--level", 30, 50, "--undo")


METHODS = [{"method": "lazybb-1r", "params": {"rounds": 3}}, "boosted-topdown"]


def test_a_vote_is_shown_with_features_and_accuracy(lab: Lab) -> None:
    shown = dprepro("votes", lab.config(methods=METHODS), "--epsilon", 8, "--split", 1)
    assert "lazybb-1r, ε=8 on tiny" in shown
    assert "accuracy 0." in shown
    outcome = CliRunner().invoke(app, ["votes", str(lab.folder / "lab.yaml"), "--epsilon", "8"])
    assert outcome.stderr.startswith("PRIVATE DATA: the accuracy is exact")


def test_trees_have_no_table_of_features(lab: Lab) -> None:
    with pytest.raises(DpreproError, match="votes with trees"):
        dprepro("votes", lab.config(methods=METHODS), "--method", "boosted-topdown")


def test_margins_are_drawn_for_all_splits(lab: Lab) -> None:
    config, folder = lab.config(methods=METHODS, epsilons=[8]), lab.folder / "figures"
    options = ("--output", folder, "--format", "svg")
    assert dprepro("plot", "margins", config, *options).strip() == str(folder / "margins.svg")
    assert "3 fits" in (folder / "margins.svg").read_text(encoding="utf-8")
    options = (*options, "--fits", "1")
    outcome = CliRunner().invoke(app, ["plot", "margins", str(config), *map(str, options)])
    assert outcome.stderr.startswith("PRIVATE DATA: the picture shows exact advantages")
