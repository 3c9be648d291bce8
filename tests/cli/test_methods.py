"""`dprepro methods`."""

import json

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.errors import DpreproError
from dprepro.methods.registry import all_methods


def run(*arguments):
    return CliRunner().invoke(app, ["methods", *arguments])


def test_every_method_is_listed_with_its_guarantee_and_neighbours():
    result = run()
    assert result.exit_code == 0
    for method in all_methods().values():
        assert method.name in result.output
    assert "guarantee (epsilon, delta), neighbours zero-out" in result.output


def test_one_method_is_shown_with_its_parameters():
    result = run("dp-ebm-gdp")
    assert "max_bins = 32" in result.output
    assert "Algorithm 2" in result.output


def test_json_holds_the_same():
    listed = json.loads(run("--json").output)
    assert [entry["name"] for entry in listed] == list(all_methods())
    by_name = {entry["name"]: entry for entry in listed}
    assert by_name["dp-logistic"]["guarantee"] == "none"
    assert by_name["dp-ebm-gdp"]["parameters"]["n_epochs"] == 300


def test_an_unknown_method_is_explained():
    result = run("dp-ebm")
    assert isinstance(result.exception, DpreproError)
    assert "Allowed: " in str(result.exception)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_has_an_example(flag):
    assert "Example: dprepro methods" in run(flag).output
