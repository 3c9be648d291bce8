"""`dprepro fit --table`: a model of a table of the user's own, read in chunks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro.additive.file import load_model
from dprepro.cli import app
from dprepro.methods.registry import all_methods
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import ROWS, csv_of, rows_of, write_table

METHODS = [
    {"method": "dp-ebm-plus", "params": {"n_epochs": 2}},
    {"method": "dp-ebm-sound", "params": {"n_epochs": 2}},
    "ebm",
]


def study(folder: Path, task: str = "binary", **keys: Any) -> Path:
    return write_table(folder, task, rows_of(task), methods=METHODS, **keys)


def frame_of(task: str = "binary") -> pd.DataFrame:
    rows = pd.DataFrame(rows_of(task), columns=["age", "dose", "ward", "y"])
    rows["age"] = rows["age"].astype(float)
    rows["dose"] = pd.to_numeric(rows["dose"])
    return rows.assign(y=rows["y"] if task == "binary" else rows["y"].astype(float))


def written(folder: Path, suffix: str, task: str = "binary") -> Path:
    """Write the rows of the study as a table elsewhere, with a column that is not on the card."""
    folder.mkdir()
    frame = frame_of(task).assign(extra="secret")[["y", "extra", "ward", "dose", "age"]]
    if suffix == "csv":
        frame.to_csv(folder / "mine.csv", index=False)
        return folder / "mine.csv"
    if suffix == "parquet":
        frame.to_parquet(folder / "mine.parquet", row_group_size=90)
        return folder / "mine.parquet"
    for number, start in enumerate(range(0, len(frame), 200)):
        frame.iloc[start : start + 200].to_parquet(folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet", "folder"])
@pytest.mark.parametrize("method", ["dp-ebm-plus", "dp-ebm-sound"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_model_is_that_of_the_same_rows_in_memory(
    tmp_path: Path, suffix: str, method: str, task: str
) -> None:
    config = study(tmp_path, task, seed=5)
    mine = written(tmp_path / "elsewhere", suffix, task)
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    dprepro("fit", config, "--method", method, "--output", one)
    (tmp_path / "patients.csv").unlink()  # the dataset's own file plays no part
    dprepro("fit", config, "--method", method, "--output", two, "--table", mine)
    first, second = (
        json.loads(one.read_text(encoding="utf-8")),
        json.loads(two.read_text(encoding="utf-8")),
    )
    assert second["origin"].pop("table").startswith("of the user's own (--table)")
    assert first == second


def test_the_file_says_that_the_rows_are_the_users_and_not_which(tmp_path: Path) -> None:
    mine = written(tmp_path / "elsewhere", "csv")
    model = tmp_path / "m.json"
    options = ("--method", "dp-ebm-plus", "--output", model, "--table", mine)
    said = dprepro("fit", study(tmp_path), *options)
    assert f"rows of {mine}" in said.splitlines()[0]
    assert "the ledger says that this guarantee holds" in said
    origin = load_model(model).origin_
    assert (origin["rows"], origin["method"]) == ("all", "dp-ebm-plus")
    assert "not_for_release" not in origin
    for told in ("elsewhere", "mine.csv", str(ROWS), "secret"):
        assert told not in json.dumps(origin)
    assert not model.with_name("m.local-notes").exists()
    with pytest.raises(DpreproError, match="to all rows, so no test rows are left"):
        dprepro("score", model, tmp_path / "study.yaml")


def test_no_checksum_makes_the_rows_of_a_table_public(tmp_path: Path) -> None:
    """The card's is that of the dataset's file: the rows are private, whatever they are."""
    import hashlib

    digest = hashlib.sha256(csv_of(rows_of("binary"))).hexdigest()
    config = study(tmp_path, seed=5)
    card = tmp_path / "patients.yaml"
    sources = f"sources: [{{file: patients.csv, sha256: {digest}}}]"
    card.write_text(card.read_text(encoding="utf-8").replace("file: patients.csv", sources))
    reasons = []
    for table in ([], ["--table", tmp_path / "patients.csv"]):
        options = ("--method", "dp-ebm-plus", "--output", tmp_path / "m.json", *table)
        dprepro("fit", config, *options)
        reasons.append(load_model(tmp_path / "m.json").origin_.get("not_for_release"))
    assert reasons == [None, "fitted to private rows, and its ledger does not hold"]


def _without(*columns: str) -> Callable[[Path], Any]:
    return lambda path: frame_of().drop(columns=[*columns]).to_parquet(path)


def _with(**columns: Any) -> Callable[[Path], Any]:
    return lambda path: frame_of().assign(**columns).to_parquet(path)


@pytest.mark.parametrize(
    ("name", "write", "options", "message"),
    [
        ("none.csv", None, [], "no table at .*none.csv: there is no such file or folder"),
        ("folder", Path.mkdir, [], "the folder .* has no parquet file"),
        ("t.xlsx", Path.touch, [], "cannot tell the format of .*t.xlsx by its suffix"),
        ("t.parquet", Path.touch, [], "t.parquet: not a whole parquet file"),
        ("t.csv", Path.touch, [], "t.csv: the file is empty: its first line should name"),
        ("t.csv", lambda p: p.write_text("age,dose,ward,y\n"), [], "too few rows: a minimum of 2"),
        ("t.csv", lambda p: p.write_text("age,dose,ward,y\nsecret,1,a,no\n"), [],
         "column 'age' is to hold numbers, but holds text"),
        ("t.csv", lambda p: p.write_text("age,dose,ward,y\n1,1,a,no\n2\n"), [],
         "line 3: Expected 4 columns, got 1"),
        ("t.parquet", _without("dose"), [], "no column 'dose', a feature of the card"),
        ("t.parquet", _without("y"), [], "no column 'y', a target of the card"),
        ("t.parquet", _with(age="secret"), [], "column 'age' is to hold numbers, but holds"),
        ("t.parquet", _with(age=pd.Timestamp("2024-01-01")), [], "column 'age' .* timestamp"),
        ("t.parquet", _with(age=float("inf")), [], "column 'age' has infinite values"),
        ("t.parquet", _with(age=None), [], "'age' has missing values"),
        ("t.parquet", _with(ward="secret"), [], "column 'ward' holds a value that is not among"),
        ("t.parquet", _with(y="secret"), [], "column 'y' holds a value that is not among the card"),
        ("t.parquet", _with(y=None), [], "target 'y' is missing in some rows"),
        ("t.parquet", _with(), ["--split", "0"], "--table fits to all rows .* leave one of them"),
        ("t.parquet", _with(), ["--method", "ebm"], "ebm takes rows in memory only.*dp-ebm-plus"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_clear_line(
    tmp_path: Path, name: str, write: Any, options: list[str], message: str
) -> None:
    config, table = study(tmp_path), tmp_path / name
    if write is not None:
        write(table)
    model = tmp_path / "m.json"
    given = ("--method", "dp-ebm-plus", *options, "--output", model, "--table", table)
    with pytest.raises(DpreproError, match=message) as caught:
        dprepro("fit", config, *given)
    assert len(str(caught.value).splitlines()) == 1
    assert "secret" not in str(caught.value)
    assert str(ROWS) not in str(caught.value).replace(str(tmp_path), "")
    assert not model.exists()


def test_an_observed_domain_is_refused(tmp_path: Path) -> None:
    config = study(tmp_path, domain="observed")
    options = ("--method", "dp-ebm-sound", "--output", tmp_path / "m.json")
    with pytest.raises(DpreproError, match="`domain: public` in the config, given `domain: obs"):
        dprepro("fit", config, *options, "--table", tmp_path / "patients.csv")


def test_the_exit_code_is_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dprepro", "fit", str(study(tmp_path)), "--method", "dp-ebm-plus",
         "--output", "m.json", "--table", "nowhere.csv"],
        capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "300"},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: no table at nowhere.csv: there is no such file or folder\n"


def test_methods_say_whether_they_read_tables() -> None:
    listed = json.loads(dprepro("methods", "--json"))
    taking = {method["name"] for method in listed if method["takes_tables"]}
    assert taking == {
        "dp-ebm-gdp", "dp-ebm-classic", "dp-ebm-classic-2021", "dp-ebm-gdp-2021", "dp-ebm-joint",
        "dp-ebm-sound", "dp-ebm-plus",
    }  # fmt: skip
    said = " ".join(dprepro("methods", "--verbose").split())
    assert "`fit --table` reads its rows in chunks" in said


@pytest.mark.parametrize("name", [n for n, m in all_methods().items() if m.takes_tables])
def test_the_registry_says_so_of_estimators_that_do(tmp_path: Path, name: str) -> None:
    """And of the representation they want: a table is not encoded."""
    method = all_methods()[name]
    assert method.encoding == "frame"
    frame_of()[["age", "y"]].rename(columns={"age": "x"}).to_parquet(tmp_path / "t.parquet")
    for task in method.tasks:
        model = method._example(task, 1.0, {"n_epochs": 1})
        with pytest.raises(ValueError, match="no column 'nowhere', the target"):
            model.fit(tmp_path / "t.parquet", "nowhere")


def test_help_shows_the_option() -> None:
    assert "--table" in CliRunner().invoke(app, ["fit", "--help"]).output
