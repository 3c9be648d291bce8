"""Names on a card against the header of its file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.data.card import Card, load_card
from dprepro.data.dataset import check_names, header_names
from dprepro.runtime.errors import DpreproError

CARD = """
name: patients
task: binary
file: {file}
target: y
positive: "yes"
labels: ["no", "yes"]
features:
  age: {{numeric: [0, 120]}}
{more}
"""


def card_of(folder: Path, more: str = "", file: str = "rows.csv") -> Card:
    (folder / "card.yaml").write_text(CARD.format(file=file, more=more))
    return load_card(folder / "card.yaml")


def problems(folder: Path, header: str, more: str = "") -> str:
    (folder / "rows.csv").write_text(header)
    card = card_of(folder, more)
    with pytest.raises(DpreproError) as caught:
        check_names(card, header_names(card) or [])
    return str(caught.value)


def test_every_name_that_the_file_lacks_is_said_with_the_nearest(tmp_path: Path) -> None:
    unit = "unit: patiet\nrows_per_unit: 2"
    said = problems(tmp_path, "ag, yy ,patient\n", unit)
    assert "target: the file has no column 'y'; did you mean 'yy'?" in said
    assert "unit: the file has no column 'patiet'; did you mean 'patient'?" in said
    assert "features: the file has no column 'age'; did you mean 'ag'?" in said


def test_a_column_without_a_line_is_said_with_what_to_do(tmp_path: Path) -> None:
    said = problems(tmp_path, "age,y,case\n")
    assert "column 'case' is not on the card: add it under `features`" in said
    assert "`drop: [...]`" in said
    card = card_of(tmp_path, "drop: [case]")
    check_names(card, header_names(card) or [])


def test_the_command_refuses_such_a_card(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age,yy\n")
    card_of(tmp_path)
    outcome = CliRunner().invoke(app, ["data", "check", str(tmp_path / "card.yaml")])
    assert "no column 'y'; did you mean 'yy'?" in str(outcome.exception)


def test_names_are_those_of_the_format(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("# note\nage;y\n")
    more = "format: {separator: ';', comment: '#'}"
    assert header_names(card_of(tmp_path, more)) == ["age", "y"]
    headless = "format: {header: false, columns: [age, y]}"
    assert header_names(card_of(tmp_path, headless)) == ["age", "y"]
    pd.DataFrame({"age": [1.0], "y": ["no"]}).to_parquet(tmp_path / "rows.parquet")
    assert header_names(card_of(tmp_path, file="rows.parquet")) == ["age", "y"]
    assert header_names(card_of(tmp_path, file="nowhere.csv")) is None


def test_a_header_that_does_not_fit_the_encoding_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age,y\n")
    with pytest.raises(DpreproError, match="not text in the expected encoding"):
        header_names(card_of(tmp_path, "format: {encoding: utf-16}"))


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_a_header_is_read_without_the_threads_of_arrow():
    """On a busy machine `data check` was aborted at its end, while Arrow still started them."""
    code = (
        "import io, os\n"
        "from dprepro.data.delimited import COMMAS, Records\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "assert Records(io.BytesIO(b'a,b\\n'), COMMAS).names == ['a', 'b']\n"
        "print(len(os.listdir('/proc/self/task')) - before)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(said.stdout) <= 1  # the one that reads
