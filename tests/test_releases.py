"""What is meant for release says nothing of private rows but what its ledger lists."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprepro.data import fingerprint as identity
from dprepro.data.card import load_card
from dprepro.data.dataset import load, values_digest
from dprepro.experiment.config import load_config
from dprepro.experiment.run import Options, look_ahead
from dprepro.privacy import mechanisms
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sampling import Bits, ExactSampler
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.data.conftest import Reply, Server, server
from tests.in_process import in_process
from tests.privacy.answers import Answers, overhearing
from tests.private_table import ROWS, SEED, Row, csv_of, rows_of, write_table

__all__ = ["in_process", "server"]

METHODS = ("dp-ebm-gdp", "dp-ebm-joint", "dp-ebm-sound", "dp-ebm-plus")
FITS = [*product(METHODS, ("binary", "regression")), ("dp-ebm-plus", "multiclass")]
# What the ledgers of additive models list: noisy histograms (and the bins that follow from them),
# and noisy sums of residuals (and the functions that follow from them).
RELEASED = {"labels", "missing_bin", "cuts", "groups", "counts", "values", "noise"}


def fit(config: Path, method: str, *options: object) -> bytes:
    """Return the model file that the command line writes."""
    path = config.with_name("model.json")
    dprepro("fit", config, "--method", method, "--epsilon", 1, "--output", path, *options)
    return path.read_bytes()


def fix_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every fit draw the same noise, while it believes it to be fresh."""

    class Fixed(mechanisms.NoiseSource):
        def __init__(self, ledger: Ledger, seed: object) -> None:
            super().__init__(ledger, None)
            ledger.note_seed(seed)
            self.sampler = ExactSampler(Bits(3))
            self.public_generator = np.random.default_rng(4)

    monkeypatch.setattr("dprepro.privacy.curator_base.NoiseSource", Fixed)


def neighbours(task: str) -> dict[str, list[Row]]:
    """Return tables that differ from `rows_of` in one row: one more, one less, one exchanged."""
    rows = rows_of(task)
    target = {"binary": "yes", "multiclass": "high"}.get(task, "4")
    other = ("99.999", "", "c", target)
    return {"one more": [*rows, other], "one less": rows[:-1], "exchanged": [*rows[:-1], other]}


def without_releases(model: bytes) -> str:
    values = json.loads(model)
    del values["intercept"], values["units"]
    values.pop("intervals", None)  # sizes of residuals, of a regression by dp-ebm-plus
    for feature in values["features"]:
        for name in RELEASED:
            feature.pop(name, None)
    return json.dumps(values)


@pytest.mark.parametrize(("method", "task"), FITS)
def test_model_files_of_neighbours_differ_in_nothing_but_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, task: str
) -> None:
    fix_noise(monkeypatch)
    model = fit(write_table(tmp_path, task, rows_of(task), methods=[method]), method)
    assert json.loads(model)["ledger"]["unpaid"] == []
    for rows in neighbours(task).values():
        other = fit(write_table(tmp_path, task, rows, methods=[method]), method)
        assert other != model  # one row does show, in what is paid for
        assert without_releases(other) == without_releases(model)


@pytest.mark.parametrize(("method", "task"), FITS)
def test_model_files_of_neighbours_are_equal_where_all_answers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, task: str
) -> None:
    """No byte of a file comes from a row but by an answer."""
    fix_noise(monkeypatch)
    for rows in neighbours(task).values():
        answers = Answers()
        with overhearing(answers.keep):
            model = fit(write_table(tmp_path, task, rows_of(task), methods=[method]), method)
        with overhearing(answers.put):
            other = fit(write_table(tmp_path, task, rows, methods=[method]), method)
        assert answers.kept == []
        assert other == model


