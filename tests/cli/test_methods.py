"""`dprepro methods`."""

import json

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.methods.registry import all_methods
from dprepro.runtime.errors import DpreproError


def run(*arguments):
    return CliRunner().invoke(app, ["methods", *arguments])


def test_every_method_is_listed_with_its_guarantee_and_neighbours():
    result = run()
    assert result.exit_code == 0
    for method in all_methods().values():
        assert method.name in result.output
    lines = {line.split("  ")[0]: line for line in result.output.splitlines()}
    assert lines["dp-ebm-gdp"].split("  ")[1:] != []
    assert "(epsilon, delta)  zero-out" in lines["dp-ebm-gdp"]
    assert "guarantee (epsilon, delta), neighbours zero-out" in run("--verbose").output


def test_words_select_by_name_title_and_reference():
    assert [line.split()[0] for line in run("Breiman").output.splitlines()[1:]] == ["random-forest"]
    listed = [line.split()[0] for line in run("dp-ebm").output.splitlines()[1:]]
    assert "dp-ebm-gdp" in listed
    assert all("dp-ebm" in name for name in listed)


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
    result = run("dp-emb")
    assert isinstance(result.exception, DpreproError)
    assert "did you mean 'dp-ebm-gdp', 'dp-ebm-plus' or" in str(result.exception)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_has_an_example(flag):
    assert "Example: dprepro methods" in run(flag).output
