from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from dprepro.additive.file import load_model
from dprepro.cli import app
from dprepro.cli.models import _promise
from dprepro.experiment.record import Task
from dprepro.privacy.ledger import Ledger
from dprepro.release.provenance import trained_on
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.conftest import ROOT
from tests.lab import Lab, lab
from tests.report.journals import task

__all__ = ["lab"]

METHODS = [{"method": "dp-ebm-gdp", "params": {"n_epochs": 20}}, "logistic"]


@pytest.fixture
def config(lab: Lab) -> Path:
    return lab.config(methods=METHODS)


@pytest.fixture
def model(lab: Lab, config: Path) -> Path:
    path = lab.folder / "model.json"
    options = ("--epsilon", 8, "--split", 1, "--output", path)
    assert "ε=8 on tiny, split 1" in dprepro("fit", config, "--method", "dp-ebm-gdp", *options)
    return path


def test_a_saved_model_remembers_where_it_comes_from(model: Path) -> None:
    origin = load_model(model).origin_
    assert (origin["config"], origin["epsilon"], origin["rows"]) == ("lab", 8.0, "of one split")
    notes = json.loads(model.with_name("model.local-notes").read_text(encoding="utf-8"))
    assert (notes["task"]["split"], notes["task"]["epsilon"]) == (1, 8.0)


@pytest.mark.parametrize(
    ("method", "seed", "options", "says"),
    [
        ("dp-ebm-plus", None, [], "add/remove-one neighbours: the ledger says that this guarantee "
         "holds"),
        ("dp-ebm-plus", None, ["--split", 0], "holds (taken as public: which rows of the file"),
        ("dp-ebm-plus", 7, [], "does not hold: fixed seed"),
        ("ebm", None, [], "without privacy: the file is not private, keep it to yourself"),
    ],
)  # fmt: skip
def test_fit_says_what_the_ledger_says(
    lab: Lab, method: str, seed: int | None, options: list[object], says: str
) -> None:
    methods = [{"method": "dp-ebm-plus", "params": {"n_epochs": 2}}, "ebm"]
    config = lab.config(methods=methods, epsilons=[8], seed=seed, domain="public")
    output = dprepro("fit", config, "--method", method, "-o", lab.folder / "m.json", *options)
    assert says in output
    assert ("m.local-notes: which rows" in output) == bool(options)
    assert ("all rows" in output.splitlines()[0]) == (not options)


def test_a_model_of_all_rows_has_none_to_score_it(lab: Lab, config: Path) -> None:
    path = lab.folder / "m.json"
    dprepro("fit", config, "--method", "dp-ebm-gdp", "--epsilon", 8, "--output", path)
    with pytest.raises(DpreproError, match="to all rows, so no test rows are left") as caught:
        dprepro("score", path, config)
    assert len(str(caught.value).splitlines()) == 1


def test_committed_models_of_splits_are_still_read() -> None:
    for path in sorted((ROOT / "results" / "models").glob("*.json")):
        origin = load_model(path).origin_
        assert trained_on(origin, path) == origin["task"]
        assert Task.from_json(origin["task"]).to_json() == origin["task"]


def test_edits_change_the_file_and_undo_brings_it_back(model: Path) -> None:
    released = model.read_text(encoding="utf-8")
    copy = model.with_name("copy.json")
    assert "a: monotone decreasing" in dprepro(
        "edit", model, "--feature", "a", "--monotone", "decreasing", "--output", copy
    )
    assert model.read_text(encoding="utf-8") == released
    assert "set v to -0.5" in dprepro("edit", copy, "--feature", "b", "--at", "v", "--value", -0.5)
    assert "set" in dprepro("edit", copy, "--feature", "a", "--at", 0, "--value", 0.75)
    assert "from 0 to 0.5" in dprepro("edit", copy, "--feature", "a", "--interpolate", 0, 0.5)
    assert len(load_model(copy).edits_) == 4
    for _ in range(4):
        assert "undone" in dprepro("edit", copy, "--undo")
    assert copy.read_text(encoding="utf-8") == released


def test_showing_a_model_changes_nothing_and_shows_ledger_and_edits(model: Path) -> None:
    dprepro("edit", model, "--feature", "b", "--at", "u", "--value", 0.125)
    before = model.read_text(encoding="utf-8")
    overview = dprepro("edit", model)
    assert "Edits after the fit, which cost no budget: b: set u to 0.125" in overview
    assert "Spent epsilon, by dp_accounting" in overview
    assert "1. b: set u to 0.125" in overview
    assert "0.125" in dprepro("edit", model, "--feature", "b")
    assert model.read_text(encoding="utf-8") == before


