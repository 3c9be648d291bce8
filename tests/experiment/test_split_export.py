"""Exported splits are those that tasks are run on, and name rows that stand where they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from dprepro.cli import app
from dprepro.data.dataset import load, values_digest
from dprepro.experiment import worker
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.split_export import METADATA
from dprepro.experiment.splits import SplitKey
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_train_test_rows import owned  # noqa: F401
from tests.lab import Lab


def export(config: Path | str, output: Path, *options: str) -> Result:
    return CliRunner().invoke(
        app, ["data", "export-splits", str(config), "--output", str(output), *options]
    )


def exported(config: Path, folder: Path) -> pd.DataFrame:
    output = folder / "splits.csv"
    result = export(config, output)
    assert result.exit_code == 0, result.exception
    return pd.read_csv(output, comment="#")


def runs_on(config: Path, bound: int | None = None) -> dict[tuple[int, str], list[int]]:
    """Return the row numbers of what the runner gives to the tasks of a config."""
    experiment = load_config(config)
    found = {}
    for planned in plan(experiment):
        task = planned.task
        if bound in (None, task.rows_per_unit):
            split = worker._split(worker.DataRef.of(experiment), SplitKey.of(task))
            found[task.split, "train"] = split.X_train.index.tolist()
            found[task.split, "test"] = split.X_test.index.tolist()
    return found


def parts(table: pd.DataFrame) -> dict[tuple[int, str], list[int]]:
    return {key: rows["row"].tolist() for key, rows in table.groupby(["split", "part"])}


@pytest.mark.parametrize(
    "keys",
    [
        {"evaluation": "random", "test_share": 0.3, "splits": 3},
        {"evaluation": "stratified", "splits": 2, "seed": 7},
        {"evaluation": "folds", "folds": 2, "splits": 5},
        {"seed": None, "splits": 2},
    ],
)
def test_they_are_those_of_the_runner(lab: Lab, keys: dict[str, Any]) -> None:
    config = lab.config(**keys)
    table = exported(config, lab.folder)
    assert parts(table) == runs_on(config)
    assert set(table["split"]) == set(range(keys["splits"]))
    assert set(table["dataset"]) == {"tiny"}
    assert set(table["config"]) == {config.stem}


def test_methods_that_know_other_domains_share_the_splits(lab: Lab) -> None:
    one = exported(lab.config(methods=["noisy"]), lab.folder)
    both = lab.config(methods=["noisy", {"method": "plain", "domain": "public"}])
    assert len(exported(both, lab.folder)) == len(one)


def test_rows_of_units_that_do_not_train_are_left_out(owned: Lab) -> None:  # noqa: F811
    config = owned.config(domain="public", rows_per_unit=[1, 3], methods=["noisy"], splits=2)
    table = exported(config, owned.folder)
    assert set(table["rows_per_unit"]) == {1, 3}
    for bound, rows in table.groupby("rows_per_unit"):
        assert parts(rows) == runs_on(config, int(str(bound)))


def test_rows_that_are_drawn_in_secret_are_not_listed(owned: Lab) -> None:  # noqa: F811
    config = owned.config(domain="public", methods=["noisy"], seed=None)
    output = owned.folder / "splits.csv"
    error = export(config, output).exception
    assert isinstance(error, DpreproError)
    assert "draws in secret" in str(error)
    assert not output.exists()
    config = owned.config(domain="public", methods=["noisy"], seed=None, rows_per_unit="row")
    assert parts(exported(config, owned.folder)) == runs_on(config)


def test_published_test_rows_are_counted_and_placed_in_their_own_file(lab: Lab) -> None:
    lines = (lab.folder / "tiny.csv").read_text(encoding="utf-8").splitlines()
    (lab.folder / "held.csv").write_text("\n".join([lines[0], *lines[11:21]]) + "\n")
    card = lab.folder / "tiny.yaml"
    card.write_text(card.read_text(encoding="utf-8") + "test: {sources: [{file: held.csv}]}\n")
    table = exported(lab.config(evaluation="test-set", splits=1), lab.folder)
    test = table[table["part"] == "test"]
    assert test["row"].tolist() == list(range(10))
    assert test["line"].tolist() == list(range(2, 12))
    train = table[table["part"] == "train"]
    assert train["row"].tolist() == list(range(len(lines) - 1))
    assert "part test (its rows count from 0, too): 10 rows, from held.csv" in (
        lab.folder / "splits.csv"
    ).read_text(encoding="utf-8")


CARD = """
name: parts
task: binary
target: y
positive: "yes"
sources: [{pool: [{file: a.csv}, {file: b.csv}]}]
features: {x: {numeric: [0, 99], missing: true}}
"""


@pytest.mark.parametrize(
    "rule", ["complete: true", "distinct: {}\nexpect: {values_sha256: VALUES}"]
)
def test_lines_lead_to_the_rows_though_some_were_left_out(tmp_path: Path, rule: str) -> None:
    texts = {
        "a.csv": "x,y\n1,yes\n,no\n2,no\n3,yes\n",
        "b.csv": "x,y\n1,yes\n4,no\n\n5,yes\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text.replace("\n\n", "\n"))
    X = pd.DataFrame({"x": [1, np.nan, 2, 3, 4, 5.0]})
    values = values_digest(X, np.array([1, 0, 0, 1, 0, 1]))
    card = tmp_path / "parts.yaml"
    card.write_text(CARD + rule.replace("VALUES", values))
    config = tmp_path / "mine.yaml"
    config.write_text(
        "{dataset: parts.yaml, metric: auc, domain: public, splits: 2, seed: 1, epsilons: [1], "
        "delta: 1e-6, methods: [dp-ebm-gdp]}"
    )
    table = exported(config, tmp_path)
    head = (tmp_path / "splits.csv").read_text(encoding="utf-8")
    last = 3 if "distinct" in rule else 2
    assert f"rows 0 to {last}: a.csv" in head
    dataset = load(card)
    for _, row in table.iterrows():
        file = "a.csv" if row["row"] <= last else "b.csv"
        cells = (
            (tmp_path / file)
            .read_text(encoding="utf-8")
            .splitlines()[int(row["line"]) - 1]
            .split(",")
        )
        found = dataset.X["x"].iloc[row["row"]]
        assert cells[0] == ("" if np.isnan(found) else f"{found:g}")
        assert cells[1] == ("yes" if dataset.y[row["row"]] else "no")
    # With an empty line between, lines are not known, and none is stated.
    (tmp_path / "b.csv").write_text(texts["b.csv"])
    again = exported(config, tmp_path)
    of_b = again["row"] > last
    assert again.loc[of_b, "line"].isna().all()
    assert again.loc[~of_b, "line"].notna().all()


def test_parquet_holds_the_same_and_says_the_same(lab: Lab) -> None:
    config = lab.config(splits=2)
    table = exported(config, lab.folder)
    output = lab.folder / "splits.parquet"
    assert export(config, output).exit_code == 0
    stored = pq.read_table(output)
    said = stored.schema.metadata[METADATA].decode().splitlines()
    lines = (lab.folder / "splits.csv").read_text(encoding="utf-8").splitlines()
    assert [f"# {line}" for line in said] == lines[: len(said)]
    assert "2 splits, evaluation random, test share" in "\n".join(said)
    pd.testing.assert_frame_equal(stored.to_pandas(), table, check_dtype=False)


def test_a_dataset_of_several_and_private_rows(lab: Lab) -> None:
    both = lab.config("both", dataset="breast-cancer", include=[lab.config().name])
    output = lab.folder / "splits.csv"
    result = export(both, output, "--dataset", "tiny")
    assert "PRIVATE DATA: the file has the exact number of rows" in result.output
    assert output.stat().st_mode & 0o077 == 0
    assert set(pd.read_csv(output, comment="#")["dataset"]) == {"tiny"}
    wrong = export(both, output, "--dataset", "tinny").exception
    assert "--dataset: the config has no dataset 'tinny'; did you mean 'tiny'" in str(wrong)


def test_a_suffix_that_says_no_format_is_refused_at_once(tmp_path: Path) -> None:
    error = export("quickstart", tmp_path / "splits.xlsx").exception
    assert "cannot tell the format" in str(error)
    assert "Allowed: .csv, .parquet, .pq" in str(error)
