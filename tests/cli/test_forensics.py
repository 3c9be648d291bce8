import json

import pytest
import yaml
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.cli.journals import read
from dprepro.errors import DpreproError
from tests.report.judge.test_forensics import journal

QUESTION = {
    "paper": "dp-ebm-2021", "table": "2", "method": "dpboost-2021", "datasets": ["adult", "telco"],
    "question": "How were the labels coded?", "finding": "identified", "says": "As near says.",
    "tried": [{"label": "far", "says": "too far"}, {"label": "near", "says": "near enough"}],
}  # fmt: skip


def run(folder, *arguments):
    path = folder / "hypotheses.yaml"
    path.write_text(yaml.safe_dump({"questions": [QUESTION]}))
    given = ["--results", folder / "results", "--hypotheses", path, *arguments]
    outcome = CliRunner().invoke(app, ["forensics", *map(str, given)], env={"COLUMNS": "180"})
    if outcome.exception:
        raise outcome.exception
    return outcome.stdout


@pytest.fixture
def folder(tmp_path):
    journal(tmp_path / "results", {"far": 0.05, "near": 0.002})
    return tmp_path


def test_hypotheses_stand_below_their_question_the_nearest_first(folder):
    text = run(folder, "--dataset", "adult")
    assert "dp-ebm-2021, Table 2: dpboost-2021 on adult  How were the labels coded?" in text
    assert text.index("near ") < text.index("far ") < text.index("identified: As near says.")
    assert "telco" not in text


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


def test_journals_of_hypotheses_are_left_out_elsewhere_unless_they_are_named(folder):
    journal(folder / "results", {"hidden": 0.01}, name="forensics-adult")
    labels = {cell.task.label for cell in read(folder / "results").cells}
    assert labels == {"far", "near"}
    named = read(folder / "results", ["forensics-adult"]).cells
    assert {cell.task.label for cell in named} == {"hidden"}
    (folder / "results" / "mine.jsonl").unlink()
    alone = read(folder / "results").cells
    assert {cell.task.label for cell in alone} == {"hidden"}
