from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.data.card import load_card
from dprepro.data.dataset import load
from dprepro.data.delimited import Records
from dprepro.experiment.config import load_config
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import csv_of, rows_of
from tests.release.survey import write_survey

CODEBOOK = """\
name,type,lower,upper,categories,missing,measured_in,description
age,numeric,0,120,,,years,
dose,numeric,0,10,,yes,mg,
ward,categorical,,,a|b|c,,,
y,target,,,no|yes,,,
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_bytes(csv_of(rows_of("binary", 30)))
    (tmp_path / "codebook.csv").write_text(CODEBOOK)
    return Path("data.csv")


def test_a_new_card_says_what_became_public_and_is_refused_as_it_is(data: Path) -> None:
    said = dprepro("new", "dataset", data)
    assert "names and types were read from the file, and count as public" in said
    assert "6 lines are to be filled in" in said  # y holds yes and no, which is proposed
    assert "the head of the card says what was read from rows" in said
    with pytest.raises(DpreproError, match="still to be filled in"):
        dprepro("data", "check", "data.yaml")


def test_options_say_how_the_file_is_read_and_what_is_used(data: Path) -> None:
    rows = [f"{k};{k % 7};{k},5;Köln;{'ja' if k % 2 else 'nein'}" for k in range(1, 30)]
    text = "\n".join(["person;visit;size;town;well", *rows])
    data.write_bytes(text.encode("cp1252"))
    dprepro(
        "new", "dataset", data, "--target", "well", "--positive", "ja", "--unit", "person",
        "--drop", "town", "--drop", "visit", "--missing", "-99", "--missing", "k.A.",
        "--separator", ";", "--encoding", "cp1252", "--decimal", ",", "--thousands", ".",
    )  # fmt: skip
    filled = Path("data.yaml").read_text(encoding="utf-8")
    filled = filled.replace("rows_per_unit: FILL_IN", "rows_per_unit: 5")
    filled = filled.replace("[FILL_IN, FILL_IN]", "[0, 100]").replace("FILL_IN", "why")
    Path("data.yaml").write_text(filled)
    card = load_card("data.yaml")
    assert (card.target, card.positive, card.unit) == ("well", "ja", "person")
    assert (card.drop, card.missing[-2:]) == (["visit", "town"], ["-99", "k.A."])
    assert (card.format.separator, card.format.encoding) == (";", "cp1252")
    assert (card.format.decimal, card.format.thousands) == (",", ".")
    assert list(card.features or {}) == ["size"]
    assert "complete: binary, target well, 1 features" in dprepro("data", "check", "data.yaml")


def test_an_index_without_a_name_is_dropped_and_the_rest_is_loaded(data: Path) -> None:
    data.write_text(",age,y\n" + "".join(f"{k},{k + 20},{k % 2}\n" for k in range(30)))
    dprepro("new", "dataset", data, "--target", "y")
    card = Path("data.yaml")
    filled = card.read_text(encoding="utf-8").replace("[FILL_IN, FILL_IN]", "[18, 100]")
    card.write_text(filled.replace("FILL_IN", "the form"))
    assert "complete: binary, target y, 1 features" in dprepro("data", "check", card)
    assert load(card).X.columns.tolist() == ["age"]


def test_tabs_have_a_name(data: Path) -> None:
    data.write_text("a\tb;c\n1\t2;3\n")
    dprepro("new", "dataset", data, "--separator", "tab")
    assert 'separator: "\\t"' in Path("data.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--separator", ";;"), "--separator: "),
        (("--encoding", "utf9"), "--encoding: 'utf9' is no encoding of text files"),
        (("--decimal", "x"), "--decimal: "),
        (("--decimal", ",", "--thousands", ","), "`thousands` and `decimal` are both ','"),
        (("--target", "yy"), "--target yy: not a column of the file"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(
    data: Path, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(DpreproError) as caught:
        dprepro("new", "dataset", data, *options)
    assert said in str(caught.value)
    assert not Path("data.yaml").exists()


def test_observed_values_come_with_a_warning(data: Path) -> None:
    outcome = CliRunner().invoke(app, ["new", "dataset", str(data), "--observed", "--target", "y"])
    assert "bounds and categories were read from the rows" in outcome.output
    assert "Warning: data.yaml holds values of the rows" in outcome.stderr
    assert "Nothing is left to fill in. Check it: dprepro data check data.yaml" in outcome.output
    card = load_card("data.yaml")
    assert card.private
    assert (card.features or {})["age"].numeric == (0, 100)
    assert "complete: binary, target y, 3 features" in dprepro("data", "check", "data.yaml")


def test_what_no_reader_takes_off_is_warned_of(data: Path) -> None:
    data.write_text("price,x\n$1,2\n$3,4\n")
    outcome = CliRunner().invoke(app, ["new", "dataset", str(data)])
    assert "Warning: numbers with a currency sign in price" in outcome.stderr


def test_a_survey_is_described_by_its_codebook(data: Path) -> None:
    survey, codebook = write_survey(Path())
    said = dprepro("new", "dataset", survey, "--codebook", codebook)
    assert "survey.yaml: 60 columns" in said
    assert "The codebook filled in all of it" in said
    said = dprepro("data", "check", "survey.yaml")
    assert "survey.yaml: complete: binary, target smoker, 58 features" in said


def test_all_that_is_wrong_with_a_codebook_is_said_at_once(data: Path) -> None:
    survey, codebook = write_survey(Path())
    text = codebook.read_bytes().decode("cp1252")
    text = text.replace("age;numeric", "agee;numeric").replace("q{1..40}", "q{1..41}")
    codebook.write_text(text.replace("region;categorical", "region;numeric"))
    with pytest.raises(DpreproError) as caught:
        dprepro("new", "dataset", survey, "--codebook", codebook)
    said = str(caught.value)
    for line in (
        "line 4: 'q41', which is not a column of the file",
        "line 9: 'agee', which is not a column of the file; did you mean 'age'?",
        "line 13, categories: not for a line of type numeric",
        "line 13: 'region' is numeric, but the file holds text there",
    ):
        assert line in said
    assert [line.split()[1] for line in said.splitlines()[1:]] == ["4:", "9:", "13,", "13:"]
    assert not Path("survey.yaml").exists()


def test_names_are_shown_and_a_file_without_them_is_warned_of(data: Path) -> None:
    said = dprepro("new", "dataset", data)
    assert "not the values of a row: age, dose, ward, y\n" in said
    assert "Warning" not in said
    data.write_text("secret,female\nother,male\nthird,female\n")
    said = CliRunner().invoke(app, ["new", "dataset", str(data), "--force"]).output
    assert "not the values of a row: secret, female\n" in said
    assert "Warning: a name that is also a value in its column: female. If the first line" in said


def test_checking_a_card_reads_no_rows(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dprepro("new", "dataset", data, "--codebook", "codebook.csv", "--output", "card.yaml")
    whole = data.read_bytes()
    header = whole[: whole.index(b"\n") + 1]
    data.write_bytes(header + b"\xff" * 10)  # rows that no reader could read
    asked: list[Records] = []

    class Watched(Records):
        def __post_init__(self) -> None:
            asked.append(self)
            super().__post_init__()

        def tables(self, *_: object, **__: object) -> NoReturn:
            raise AssertionError("rows are read")

    monkeypatch.setattr("dprepro.data.dataset.Records", Watched)
    said = dprepro("data", "check", "card.yaml")
    assert "card.yaml: complete: binary, target y, 3 features" in said
    assert "Whether the rows keep to it: dprepro data check card.yaml --rows reads them" in said
    assert len(asked) == 1


def test_a_new_config_reads_no_file_of_rows(data: Path) -> None:
    dprepro("new", "dataset", data, "--codebook", "codebook.csv", "--output", "card.yaml")
    opened: list[str] = []
    watching = [True]

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and watching:
            opened.append(str(arguments[0]))

    sys.addaudithook(audit)
    dprepro("new", "config", "card.yaml")
    watching.clear()
    assert any("card.yaml" in path for path in opened)  # the hook sees what is opened
    assert not any("data.csv" in path for path in opened)


def test_the_whole_way_to_a_config(data: Path) -> None:
    assert "filled in all of it" in dprepro("new", "dataset", data, "--codebook", "codebook.csv")
    assert load_card("data.yaml").measured_in == {"age": "years", "dose": "mg"}
    assert "dprepro run study/first.yaml" in dprepro(
        "new", "config", "data.yaml", "--output", "study/first.yaml"
    )
    assert load_card(load_config("study/first.yaml").card).name == "data"


@pytest.mark.parametrize(
    "command",
    [
        ("dataset", "data.csv", "--output", "old.yaml"),
        ("config", "card.yaml", "--output", "old.yaml"),
        ("method", "mine", "--folder", "methods"),
    ],
)
def test_no_file_is_overwritten_without_force(data: Path, command: tuple[str, ...]) -> None:
    dprepro("new", "dataset", data, "--codebook", "codebook.csv", "--output", "card.yaml")
    old = Path("methods/mine/curator.py") if command[0] == "method" else Path("old.yaml")
    old.parent.mkdir(parents=True, exist_ok=True)
    old.write_text("mine")
    with pytest.raises(DpreproError, match="exists already"):
        dprepro("new", *command)
    assert old.read_text(encoding="utf-8") == "mine"
    dprepro("new", *command, "--force")
    assert old.read_text(encoding="utf-8") != "mine"


def test_a_method_of_a_name_that_is_taken_is_refused(data: Path) -> None:
    with pytest.raises(DpreproError, match="called 'dp-ebm-plus' already"):
        dprepro("new", "method", "dp-ebm-plus")
    assert not Path("my_methods").exists()


def test_a_config_needs_a_card(data: Path) -> None:
    with pytest.raises(DpreproError, match=r"no card at none\.yaml"):
        dprepro("new", "config", "none.yaml")
    with pytest.raises(DpreproError, match=r"no card at none\.yaml"):
        dprepro("data", "check", "none.yaml")
