from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.lab import Lab, lab

__all__ = ["lab"]

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
    assert "3 fits" in (folder / "margins.svg").read_text()
    options = (*options, "--fits", "1")
    outcome = CliRunner().invoke(app, ["plot", "margins", str(config), *map(str, options)])
    assert outcome.stderr.startswith("PRIVATE DATA: the picture shows exact advantages")
