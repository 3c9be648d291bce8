"""`dprepro audit`."""

import json

import pytest
from typer.testing import CliRunner

from dprepro import __version__
from dprepro.audit import subjects
from dprepro.cli import app
from dprepro.cli.audit import _chosen
from dprepro.errors import DpreproError
from dprepro.privacy.mechanisms import NoiseSource


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["audit", *arguments], env={"COLUMNS": "120"})
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_a_method_is_audited_on_each_of_its_tasks():
    output = run("dpboost", "--trials", "60", "--seed", "1")
    rows = [line.split() for line in output.splitlines() if line.startswith("dpboost ")]
    assert [row[:2] for row in rows[:2]] == [["dpboost", "binary"], ["dpboost", "regression"]]
    assert all("EXCEEDED" in row for row in rows[:2])
    assert "- bin edges of all features" in output


def test_a_case_that_is_named_twice_is_audited_once(tmp_path):
    file = tmp_path / "results.json"
    twice = ["dp-ebm-plus", "dp-ebm-plus/answers", "--task", "binary", "--output", str(file)]
    run(*twice, "--trials", "40")
    subjects = [result["subject"] for result in json.loads(file.read_text())]
    assert subjects == ["dp-ebm-plus", "dp-ebm-plus/answers"]


def test_results_and_picture_are_written(tmp_path):
    output, picture = tmp_path / "new" / "audit.json", tmp_path / "audit.svg"
    run("gaussian", "laplace", "--epsilon", "4", "--trials", "200", "--seed", "1",
        "--output", str(output), "--picture", str(picture))  # fmt: skip
    results = json.loads(output.read_text())
    assert all(r["dprepro"] == __version__ and len(r["date"]) == 10 for r in results)
    assert [result["subject"] for result in results] == ["gaussian", "laplace"]
    assert {result["verdict"] for result in results} == {"within"}
    assert picture.read_text().startswith("<?xml")


def test_output_can_be_the_picture(tmp_path):
    run("gaussian", "--trials", "40", "--seed", "1", "--output", str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_prints_the_same():
    arguments = ("exponential", "--trials", "200", "--seed", "5")
    assert run(*arguments) == run(*arguments)


def test_one_run():
    output = run("dp-ebm-sound", "--one-run", "--epsilon", "8", "--task", "regression", "--seed",
                 "0")  # fmt: skip
    assert "128 canaries" in output
    assert output.count("within") == 1


def test_an_excess_without_a_reason_fails(monkeypatch):
    scale = NoiseSource.enter_gaussian
    monkeypatch.setattr(NoiseSource, "enter_gaussian", lambda *a, **k: scale(*a, **k) / 100)
    output = run("gaussian", "--trials", "200", "--seed", "1", code=1)
    assert "the ledger names no reason" in output


def test_by_default_everything_private_is_audited():
    assert _chosen(None, None, False) == subjects()
    assert {task for _, task in _chosen(None, "binary", False)} == {"binary"}
    assert ("gaussian", None) in _chosen(None, None, True)
    assert ("laplace", None) not in _chosen(None, None, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dp-ebm"], "no private method or mechanism is called 'dp-ebm'"),
        (["gaussian", "--output", "a.txt"], "--output a.txt: allowed are .json"),
        (["gaussian", "--picture", "a.gif"], "pictures end in .png or .svg"),
        (["gaussian", "--one-run", "--picture", "a.png"], "one run has no distributions"),
        (["laplace", "--one-run"], "laplace has no audit in one run"),
        (["dp-logistic", "--task", "regression"], "dp-logistic does not support regression"),
        (["gaussian", "--trials", "3"], "at least 40 trials, got 3"),
    ],
)
def test_mistakes_are_named(arguments, message):
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert isinstance(result.exception, DpreproError)
    assert message in str(result.exception)


def test_a_budget_out_of_range_is_refused():
    assert "epsilon must be positive" in run("gaussian", "--epsilon", "0", code=2)


def test_help_has_an_example():
    assert "Example: dprepro audit dp-ebm-sound" in run("--help")
