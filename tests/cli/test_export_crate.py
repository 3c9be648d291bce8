"""`dprepro export-crate`, by the rules of RO-Crate 1.1."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.report.journals import records, spread, write

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
    graph = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
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
    whole = json.loads((crate / "ro-crate-metadata.json").read_text())
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
    told = json.loads((crate / "environments.json").read_text())
    assert {one["dprepro"] for one in told} == {"0.1.0", "0.2.0"}
    rows = (crate / "verdicts.csv").read_text().splitlines()
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
