from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.config import load_config
from dprepro.data.card import load_card
from dprepro.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import csv_of, rows_of

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
    assert "7 lines are to be filled in" in said
    with pytest.raises(DpreproError, match="still to be filled in"):
        dprepro("data", "check", "data.yaml")


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
    asked: list[bytes] = []

    def names_in(line: bytes, *_: object) -> list[str]:
        asked.append(line)
        return line.decode().strip().split(",")

    monkeypatch.setattr("dprepro.data.header.csv_header", names_in)
    said = dprepro("data", "check", "card.yaml")
    assert "card.yaml: complete: binary, target y, 3 features" in said
    assert "Whether the rows keep to it: dprepro data describe card.yaml reads them" in said
    assert asked == [header]


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
    assert old.read_text() == "mine"
    dprepro("new", *command, "--force")
    assert old.read_text() != "mine"


def test_a_method_of_a_name_that_is_taken_is_refused(data: Path) -> None:
    with pytest.raises(DpreproError, match="called 'dp-ebm-plus' already"):
        dprepro("new", "method", "dp-ebm-plus")
    assert not Path("my_methods").exists()


def test_a_config_needs_a_card(data: Path) -> None:
    with pytest.raises(DpreproError, match=r"no card at none\.yaml"):
        dprepro("new", "config", "none.yaml")
    with pytest.raises(DpreproError, match=r"no card at none\.yaml"):
        dprepro("data", "check", "none.yaml")