@pytest.mark.parametrize("options", [[], ["--split", 1]])
@pytest.mark.parametrize("seed", [None, SEED])
def test_no_number_of_rows_seed_split_or_token_stands_in_a_model_file(
    tmp_path: Path, options: list[object], seed: int | None
) -> None:
    config = write_table(tmp_path, "binary", rows_of("binary"), seed=seed)
    text = fit(config, "dp-ebm-plus", *options).decode()
    counts = {n for rows in (ROWS, ROWS - 1, ROWS + 1) for n in (rows, rows // 5, rows - rows // 5)}
    told = {float(n) for n in counts | {SEED, ROWS // 5 + 1}}
    assert not [leaf for leaf in leaves(json.loads(text)) if leaf in told]
    assert str(SEED) not in text
    fingerprint = load_card(tmp_path / "patients.yaml").fingerprint()
    assert fingerprint.startswith("private-")
    assert not [part for part in fingerprint.split("-")[1:] if part in text]
    origin = json.loads(text)["origin"]
    assert set(origin) == {
        "config", "dataset", "method", "label", "params", "epsilon", "delta", "domain",
        "method_version", "rows", *([] if seed is None else ["not_for_release"]),
    }  # fmt: skip
    assert origin["rows"] == ("of one split" if options else "all")


def leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list):
        for inner in values:
            yield from leaves(inner)
    else:
        yield values


def digests_of_candidates(folder: Path, place: int) -> list[set[str]]:
    """Return, for every row that could stand at `place`, all digests that we know of."""
    rows, card = rows_of("binary"), load_card(folder / "patients.yaml")
    X, y = (lambda d: (d.X, d.y))(load(folder / "patients.yaml"))
    [[_, *reading]] = identity.values_of(card, None)
    found = []
    for k, candidate in enumerate(rows):
        content = hashlib.sha256(csv_of([*rows[:place], candidate, *rows[place + 1 :]])).hexdigest()
        order = np.arange(len(rows))
        order[place] = k
        values = values_digest(X.iloc[order], y[order])
        states = [identity._state(card, values), identity._state(card, [[content, *reading]])]
        found.append(
            {content, values, *map(identity.short_digest, states), content[:16], values[:16]}
        )
    return found


def matches(text: str, candidates: list[set[str]]) -> list[int]:
    return [k for k, digests in enumerate(candidates) if any(digest in text for digest in digests)]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("checksum", [False, True])
def test_who_knows_all_rows_but_one_finds_nothing_to_match(tmp_path: Path, checksum: bool) -> None:
    """A table with a checksum in its card is public: there the attack finds the row."""
    rows, place = rows_of("binary"), 137
    known = f"sources: [{{file: patients.csv, sha256: {hashlib.sha256(csv_of(rows)).hexdigest()}}}]"
    config = write_table(tmp_path, "binary", rows, card=known if checksum else "", splits=1)
    if checksum:
        card = tmp_path / "patients.yaml"
        card.write_text(
            card.read_text(encoding="utf-8").replace("file: patients.csv\ntarget", "target", 1)
        )
    models = fit(config, "dp-ebm-plus"), fit(config, "dp-ebm-plus", "--split", 0)
    dprepro("run", config, "--results", tmp_path / "results", "--jobs", 1)
    journal = (tmp_path / "results" / "study.jsonl").read_text(encoding="utf-8")
    candidates = digests_of_candidates(tmp_path, place)
    assert len(set(map(frozenset, candidates))) == ROWS
    released, of_split = (model.decode() for model in models)
    assert matches(released, candidates) == []
    assert matches(of_split, candidates) == ([place] if checksum else [])
    assert matches(journal, candidates) == ([place] if checksum else [])
    if not checksum:
        notes = (tmp_path / "model.local-notes").read_text(encoding="utf-8")
        assert matches(notes, candidates) == []


@pytest.mark.usefixtures("in_process")
def test_a_journal_of_private_rows_names_what_no_epsilon_covers(tmp_path: Path) -> None:
    config = write_table(tmp_path, "binary", rows_of("binary"), splits=1, methods=[
        "dp-ebm-plus", "ebm", {"method": "dp-ebm-plus", "label": "bad", "params": {"n_epochs": 1}},
    ])  # fmt: skip
    output = dprepro("run", config, "--results", tmp_path, "--jobs", 1)
    assert "PRIVATE DATA: the journal holds exact scores" in output
    lines = [json.loads(line) for line in (tmp_path / "study.jsonl").open()]
    records = [line for line in lines if line["kind"] == "record"]
    assert len(records) == 3
    for record in records:
        assert record["exact"][0].startswith("metrics: scores on test rows")
        assert ROWS not in set(leaves(record))


@pytest.mark.usefixtures("in_process")
def test_a_run_on_downloaded_rows_goes_on_while_they_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setenv("DPREPRO_CACHE", str(tmp_path / "cache"))
    methods = [{"method": "dp-ebm-gdp", "params": {"n_epochs": 2}}]
    config = write_table(tmp_path, "binary", rows_of("binary"), seed=1, methods=methods)
    card, results = tmp_path / "patients.yaml", tmp_path / "results"
    card.write_text(card.read_text(encoding="utf-8").replace(
        "file: patients.csv", f"sources: [{{http: '{server.url}/patients.csv'}}]"
    ))  # fmt: skip

    def run(rows: int) -> tuple[str, list[dict[str, Any]]]:
        server.replies["/patients.csv"] = Reply(csv_of(rows_of("binary")[:rows]))
        said = dprepro("run", config, "--results", results, "--jobs", 1)
        return said, [json.loads(line) for line in (results / "study.jsonl").open()]

    assert "2 task(s) run" in run(ROWS)[0]
    said, lines = run(300)  # what was downloaded still lies there
    assert "0 task(s) run" in said
    (plan,) = [line for line in lines if line["kind"] == "plan"]
    records = [line for line in lines if line["kind"] == "record"]
    assert plan["cells"][0]["keys"] == [record["key"] for record in records]
    shutil.rmtree(tmp_path / "cache")
    assert "2 task(s) run" in run(300)[0]
    shutil.rmtree(tmp_path / "cache")
    assert "0 task(s) run" in run(ROWS)[0]


def test_a_model_of_a_split_of_downloaded_rows_can_be_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setenv("DPREPRO_CACHE", str(tmp_path / "cache"))
    server.replies["/patients.csv"] = Reply(csv_of(rows_of("binary")))
    config = write_table(tmp_path, "binary", rows_of("binary"))
    card = tmp_path / "patients.yaml"
    source = f"sources: [{{http: '{server.url}/patients.csv'}}]"
    card.write_text(card.read_text(encoding="utf-8").replace("file: patients.csv", source))
    fit(config, "dp-ebm-plus", "--split", 0)
    assert "auc" in dprepro("score", config.with_name("model.json"), config)


@pytest.mark.parametrize("options", [[], ["--split", 0]])
def test_only_what_is_gone_on_with_needs_the_register(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[object]
) -> None:
    config = write_table(tmp_path, "binary", rows_of("binary"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "file" / "nope"))
    if options:
        with pytest.raises(DpreproError, match="cannot use the register of private data"):
            fit(config, "dp-ebm-plus", *options)
        return
    assert json.loads(fit(config, "dp-ebm-plus"))["origin"]["rows"] == "all"
    assert "shapes.png" in dprepro("plot", "shapes", config, "--output", tmp_path)
    (tmp_path / "patients.csv").unlink()
    assert "dp-ebm-plus" in dprepro("ledger", config)


@pytest.mark.usefixtures("in_process")
def test_a_run_on_private_rows_goes_on_while_rows_and_register_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of("binary")
    config = write_table(tmp_path, "binary", rows, seed=1)
    dprepro("run", config, "--results", tmp_path / "results", "--jobs", 1)

    def left() -> int:
        options = Options(results=tmp_path / "results")
        return len(look_ahead(load_config(config), options).todo)

    assert left() == 0
    (tmp_path / "patients.csv").write_bytes(csv_of(rows[:-1]))
    assert left() == 2
    (tmp_path / "patients.csv").write_bytes(csv_of(rows))
    assert left() == 0
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "another register"))
    assert left() == 2
