"""`dprepro audit`."""

import io
import json

import pytest
from typer.testing import CliRunner

from dprepro import __version__
from dprepro.audit import subjects
from dprepro.audit.case import MethodPair
from dprepro.audit.pairs import KINDS
from dprepro.audit.trials import TrialRunner
from dprepro.cli import app
from dprepro.cli.audit import _chosen
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import PlainConsole


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["audit", *arguments], env={"COLUMNS": "120"})
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_a_method_is_audited_on_each_of_its_tasks():
    output = run("dpboost", "--trials", "60", "--seed", "1")
    rows = [line.split() for line in output.splitlines() if line.startswith(" dpboost ")]
    assert [row[:2] for row in rows[:2]] == [["dpboost", "binary"], ["dpboost", "regression"]]
    assert all("EXCEEDED" in row for row in rows[:2])
    assert "- bin edges of all features" in output


def test_a_case_that_is_named_twice_is_audited_once(tmp_path):
    file = tmp_path / "results.json"
    twice = ["lazybb-1r-approx", "lazybb-1r-approx/rounds", "--output", str(file)]
    run(*twice, "--trials", "40", "--seed", "1")
    subjects = [result["subject"] for result in json.loads(file.read_text(encoding="utf-8"))]
    assert subjects == ["lazybb-1r-approx", "lazybb-1r-approx/rounds"]


def test_results_and_picture_are_written(tmp_path):
    output, picture = tmp_path / "new" / "audit.json", tmp_path / "audit.svg"
    run("gaussian", "laplace", "--epsilon", "4", "--trials", "200", "--seed", "1",
        "--output", str(output), "--picture", str(picture))  # fmt: skip
    results = json.loads(output.read_text(encoding="utf-8"))
    assert all(r["dprepro"] == __version__ and len(r["date"]) == 10 for r in results)
    assert [result["subject"] for result in results] == ["gaussian", "laplace"]
    assert {result["verdict"] for result in results} == {"within"}
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_results_of_other_subjects_stay_in_their_places(tmp_path):
    file = tmp_path / "audit.json"
    run("gaussian", "laplace", "--trials", "40", "--seed", "1", "--output", str(file))
    run("gaussian", "exponential", "--trials", "60", "--seed", "1", "--output", str(file))
    results = [
        (result["subject"], result["trials"])
        for result in json.loads(file.read_text(encoding="utf-8"))
    ]
    assert results == [("gaussian", 60), ("laplace", 40), ("exponential", 60)]
    assert [path.name for path in tmp_path.iterdir()] == ["audit.json"]


def test_what_was_audited_before_a_kill_is_not_run_again(tmp_path, monkeypatch):
    """Killed in the second audit: the first one's runs, and some of the second's, are there."""
    arguments = ["gaussian", "laplace", "--trials", "400", "--seed", "1", "--output"]
    batches, made = TrialRunner._made, []

    def counted(self, asked):
        for batch, runs in batches(self, asked):
            made.append(batch.size)
            if sum(made) == stop:
                raise KeyboardInterrupt
            yield batch, runs

    monkeypatch.setattr(TrialRunner, "_made", counted)
    stop = 450
    result = CliRunner().invoke(app, ["audit", *arguments, str(tmp_path / "a.json")])
    assert result.exit_code != 0
    stop = None
    output = run(*arguments, str(tmp_path / "a.json"))
    # The batch of the kill alone is made twice.
    assert sum(made) == 2 * 400 + 10
    assert output == run(*arguments, str(tmp_path / "b.json"))


def test_all_refreshes_the_record_with_its_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dprepro.cli.audit._chosen", lambda *of: [("gaussian", None)])
    run("--all", "--trials", "40")
    (found,) = json.loads((tmp_path / "results" / "audit.json").read_text(encoding="utf-8"))
    run("gaussian", "--seed", "2021", "--trials", "40", "--output", "a.json")
    assert (
        found["lower_bound"]
        == json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))[0]["lower_bound"]
    )
    assert "--all leaves nothing to choose" in run("gaussian", "--all", code=2)


def test_a_file_that_holds_something_else_is_not_overwritten(tmp_path):
    (tmp_path / "a.json").write_text('{"mine": 1}')
    result = CliRunner().invoke(app, ["audit", "gaussian", "--output", str(tmp_path / "a.json")])
    assert "the file holds no results of audits" in str(result.exception)


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
    assert "2048 canaries" in output
    assert output.count(" within ") == 2