def test_an_edited_model_is_scored_beside_the_released_one(model: Path, config: Path) -> None:
    released = json.loads(dprepro("score", model, config, "--json"))
    assert set(released) == {"model"}
    dprepro("edit", model, "--feature", "a", "--monotone", "decreasing")
    both = json.loads(dprepro("score", model, config, "--json"))
    assert both["as released"] == released["model"]
    assert both["model"]["auc"] < released["model"]["auc"]
    assert "as released" in dprepro("score", model, config)
    outcome = CliRunner().invoke(app, ["score", str(model), str(config)])
    assert outcome.stderr.startswith("PRIVATE DATA: these are exact scores")


def test_only_scores_that_are_shown_are_warned_of(model: Path, config: Path) -> None:
    other = config.with_name("other.yaml")
    other.write_text(json.dumps({**yaml.safe_load(config.read_text(encoding="utf-8")), "seed": 9}))
    outcome = CliRunner().invoke(app, ["score", str(model), str(other)])
    assert "(seed differs): name the config that it was fitted with" in str(outcome.exception)
    assert "PRIVATE DATA" not in outcome.output


def test_shapes_of_methods_and_of_files_are_drawn(model: Path, config: Path) -> None:
    folder = model.parent / "figures"
    options = ("--output", folder, "--format", "svg", "--split", 2)
    fitted = dprepro("plot", "shapes", config, "--method", "dp-ebm-gdp", "--epsilon", 1, *options)
    assert [line.rpartition("/")[2] for line in fitted.split()] == [
        "shapes-a.svg",
        "shapes-b.svg",
        "shapes.svg",
    ]
    saved = dprepro("plot", "shapes", "--model", model, "--numeric", "--name", "mine", *options)
    assert saved.split() == [str(folder / "mine-a.svg")]


@pytest.mark.parametrize(
    ("method", "seed", "warned"),
    [("dp-ebm-plus", None, False), ("dp-ebm-plus", 7, True), ("ebm", None, True)],
)
def test_shapes_of_private_rows_are_called_so_unless_a_ledger_holds(
    lab: Lab, method: str, seed: int | None, warned: bool
) -> None:
    config = lab.config(methods=[method], epsilons=[1], seed=seed, domain="public")
    model = lab.folder / "m.json"
    dprepro("fit", config, "--method", method, "--output", model)
    output = ("--output", str(lab.folder), "--format", "svg")
    for drawn in ([str(config)], ["--model", str(model)]):
        said = CliRunner().invoke(app, ["plot", "shapes", *drawn, *output])
        assert said.exit_code == 0, said.output
        assert ("PRIVATE DATA: the picture shows models without" in said.stderr) == warned


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "CONFIG", "--method", "dp-ebm-gdp", "-o", "x.json"], "one model at a time"),
        (["fit", "CONFIG", "--method", "logistic", "-o", "x.json"], "no shape functions"),
        (["edit", "MODEL", "--monotone", "increasing"], "name one change"),
        (["edit", "MODEL", "--feature", "a", "--at", "1"], "both --at and --value"),
        (["edit", "MODEL", "--feature", "a", "--undo", "--monotone", "up"], "name one change"),
        (["edit", "MODEL", "--undo"], "no edit to undo"),
        (["edit", "CONFIG"], "not a model file"),
        (["score", "MODEL", "quickstart"], "name the config that it was fitted with"),
        (["plot", "shapes"], "nothing to draw"),
        (["plot", "shapes", "--model", "MODEL", "--feature", "c"], "no feature 'c'"),
    ],
)
def test_mistakes_are_told(model: Path, config: Path, arguments: list[str], message: str) -> None:
    places = {"CONFIG": str(config), "MODEL": str(model)}
    with pytest.raises(DpreproError, match=message):
        dprepro(*(places.get(argument, argument) for argument in arguments))


@pytest.mark.parametrize("model", [{}, {"ledger_": Ledger(1.0, 0.0, "replace-one")}])
def test_a_fit_at_an_epsilon_that_shows_no_releases_is_unverified(model: dict) -> None:
    said = _promise(SimpleNamespace(**model), task("claims", 1.0), "")
    assert said.startswith("claims: unverified: it keeps no ledger of its releases")
    assert _promise(SimpleNamespace(), task("ebm", math.inf), "") == "fitted without privacy"
