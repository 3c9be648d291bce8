import json

import pytest
import yaml
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.cli.options import read, shown_journals
from dprepro.experiment.journal import Journal, read_journal
from dprepro.runtime.errors import DpreproError
from tests.judge.test_forensics import journal
from tests.results.test_aggregation import stated

QUESTION = {
    "paper": "dp-ebm-2021", "table": "2", "method": "dpboost-2021", "datasets": ["adult", "telco"],
    "question": "How were the labels coded?", "finding": "identified", "says": "As near says.",
    "tried": [{"label": "far", "says": "too far"}, {"label": "near", "says": "near enough"}],
}  # fmt: skip


HELD_OUT = {
    "paper": "dp-ebm-2021", "method": "dpboost-2021",
    "chosen_on": {"table": "2", "datasets": ["adult", "telco"]},
}  # fmt: skip


def run(folder, *arguments):
    path = folder / "hypotheses.yaml"
    path.write_text(yaml.safe_dump({"questions": [QUESTION], "held_out": [HELD_OUT]}))
    given = ["--results", folder / "results", "--hypotheses", path, *arguments]
    outcome = CliRunner().invoke(app, ["forensics", *map(str, given)], env={"COLUMNS": "180"})
    if outcome.exception:
        raise outcome.exception
    return outcome.stdout


@pytest.fixture
def folder(tmp_path):
    journal(tmp_path / "results", {"far": 0.05, "near": 0.002})
    return tmp_path


def state(path, hypotheses):
    """Let a journal state the plan of its records; with None, without the key `hypotheses`."""
    lines = read_journal(path).records
    with Journal(path) as open_journal:
        said = {} if hypotheses is None else {"hypotheses": hypotheses}
        open_journal.append(stated(*lines, **said))


def labels(results, names=None):
    return {cell.task.label for cell in read(results, names).cells}


def test_hypotheses_stand_below_their_question_the_nearest_first(folder):
    text = run(folder, "--dataset", "adult")
    assert "dp-ebm-2021, Table 2: dpboost-2021 on adult  How were the labels coded?" in text
    assert text.index("identified: As near says.") < text.index("near ") < text.index("far ")
    assert "printed columns" not in text
    assert "telco" not in text


def test_without_a_choice_the_findings_stand_alone(folder):
    text = run(folder)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "Unstated settings of 2 printed columns: 2 identified"
    assert "dpboost-2021 identified adult, telco" in lines
    assert lines[-1] == "All hypotheses about some columns: --dataset, --method or --paper."
    assert len(lines) < 15
    chosen = run(folder, "--method", "dpboost-2021")
    assert chosen.startswith(lines[0])
    assert chosen.count("How were the labels coded?") == 2


def test_json_has_every_cell_and_says_what_was_not_run(folder):
    adult, telco = json.loads(run(folder, "--format", "json"))
    near, far = adult["tried"]
    assert [t["label"] for t in (near, far)] == ["near", "far"]
    assert [c["epsilon"] for c in near["cells"]] == [0.5, 1, 2, 4, 8]
    assert far["sum_of_squares"] == pytest.approx(sum(c["z"] ** 2 for c in far["cells"]))
    assert far["cells"][0]["mean"] == pytest.approx(0.558 + 0.05)
    assert (adult["finding"], telco["dataset"]) == ("identified", "telco")
    assert telco["tried"][0]["cells"][0]["z"] is None


def test_markdown_is_a_table_for_each_dataset(folder):
    lines = run(folder, "--format", "markdown", "--method", "dpboost-2021").splitlines()
    assert lines[0] == "### dp-ebm-2021, Table 2: dpboost-2021 on adult"
    heads = "hypothesis z at 0.5|z at 1|z at 2|z at 4|z at 8|sum of z^2|splits"
    assert lines[2] == f"| {heads.replace('hypothesis ', 'hypothesis|').replace('|', ' | ')} |"
    assert lines[4].startswith("| near | +0.2 |")
    assert lines[4].endswith("| 25 |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dataset", "adlut"), "--dataset: no hypothesis is about 'adlut'.*adult"),
        (("--method", "lightgbm"), "--method: no hypothesis is about 'lightgbm'"),
    ],
)
def test_names_that_no_hypothesis_is_about_are_refused(folder, arguments, message):
    with pytest.raises(DpreproError, match=message):
        run(folder, *arguments)


@pytest.mark.parametrize(("name", "says"), [("any-name", True), ("forensics-splits-credit", None)])
def test_journals_of_hypotheses_are_left_out_elsewhere_unless_they_are_named(folder, name, says):
    """By their plan, or by the built-in config where the plan is older than the key."""
    results = folder / "results"
    journal(results, {"hidden": 0.01}, name=name)
    state(results / f"{name}.jsonl", says)
    assert labels(results) == {"far", "near"}
    assert labels(results, [name]) == {"hidden"}
    assert shown_journals(results) == ["mine"]
    (results / "mine.jsonl").unlink()
    assert labels(results) == {"hidden"}


def test_a_name_alone_makes_no_journal_of_hypotheses(folder):
    results = folder / "results"
    journal(results, {"other": 0.01}, name="forensics-of-mine")
    assert labels(results) == {"far", "near", "other"}
    journal(results, {"other": 0.01}, name="forensics-splits-credit")
    state(results / "forensics-splits-credit.jsonl", False)
    assert labels(results) == {"far", "near", "other"}


def test_a_setting_is_chosen_on_one_dataset_and_judged_on_the_other(folder):
    journal(folder / "results", {"far": 0.09, "near": 0.08}, name="more", dataset="telco")
    text = run(folder, "--held-out")
    said = " ".join(text.split())
    assert "dpboost-2021 on adult: near (of 2, on Table 2: telco)" in said
    assert "dpboost-2021 on telco: near (of 2, on Table 2: adult)" in said
    adult, telco = json.loads(run(folder, "--held-out", "--format", "json"))
    assert [j["dataset"] for j in (adult, telco)] == ["adult", "telco"]
    assert (adult["fails"], telco["fails"]) == (False, True)
    assert (telco["setting"], telco["chosen_on"], telco["cells"]) == ("near", ["adult"], 5)
    chosen = run(folder, "--held-out", "--dataset", "telco", "--format", "markdown")
    assert "| dpboost-2021 | 2 | telco | 25 |" in chosen
    assert "| adult |" not in chosen


def test_where_nothing_is_held_out_nothing_is_judged(folder):
    assert run(folder, "--held-out").startswith("No verdict")
    assert json.loads(run(folder, "--held-out", "--format", "json")) == []
