"""The JSON Schemas accept what dprepro accepts, and refuse what a person mistypes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dprepro.data.card import Card, card_names
from dprepro.experiment.config import ExperimentConfig, config_names
from dprepro.experiment.journal import journal_bytes, journal_files
from dprepro.experiment.record import OF_THE_LINE, written
from dprepro.judge.paper_check import MODELS
from dprepro.papers.folders import FOLDER
from dprepro.release.json_schemas import SCHEMAS, json_schema
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin
from dprepro.runtime.yaml_files import read_yaml
from tests.commands import dprepro

ROOT = Path(__file__).resolve().parents[2]


@cache
def checker(name: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(name))


def faults(name: str, values: Any) -> list[str]:
    return [error.message for error in checker(name).iter_errors(values)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(json_schema(name))
    assert json.loads(dprepro("schema", name)) == json.loads(json.dumps(json_schema(name)))


@pytest.mark.parametrize(
    ("kind", "folder", "names"),
    [("config", "configs", config_names()), ("card", "datasets", card_names())],
)
def test_every_built_in_file_has_its_schema(kind: str, folder: str, names: list[str]) -> None:
    for name in names:
        values = read_yaml(builtin(folder) / f"{name}.yaml").values
        assert faults(kind, values) == [], name


@pytest.mark.parametrize("kind", MODELS)
def test_files_of_every_paper_have_their_schema(kind: str) -> None:
    schema = json.loads(dprepro("schema", kind))
    Draft202012Validator.check_schema(schema)
    paths = sorted(FOLDER.glob(f"*/{kind}.yaml"))
    assert len(paths) >= 3
    for path in paths:
        values = read_yaml(path).values
        errors = Draft202012Validator(schema).iter_errors(values)
        assert [error.message for error in errors] == [], path
        values["nonsense"] = 1
        assert not Draft202012Validator(schema).is_valid(values)


def test_lines_of_every_ninth_journal_have_their_schema() -> None:
    kinds = set()
    for path in list(journal_files(ROOT / "results").values())[::9]:
        lines = journal_bytes(path).splitlines()
        plans = [line for line in lines if line.startswith(b'{"kind":"plan"')]
        for line in (*lines[:2], *plans[-1:], lines[-1]):
            values = json.loads(line)
            kinds.add(values["kind"])
            assert faults("journal", values) == [], path.name
    assert kinds >= {"environment", "plan", "record"}


def test_lines_of_both_formats_have_their_schema() -> None:
    lines = journal_bytes(journal_files(ROOT / "results")["plus-pol"]).decode().splitlines()
    for kind in ("environment", "plan", "record"):
        sealed = json.loads([line for line in lines if line.startswith(f'{{"kind":"{kind}"')][-1])
        assert faults("journal", sealed) == []
        assert faults("journal", {**sealed, "crc32": "no checksum"}) != []
        assert faults("journal", {**sealed, "format": 3, "after": "0123abcd"}) == []
        assert faults("journal", {**sealed, "after": "no checksum"}) != []
        first = {key: value for key, value in sealed.items() if key not in OF_THE_LINE}
        assert faults("journal", first) == []
    assert faults("journal", json.loads(written({"kind": "end"}))) == []


def test_model_files_have_their_schema() -> None:
    paths = sorted((ROOT / "results" / "models").glob("*.json"))
    assert paths
    for path in paths:
        assert faults("model", json.loads(path.read_text(encoding="utf-8"))) == [], path.name


SMALLEST = {"dataset": "adult", "metric": "auc", "epsilons": [1], "methods": ["ebm"]}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"dataset": "mine.yaml"},
        {"seed": None, "include": ["telco"]},
        {"rows_per_unit": 2},
        {"rows_per_unit": ["row", 3]},
        {"methods": [{"method": "ebm", "label": "other", "grid": {"max_bins": [8, 32]}}]},
    ],
)
def test_a_config_may_say(change: dict[str, Any]) -> None:
    values = {**SMALLEST, **change}
    assert faults("config", values) == []
    ExperimentConfig.model_validate({k: v for k, v in values.items() if k != "include"})


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": [1]},
        {"metric": "auroc"},
        {"epsilons": [0]},
        {"splits": 0},
        {"splits": "5"},
        {"rows_per_unit": "rows"},
        {"rows_per_unit": 0},
        {"methods": [{"name": "ebm"}]},
        {"methods": [3]},
        {"delta": 1},
    ],
)
def test_a_config_may_not_say(change: dict[str, Any]) -> None:
    values = {**SMALLEST, **change}
    assert faults("config", values)
    with pytest.raises(ValueError, match="validation error"):
        ExperimentConfig.model_validate(values)


@pytest.mark.parametrize(
    "change", [{"taks": "binary"}, {"task": "ranking"}, {"features": {"a": 1}}]
)
def test_a_card_may_not_say(change: dict[str, Any]) -> None:
    values = {"name": "a", "task": "regression", "file": "a.csv", "target": "y"}
    assert faults("card", values) == []
    Card.model_validate(values)
    assert faults("card", values | change)
    with pytest.raises(ValueError, match="validation error"):
        Card.model_validate(values | change)


def test_scalars_of_a_card_are_read_as_text() -> None:
    values = {"name": 7, "task": "binary", "file": "a.csv", "target": 3, "positive": True}
    assert faults("card", values) == []


@pytest.mark.parametrize("name", ["config", "card"])
def test_every_key_is_there(name: str) -> None:
    model = {"config": ExperimentConfig, "card": Card}[name]
    assert set(json_schema(name)["properties"]) - {"include"} == set(model.model_fields)


def test_keys_say_what_the_docstring_says() -> None:
    keys = json_schema("config")["properties"]
    assert keys["hypotheses"]["description"].startswith("Whether it tries what a document")
    assert keys["time_limit"]["description"] == "Longest time of one task, in seconds."


def test_all_are_written_to_a_folder(tmp_path: Path) -> None:
    said = dprepro("schema", "--output", tmp_path / "schemas").split()
    assert said == [
        str(tmp_path / "schemas" / f"{name}.schema.json") for name in (*SCHEMAS, *MODELS)
    ]
    assert json.loads(Path(said[0]).read_text(encoding="utf-8")) == json.loads(
        json.dumps(json_schema("config"))
    )


def test_wrong_names_and_places_are_explained(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match="no schema 'confg'; did you mean 'config'"):
        dprepro("schema", "confg")
    with pytest.raises(DpreproError, match="give a NAME"):
        dprepro("schema")
    (tmp_path / "file").write_text("")
    with pytest.raises(DpreproError, match="cannot be written"):
        dprepro("schema", "--output", tmp_path / "file")
