"""`dprepro check --fast` notices each kind of change that must not pass unseen."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.experiment import worker
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.record import OF_THE_LINE
from dprepro.judge import verdicts
from dprepro.judge.snapshot import COLUMNS, NAME
from dprepro.papers import document
from dprepro.results.margins import METRICS, Margin
from dprepro.runtime.errors import DpreproError
from tests.cli.test_check import check
from tests.in_process import in_process
from tests.lab import lab
from tests.report.journals import records, spread, write

__all__ = ["in_process", "lab"]

GOOD = 0.875


@pytest.fixture
def journal(lab, in_process, monkeypatch):
    """Run a tiny config, make it the fast one, and return its journal."""
    config = lab.config(epsilons=[1], splits=2)
    outcome = CliRunner().invoke(
        app, ["run", str(config), "--jobs", "1", "--results", str(lab.results)]
    )
    assert outcome.exit_code == 0, outcome.output
    monkeypatch.setattr("dprepro.cli.check.FAST_CONFIG", str(config))
    return lab.results / "lab.jsonl"


@pytest.fixture
def recorded(journal):
    """Add cells that are as printed, and record all."""
    write(journal.parent, "mine", records(spread(GOOD, 0.005, 25)))
    code, _ = check("--results", journal.parent, "--record")
    assert code == 0
    return journal.parent


def fast(folder, *more):
    code, text = check("--results", folder, "--fast", "--jobs", 1, "--format", "json", *more)
    return code, json.loads(text)


def test_every_task_is_one_of_adults_and_every_method_is_there(data_dir):
    adult, slice_of_it = (plan(load_config(name), data_dir) for name in ("adult", "fast"))
    assert {p.task.key for p in slice_of_it} < {p.task.key for p in adult}
    assert {p.task.split for p in slice_of_it} == {0, 1}
    assert len({p.task.epsilon for p in slice_of_it if p.task.method == "dp-ebm-gdp"}) == 2
    assert {p.task.label for p in slice_of_it} == {p.task.label for p in adult}


def test_it_runs_again_and_finds_the_committed_numbers(journal):
    before = journal.read_text(encoding="utf-8")
    code, found = fast(journal.parent)
    rerun = found["rerun"]
    assert (code, rerun["passes"], rerun["matched"]) == (0, True, 2)
    assert (rerun["largest"], found["changed"]) == (0.0, None)
    assert journal.read_text(encoding="utf-8") == before, "the committed journal stays as it is"


def test_it_fails_when_no_committed_task_is_the_same(journal):
    write(journal.parent, "lab", records(spread(0.9, 0.01, 2)))
    code, found = fast(journal.parent)
    assert (code, found["rerun"]["matched"], found["rerun"]["missing"]) == (1, 0, 2)


def test_it_needs_committed_journals(tmp_path):
    with pytest.raises(DpreproError, match="no journals"):
        fast(tmp_path / "nowhere")


def test_what_is_as_recorded_passes(recorded):
    code, found = fast(recorded)
    assert (code, found["changed"], found["stale_entries"]) == (0, [], 0)


def test_a_method_that_becomes_1_per_cent_worse_fails(recorded, monkeypatch):
    right = worker.score

    def worse(*given):
        scores = right(*given)
        return replace(scores, values={k: 0.99 * v for k, v in scores.values.items()})

    monkeypatch.setattr(worker, "score", worse)
    code, found = fast(recorded)
    mismatches = found["rerun"]["mismatches"]
    # AUROC, average precision and accuracy of two tasks
    assert (code, len(mismatches)) == (1, 2 * 3)
    assert not [line for line in mismatches if "fail" in str(line)]
    assert found["changed"] == []


@pytest.mark.parametrize("name", ["lab", "mine"])
def test_a_journal_value_with_another_fourth_digit_fails(recorded, name):
    """Also in a journal of which no task is run again."""
    path = recorded / f"{name}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:  # a line whose checksum is another is refused
        for key in OF_THE_LINE:
            line.pop(key, None)
    changed = next(line for line in lines if line.get("metrics"))
    changed["metrics"]["auc"] += 0.0001
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, found = fast(recorded)
    assert code == 1
    (line,) = [x for x in found["changed"] if "mean" in x]
    assert ", recorded " in line


def test_a_published_cell_that_changed_fails(recorded, monkeypatch):
    cells = document.load_published("dp-ebm-2021")
    place = ("adult", "dp-ebm-gdp-2021", 0.5)
    edited = [
        replace(c, mean=c.mean + 0.001) if (c.dataset, c.method, c.epsilon) == place else c
        for c in cells
    ]
    monkeypatch.setattr(document, "load_published", lambda paper: edited)
    code, found = fast(recorded)
    assert code == 1
    assert any("published_mean 0.876, recorded 0.875" in line for line in found["changed"])


def test_a_margin_that_changed_fails(recorded, monkeypatch):
    wide = replace(METRICS["auc"], margin=Margin(absolute=0.01))
    monkeypatch.setitem(METRICS, "auc", wide)
    code, found = fast(recorded)
    assert code == 1
    assert any("margin 0.01, recorded 0.005" in line for line in found["changed"])


def test_a_rule_that_changed_fails(recorded, monkeypatch):
    monkeypatch.setattr(verdicts, "verdict_of", lambda *_: verdicts.Verdict.INCONCLUSIVE)
    code, found = fast(recorded)
    assert code == 1
    assert any("verdict inconclusive, recorded equivalent" in line for line in found["changed"])


def test_a_cell_that_is_gone_or_new_fails(recorded):
    (recorded / "mine.jsonl").unlink()
    write(recorded, "other", records(spread(0.8, 0.005, 25), label="mine"))
    code, found = fast(recorded)
    assert code == 1
    assert any("was not recorded" in line for line in found["changed"])
    assert any("is no longer there" in line for line in found["changed"])


def test_an_entry_that_no_longer_applies_fails(recorded, tmp_path):
    entry = {
        "paper": "dp-ebm-2021", "tables": "2", "datasets": "adult", "methods": "dp-ebm-gdp-2021",
        "epsilons": 0.5, "expected": "worse", "reason": "the formula asks for more noise",
        "evidence": [{"file": "README.md", "shows": "the table"}],
    }  # fmt: skip
    path = tmp_path / "deviations.yaml"
    path.write_text(yaml.safe_dump({"deviations": [entry]}))
    code, found = fast(recorded, "--deviations", path)
    assert (code, found["stale_entries"]) == (1, 1)
    code, text = check("--results", recorded, "--fast", "--jobs", 1, "--deviations", path)
    assert (code, "no longer apply: 1" in text) == (1, True)
    assert "Run again: 2 of 2 tasks as committed; recorded cells that differ: 0; " in text


def test_what_changed_is_shown_with_the_way_out(recorded):
    path = recorded / NAME
    path.write_text(path.read_text(encoding="utf-8").replace(",equivalent\n", ",better\n", 1))
    code, text = check("--results", recorded, "--fast", "--jobs", 1)
    assert code == 1
    assert "recorded cells that differ: 1." in text
    assert "verdict equivalent, recorded better" in text
    assert "dprepro check --record" in text


def test_a_recorded_file_that_cannot_be_read_says_what_to_do(recorded):
    path = recorded / NAME
    for damaged in ("", "a,b\n1,2\n", ",".join(COLUMNS) + "\n1,2\n"):
        path.write_text(damaged)
        with pytest.raises(DpreproError, match="check --record"):
            fast(recorded)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DpreproError, match="cannot be read"):
        fast(recorded)


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("--record", ["--config", "lab"]),
        ("--record", ["--margin", "auc=1"]),
        ("--fast", ["--paper", "dp-ebm"]),
        ("--fast", ["--margin", "auc=1"]),
    ],
)
def test_a_part_is_neither_recorded_nor_compared(recorded, option, part):
    before = (recorded / NAME).read_text(encoding="utf-8")
    with pytest.raises(DpreproError, match="take all cells as they are"):
        check("--results", recorded, option, *part)
    assert (recorded / NAME).read_text(encoding="utf-8") == before


def test_what_is_recorded_now_is_not_compared_with(recorded):
    with pytest.raises(DpreproError, match="give one of them"):
        check("--results", recorded, "--record", "--fast")


@pytest.fixture
def ran(lab, in_process, monkeypatch):
    """Run a config of two methods, and return what names its results."""
    config = lab.config(epsilons=[1, 2, 8], methods=["noisy", "plain"])
    monkeypatch.chdir(lab.folder)
    run("lab.yaml", "--jobs", 1)
    return config, lab.results / "lab.jsonl"


def run(*arguments):
    outcome = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert outcome.exit_code in (0, 1), outcome.output


def again(*more):
    return check("--fast", "--config", "lab", "--jobs", 1, *more)


def edited(path, change):
    """Change the lines of a journal, each as if it had been written so."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for key in OF_THE_LINE:
            line.pop(key, None)
        change(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def tampered(line):
    """Move the first metric of one task in its last digits."""
    task = line.get("task", {})
    if (task.get("label"), task.get("split")) == ("plain", 1):
        line["metrics"]["auc"] += 1e-12


def test_a_sample_of_a_config_of_ones_own_is_run_again(ran):
    before = ran[1].read_bytes()
    code, text = again()
    assert code == 0
    assert text.startswith(
        "Check passed: of 6 tasks of lab that were run again, 6 gave the metrics of their records "
        "to the last digit."
    )
    assert "at its lowest and highest epsilon: 6 of 12 finished tasks" in text
    assert "printed" not in text
    assert ran[1].read_bytes() == before
    assert again("--quiet")[1].count("\n") == 1
    assert check("--fast", "--config", ran[0], "--jobs", 1, "--details")[0] == 0


def test_a_record_that_was_tampered_with_fails_unless_the_tolerance_allows_it(ran):
    edited(ran[1], tampered)
    code, text = again()
    assert code == 1
    assert "6 tasks of lab that were run again, 5 gave" in text
    assert "differs: tiny, plain, non-private, split 1: auc 0." in text
    assert "No version and no machine that the journal states differs" in text
    assert "--tolerance 1e-9" in text
    code, text = again("--tolerance", "1e-9")
    assert (code, "gave the metrics of their records within 1e-09." in text) == (0, True)


def test_versions_that_changed_since_are_named(ran):
    def older(line):
        tampered(line)
        if line["kind"] == "environment":
            line["libraries"]["numpy"] = "1.0"

    edited(ran[1], older)
    for more in ((), ("--details",)):
        code, text = again(*more)
        assert (code, "Since then changed: numpy 1.0 then, " in text) == (1, True)


def test_every_format_tells_of_the_sample(ran):
    edited(ran[1], tampered)
    text = again("--format", "junit")[1]
    suites = ElementTree.fromstring(text)
    assert (suites.get("tests"), suites.get("failures")) == ("6", "1")
    text = again("--format", "github")[1]
    assert text.startswith("::error title=dprepro check::Check failed: of 6 tasks of lab")
    text = again("--format", "markdown")[1]
    assert text.startswith("## dprepro check: failed\n")
    assert "allows differences up to that" in text
    code, text = again("--format", "json")
    (found,) = json.loads(text)["configs"]
    assert (code, found["config"], found["tasks"], found["finished"]) == (1, "lab", 6, 12)
    assert (found["tolerance"], len(found["rerun"]["mismatches"])) == (0.0, 1)


def test_what_the_config_asks_for_no_longer_is_said(ran, lab):
    lab.config(epsilons=[1, 2, 8], methods=[{"method": "noisy", "params": {"pause": 1.0}}])
    code, text = again()
    assert code == 1
    assert "not asked for: tiny, noisy, epsilon 1, split 0: the config asks for another" in text
    assert "6 tasks of lab that were run again, 0 gave" in text


def test_a_fit_that_fails_now_is_a_difference(lab, in_process, monkeypatch):
    allows_fits = lab.folder / "fixed"  # the method fails as long as this file is not there
    allows_fits.touch()
    monkeypatch.setenv("FIXED", str(allows_fits))
    monkeypatch.chdir(lab.folder)
    lab.config(epsilons=[1], splits=2, methods=["unless-fixed"])
    run("lab.yaml", "--jobs", 1)
    assert again()[0] == 0
    allows_fits.unlink()
    code, text = again()
    assert (code, text.count("failed now: RuntimeError: ")) == (1, 2)
    assert "--tolerance" not in text


def test_without_a_finished_record_there_is_nothing_to_compare(lab, in_process, monkeypatch):
    monkeypatch.chdir(lab.folder)
    lab.config(methods=["raises"])
    with pytest.raises(DpreproError, match="`dprepro run CONFIG` writes"):
        check("--results", lab.folder / "none", "--fast", "--config", "lab")
    run("lab.yaml", "--jobs", 1)
    with pytest.raises(DpreproError, match=r"no task of splits 0 and 1 has finished.*--retry-fai"):
        again()


def test_what_a_sample_does_not_take_is_refused(ran):
    for more in (["--paper", "dp-ebm"], ["--margin", "auc=1"], ["--all"], ["--record"]):
        with pytest.raises(DpreproError, match="leave out the other options"):
            again(*more)
    with pytest.raises(DpreproError, match="--tolerance is for --fast --config"):
        check("--config", "lab", "--tolerance", 0)
    with pytest.raises(DpreproError, match="give a number such as 1e-9"):
        again("--tolerance", "inf")
    with pytest.raises(DpreproError, match="no config 'lob'"):
        check("--fast", "--config", "lob")


def test_real_data_give_the_same_digits_twice(tmp_path, in_process, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ("--method", "dp-logistic-fair", "--method", "logistic", "--splits", 2, "--jobs", 1)
    run("quickstart", *few)
    given = ("--fast", "--config", "quickstart", "--jobs", 1)
    code, text = check(*given)
    assert (code, "of 6 tasks of quickstart that were run again, 6 gave" in text) == (0, True)

    def worse(line):
        if line.get("task", {}).get("epsilon") == 8.0:
            line["metrics"]["accuracy"] -= 1 / 114

    edited(tmp_path / "results" / "quickstart.jsonl", worse)
    code, text = check(*given)
    assert (code, "run again, 4 gave" in text) == (1, True)
    assert text.count("accuracy 0.") == 2