def test_an_excess_without_a_reason_fails(monkeypatch):
    scale = NoiseSource.enter_gaussian
    monkeypatch.setattr(NoiseSource, "enter_gaussian", lambda *a, **k: scale(*a, **k) / 100)
    output = run("gaussian", "--trials", "200", "--seed", "1", code=1)
    assert "the ledger names no reason" in output


def test_by_default_everything_private_is_audited():
    assert _chosen(None, None, False) == subjects()
    assert {task for _, task in _chosen(None, "binary", False)} == {"binary"}
    assert ("gaussian", None) in _chosen(None, None, True)
    assert ("dp-ebm-sound/everywhere", "binary") in _chosen(None, "binary", True)
    assert ("laplace", None) not in _chosen(None, None, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dp-ebm"], "'dp-ebm' is the beginning of several methods"),
        (["gaussian", "--output", "a.txt"], "--output a.txt: allowed are .json"),
        (["gaussian", "--picture", "a.gif"], "pictures end in .png or .svg"),
        (["gaussian", "--one-run", "--picture", "a.png"], "one run has no distributions"),
        (["gaussian", "--size", "3x2"], "--size is about a picture"),
        (["laplace", "--one-run"], "laplace has no audit in one run"),
        (["dp-logistic", "--task", "regression"], "dp-logistic does not support regression"),
        (["gaussian", "--trials", "3"], "at least 40 trials, got 3"),
    ],
)
def test_mistakes_are_named(arguments, message):
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert isinstance(result.exception, DpreproError)
    assert message in str(result.exception)
    assert "1 of" not in result.output  # before anything is run


def test_a_method_stands_for_its_cases_and_its_canaries_for_all_kinds():
    of_method, of_canaries = (
        _chosen([name], "binary", False) for name in ("lazybb-1r", "lazybb-1r/canaries")
    )
    parts = ["", "/boosted", "/transcript"]
    assert [name for name, _ in of_method] == [f"lazybb-1r{part}" for part in parts]
    assert [name for name, _ in of_canaries] == [f"lazybb-1r/{kind}" for kind in KINDS]
    assert _chosen(["lazybb-1r/rare"], None, False) == [("lazybb-1r/rare", "binary")]


def test_a_budget_out_of_range_is_refused():
    said = run("gaussian", "--epsilon", "0", code=2)
    assert "--epsilon must be a finite number above 0, given 0" in said


def test_help_has_an_example():
    assert "Example: dprepro audit dp-ebm-sound" in run("--help")


def test_a_pipe_is_told_how_far_it_has_come():
    output = run("gaussian", "laplace", "--trials", "60", "--seed", "1")
    assert "1 of 2: gaussian, 60 runs at most" in output
    assert "2 of 2: laplace, 60 runs at most" in output


def test_a_terminal_is_told_first_what_will_be_run_and_how_long_it_takes(monkeypatch):
    shown = io.StringIO()
    stderr = PlainConsole(file=shown, stderr=True, force_terminal=True, width=100)
    monkeypatch.setattr("dprepro.cli.audit.error_console", lambda: stderr)
    monkeypatch.setattr("dprepro.audit.trials.expected_seconds", lambda planned, jobs: 83.0)
    run("gaussian", "laplace", "--trials", "1000", "--seed", "1")
    assert "2 audits, 2,000 runs at most: about 1:23 with --jobs 1" in shown.getvalue()


def test_a_pipe_is_told_nothing_of_times(monkeypatch):
    monkeypatch.setattr("dprepro.audit.trials.expected_seconds", None)
    assert "about" not in run("gaussian", "--trials", "40", "--seed", "1")


def test_cases_of_one_transcript_make_its_runs_once(monkeypatch):
    fits, fit = [], MethodPair.fit

    def counted(self, present, seed):
        fits.append(seed)
        return fit(self, present, seed)

    monkeypatch.setattr(MethodPair, "fit", counted)
    cases = [f"dp-ebm-plus/{part}" for part in ("transcript", "totals", "histograms", "epochs")]
    output = run(*cases, "--task", "binary", "--trials", "40", "--seed", "1")
    assert all(case in output for case in cases)
    assert len(fits) == 40 + len(cases)  # and one for each ledger
