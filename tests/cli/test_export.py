"""`dprepro export` writes what the functions of `dprepro.additive.export` return, or nothing.

`dprepro export-crate`, by the rules of RO-Crate 1.1.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.commands import dprepro
from tests.report.journals import records, spread, write


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(small.file()))
    return path


def test_sql_names_the_table(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "model.sql"
    said = dprepro(
        "export", model, "--to", "sql", "--dialect", "duckdb", "--table", "customers", "-o", out
    )
    assert said == f"{out}: the model, as an SQL query\n"
    assert out.read_text(encoding="utf-8") == to_sql(small.model(), "customers", "duckdb")
    assert [path.name for path in out.parent.iterdir()] == ["model.sql"]


def test_python_can_go_to_standard_output(model: Path) -> None:
    assert dprepro("export", model, "--to", "python", "-o", "-") == to_python(small.model())


def test_onnx_is_a_file(model: Path, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    dprepro("export", model, "--to", "onnx", "--output", tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx").graph.name == "additive_model"
    with pytest.raises(DpreproError, match="name a file"):
        dprepro("export", model, "--to", "onnx", "-o", "-")


@pytest.mark.parametrize("option", [("--dialect", "sqlite"), ("--table", "customers")])
@pytest.mark.parametrize("form", ["python", "onnx"])
def test_other_forms_refuse_what_is_about_a_database(
    model: Path, tmp_path: Path, option: tuple[str, str], form: str
) -> None:
    with pytest.raises(DpreproError, match=f"^{option[0]} is about .* leave it out$"):
        dprepro("export", model, "--to", form, "--output", tmp_path / "m.py", *option)
    assert not (tmp_path / "m.py").exists()


def test_for_interpret_it_says_what_to_do(model: Path, tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"load_model\(.*\).to_interpret\(\)"):
        dprepro("export", model, "--to", "interpret", "-o", tmp_path / "x")
    assert {path.name for path in tmp_path.iterdir()} == {"model.json"}


@pytest.mark.parametrize("form", ["sql", "python"])
def test_a_broken_model_or_the_model_itself_is_refused(
    model: Path, tmp_path: Path, form: str
) -> None:
    before = model.read_text(encoding="utf-8")
    with pytest.raises(DpreproError, match="is the model file"):
        dprepro("export", model, "--to", form, "-o", model)
    assert model.read_text(encoding="utf-8") == before
    model.write_text(before.replace('"cuts"', '"cut"'))
    with pytest.raises(DpreproError, match="cut"):
        dprepro("export", model, "--to", form, "-o", tmp_path / "x")
    assert {path.name for path in tmp_path.iterdir()} == {"model.json"}


def test_a_module_must_be_called_as_one(model: Path, tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"ends in \.py, such as out\.py"):
        dprepro("export", model, "--to", "python", "-o", tmp_path / "out.python")


def test_a_file_is_replaced_as_the_help_says(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.py"
    out.write_text("old")
    dprepro("export", model, "--to", "python", "-o", out)
    assert out.read_text(encoding="utf-8") == to_python(small.model())
    for command in ("export", "predict"):
        assert "which is replaced if it exists" in " ".join(
            (re.sub(r"[^\w ,.-]", " ", dprepro(command, "--help"))).split()
        )


def test_what_is_no_model_file_is_told_what_writes_one(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(DpreproError, match=r"`dprepro release CARD` and `dprepro fit"):
        dprepro("export", tmp_path / "no.json", "--to", "sql", "-o", "-")
    for command in ("export", "predict", "show", "edit"):
        said = " ".join(re.sub(r"[^\w ,.-]", " ", dprepro(command, "--help")).split())
        assert "A model file, from dprepro release or dprepro fit" in said


ENVIRONMENT = {"time": "2026-11-22T10:00:00+00:00", "dprepro": "0.2.0", "cpu": "a processor"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write(folder, "adult", records(spread(0.875, 0.005)), ENVIRONMENT)
    write(folder, "my run", records([0.9, 0.91], label="dp-ebm-plus"), {"dprepro": "0.1.0"})
    return folder


@pytest.fixture(scope="module")
def crate(results: Path) -> Path:
    folder = results.parent / "crate"
    said = dprepro("export-crate", "--results", results, "--output", folder)
    assert said == f"{folder}: 2 journals, {len(files(folder)) - 1} files beside the metadata\n"
    return folder


def files(folder: Path) -> list[str]:
    return [str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file()]


def entities(folder: Path) -> dict[str, dict[str, Any]]:
    graph = json.loads((folder / "ro-crate-metadata.json").read_text(encoding="utf-8"))["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph)
    return found


def links(value: Any) -> Iterator[str]:
    """Yield what an entity refers to: mappings that have an @id alone."""
    if isinstance(value, dict) and set(value) == {"@id"}:
        yield value["@id"]
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from links(one)


def test_the_descriptor_and_the_root_are_what_the_profile_asks_for(crate: Path) -> None:
    whole = json.loads((crate / "ro-crate-metadata.json").read_text(encoding="utf-8"))
    assert whole["@context"] == "https://w3id.org/ro/crate/1.1/context"
    found = entities(crate)
    descriptor, root = found["ro-crate-metadata.json"], found["./"]
    assert descriptor["@type"] == "CreativeWork"
    assert descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["@type"] == "Dataset"
    assert all(root[name] for name in ("name", "description", "license"))
    assert root["datePublished"] == ENVIRONMENT["time"]


def test_every_file_is_described_and_has_its_checksum(crate: Path) -> None:
    found = entities(crate)
    parts = [part["@id"] for part in found["./"]["hasPart"]]
    assert sorted(map(unquote, parts)) == [
        name for name in files(crate) if name != "ro-crate-metadata.json"
    ]
    for part in parts:
        content = (crate / unquote(part)).read_bytes()
        assert found[part]["@type"] == "File"
        assert found[part]["sha256"] == hashlib.sha256(content).hexdigest()
        assert found[part]["contentSize"] == str(len(content))
        assert found[part]["encodingFormat"]
        assert found[part]["description"]
        assert " " not in part


def test_every_link_leads_to_an_entity_and_each_has_a_name(crate: Path) -> None:
    found = entities(crate)
    outside = {"https://w3id.org/ro/crate/1.1"}
    assert set(links(list(found.values()))) <= set(found) | outside
    assert all(e.get("name") for key, e in found.items() if key != "ro-crate-metadata.json")


def test_a_run_says_what_wrote_which_journal(crate: Path) -> None:
    found = entities(crate)
    run = found["#run-adult"]
    assert run["@type"] == "CreateAction"
    assert run["result"] == {"@id": "journals/adult.jsonl"}
    assert run["startTime"] == ENVIRONMENT["time"]
    assert [found[one["@id"]]["softwareVersion"] for one in run["instrument"]] == ["0.2.0"]
    assert found["#run-my%20run"]["result"] == {"@id": "journals/my%20run.jsonl"}


def test_it_holds_journals_environments_verdicts_and_pictures(crate: Path, results: Path) -> None:
    assert (crate / "journals/adult.jsonl").read_bytes() == (results / "adult.jsonl").read_bytes()
    told = json.loads((crate / "environments.json").read_text(encoding="utf-8"))
    assert {one["dprepro"] for one in told} == {"0.1.0", "0.2.0"}
    rows = (crate / "verdicts.csv").read_text(encoding="utf-8").splitlines()
    assert any("dp-ebm-gdp-2021,0.5" in row and row.endswith(",equivalent") for row in rows)
    assert [name for name in files(crate) if name.endswith(".png")]


def test_the_same_journals_give_the_same_bytes(crate: Path, results: Path, tmp_path: Path) -> None:
    dprepro("export-crate", "--results", results, "--output", tmp_path / "again")
    assert files(tmp_path / "again") == files(crate)
    for name in files(crate):
        assert (tmp_path / "again" / name).read_bytes() == (crate / name).read_bytes(), name


def test_a_licence_is_named(results: Path, tmp_path: Path) -> None:
    licence = "https://spdx.org/licenses/CC-BY-4.0"
    given = ("--results", results, "--config", "adult", "--output", tmp_path / "a")
    dprepro("export-crate", *given, "--licence", licence)
    assert entities(tmp_path / "a")["./"]["license"] == {"@id": licence}
    assert licence in entities(tmp_path / "a")


def test_what_cannot_be_handed_on_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match="exists already"):
        dprepro("export-crate", "--results", results, "--output", tmp_path)
    with pytest.raises(DpreproError, match="give its address"):
        dprepro(
            "export-crate", "--results", results, "--output", tmp_path / "a", "--licence", "MIT"
        )
    private = records([0.5], data_fingerprint="private-0123456789abcdef-0123456789abcdef")
    write(tmp_path / "mine", "hospital", private)
    with pytest.raises(DpreproError, match="hospital is of private rows"):
        dprepro("export-crate", "--results", tmp_path / "mine", "--output", tmp_path / "a")
    assert not (tmp_path / "a").exists()
