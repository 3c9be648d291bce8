"""`dprepro configs`, `documents` and `methods`: lists, and how they are searched."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.cli.catalogue import select, show_list
from dprepro.experiment.config import config_names, config_titles, load_config
from dprepro.methods.registry import all_methods
from dprepro.papers.document import load_documents
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro

TITLES = {"wine-white": "DP-EBM on white wines", "quick": "A first run", "adult": "Wine or census"}


def test_every_config_has_a_title() -> None:
    titles = config_titles()
    assert list(titles) == config_names()
    assert titles["quickstart"] == load_config("quickstart").title != ""
    assert all(titles.values())


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprepro.experiment.config.config_titles", lambda: TITLES)


@pytest.mark.usefixtures("_few")
def test_the_list_is_aligned() -> None:
    assert dprepro("configs").splitlines() == [
        "wine-white  DP-EBM on white wines",
        "quick       A first run",
        "adult       Wine or census",
    ]


@pytest.mark.usefixtures("_few")
def test_a_word_selects_by_name_and_title() -> None:
    assert [line.split()[0] for line in dprepro("configs", "WINE").splitlines()] == [
        "wine-white",
        "adult",
    ]
    with pytest.raises(DpreproError, match=r"no config has 'adul-t'.*; did you mean 'adult'"):
        dprepro("configs", "adul-t")


def test_every_document_is_listed_with_its_printed_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = dprepro("documents").splitlines()
    assert len(lines) == len(load_documents())
    for line, (name, document) in zip(lines, load_documents().items(), strict=True):
        assert line.split()[:3] == [name, f"{len(document.cells()):,}", "cells"]
        assert line.endswith(document.title)


def test_a_word_selects_documents_by_name_and_title() -> None:
    assert dprepro("documents", "boosted").split()[0] == "lazybb-2022"
    with pytest.raises(DpreproError, match="did you mean 'dp-ebm-2021'"):
        dprepro("documents", "dp-emb")


TEXTS = {"wine-white": "White wines", "quick": "A first run", "adult": "Wine or census"}


def test_all_words_must_be_there_in_name_or_title() -> None:
    assert select((), TEXTS, "config") == list(TEXTS)
    assert select(["WINE"], TEXTS, "config") == ["wine-white", "adult"]
    assert select(["wine", "census"], TEXTS, "config") == ["adult"]


def test_without_a_match_the_nearest_names_are_given() -> None:
    said = "no config has 'wine-whit_'.*; did you mean 'wine-white'.*all are listed"
    with pytest.raises(DpreproError, match=said):
        select(["wine-whit_"], TEXTS, "config")


def test_a_list_is_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    show_list([("a", "12", "some words to be wrapped"), ("bc", "3", "short")], figures=[1])
    assert capsys.readouterr().out.splitlines() == [
        "a   12  some words to be",
        "        wrapped",
        "bc   3  short",
    ]


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
