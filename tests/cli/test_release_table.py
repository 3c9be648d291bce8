"""`dprepro release --table`: rows of a table in chunks are released as those in memory are."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.release.budget_book import read_book
from dprepro.release.statement import Statement
from dprepro.rows import table as tables
from dprepro.rows.answer_log import KeptAnswers
from dprepro.rows.folder import ANSWERS, Folder
from dprepro.runtime.errors import DpreproError
from tests.cli.test_fit_store import KILLED
from tests.cli.test_release import DELTA, FILES, LIMIT, UNIT
from tests.commands import dprepro
from tests.private_table import COUNTS, rows_of, write_table
from tests.test_releases import fix_noise

EXPECT = "expect: {rows: 300}\n"


@pytest.fixture(autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setattr(tables, "CHUNK_ROWS", 70)  # several chunks


def card_of(folder: Path, text: str = "", task: str = "binary") -> Path:
    return write_table(folder, task, rows_of(task, 300), text).with_name("patients.yaml")


def frame_of(task: str = "binary") -> pd.DataFrame:
    rows = pd.DataFrame(rows_of(task, 300), columns=["age", "dose", "ward", "y"])
    rows["age"], rows["dose"] = rows["age"].astype(float), pd.to_numeric(rows["dose"])
    return rows.assign(y=rows["y"].astype(float)) if task in ("regression", "counts") else rows


def table_of(folder: Path, task: str = "binary") -> Path:
    """Write the rows as parquet, the columns in another order, with one that is not on the card."""
    frame_of(task).assign(extra="x")[["y", "extra", "ward", "dose", "age"]].to_parquet(
        folder / "mine.parquet"
    )
    return folder / "mine.parquet"


def options(card: Path, table: Path | None, *more: object) -> list[Any]:
    given = [] if table is None else ["--table", table]
    place = card.with_name("out")
    return ["release", card, "--epsilon", 1, "--yes", *DELTA, "-o", place, *given, *more]


def release(card: Path, table: Path | None, *more: object) -> str:
    return dprepro(*options(card, table, *more))


def refused(card: Path, table: Path | None, *more: object, match: str) -> None:
    before = [e.model_dump() for e in read_book().entries]
    with pytest.raises(DpreproError, match=match):
        release(card, table, *more)
    assert [e.model_dump() for e in read_book().entries] == before
    assert not card.with_name("out").exists()
    assert not list(card.parent.glob("out.store"))


def model_in(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return values


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "counts"])
def test_a_release_of_a_table_is_that_of_the_same_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    fix_noise(monkeypatch)
    one, two = (card_of(tmp_path / name, EXPECT, task) for name in ("one", "two"))
    more: list[object] = ["--clip"]
    if task == "counts":
        more += ["--config", one.with_name("study.yaml"), "--method", COUNTS["method"]]
    release(one, None, *more)
    table = table_of(tmp_path, task)
    two.with_name("patients.csv").unlink()  # the card's own file plays no part
    said = release(two, table, *more)
    assert f"all rows of {table}, by the card of patients" in " ".join(said.split())
    first, second = one.with_name("out"), two.with_name("out")
    assert {path.name for path in second.iterdir()} == FILES
    assert not two.with_name("out.store").exists()
    of_memory, of_table = model_in(first), model_in(second)
    assert of_table["origin"].pop("table").startswith("of the user's own (--table)")
    assert of_memory == of_table
    entries = read_book().entries
    assert [entry.status for entry in entries] == ["released", "released"]
    assert set(entries[0].rows) & set(entries[1].rows)  # known again by their values
    statement = Statement.model_validate_json((second / "statement.json").read_bytes())
    assert statement.publisher.rows == 300
    assert statement.publisher.earlier_releases == 1
    assert "agree" in dprepro("verify", second)
    told = (second / "statement.md").read_text(encoding="utf-8")
    assert "300 in the table, a number that is public" in told
    for file in second.iterdir():
        assert "mine.parquet" not in file.read_text(encoding="utf-8")


def test_rows_of_a_unit_are_bounded_and_known_as_in_memory(tmp_path: Path) -> None:
    card = card_of(tmp_path, UNIT + LIMIT)
    owners = [f"p{k // 4}" for k in range(300)]
    table = tmp_path / "mine.csv"
    frame = pd.DataFrame(rows_of("binary", 300), columns=["age", "dose", "ward", "y"])
    frame.assign(patient=owners).to_csv(table, index=False)
    assert "one patient, of whose rows up to 2 are used" in release(card, table)
    out = tmp_path / "out"
    privacy = Statement.model_validate_json((out / "statement.json").read_bytes()).privacy
    assert (privacy.unit, privacy.rows_per_unit, privacy.holds) == ("patient", 2, True)
    assert "agree" in dprepro("verify", out)
    out.rename(tmp_path / "first")
    (tmp_path / "patients.csv").write_bytes(table.read_bytes())
    refused(card, None, match=r"beyond the budget.*with all earlier releases of these rows")
    (of_table,) = read_book().entries
    from dprepro.data.card import load_card
    from dprepro.release.rows import known_rows

    tokens, _, _ = known_rows(str(card), load_card(card), None)
    # All are known in memory, which has one more: that of earlier books.
    assert set(of_table.rows) < set(tokens)
    assert len(tokens) == len(of_table.rows) + 1 == 5


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_pairs_about_a_unit_are_released_of_a_table_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    fix_noise(monkeypatch)
    for reader in ("experiment.splits", "rows.units"):  # the same rows of each unit
        monkeypatch.setattr(f"dprepro.{reader}.bounding_key", lambda: b"k" * 32)
    rows = frame_of(task).assign(patient=[f"p{k // 4}" for k in range(300)])
    old_in_a = (rows["age"] > 50) == (rows["ward"] == "a")  # neither of them says y alone
    rows["y"] = old_in_a.map({True: "yes", False: "no"}) if task == "binary" else 1.0 * old_in_a
    pairs = {"method": "dp-ebm-plus", "params": {"pairs": 2}}
    models, statements = [], []
    for name in ("memory", "table"):
        config = write_table(tmp_path / name, task, [], UNIT, methods=[pairs])
        card, table = config.with_name("patients.yaml"), tmp_path / "mine.parquet"
        rows.to_csv(card.with_name("patients.csv"), index=False)
        rows.to_parquet(table, row_group_size=50)
        more = ["--clip", "--config", config, "--epsilon", 40]
        release(card, table if name == "table" else None, *more)
        assert "agree" in dprepro("verify", card.with_name("out"))
        models.append(model_in(card.with_name("out")))
        written = (card.with_name("out") / "statement.json").read_bytes()
        statements.append(Statement.model_validate_json(written).privacy)
    assert models[0]["pairs"]
    for model in models:
        model["origin"].pop("table", None)
    assert models[0] == models[1]
    assert statements[0] == statements[1]
    assert (statements[0].unit, statements[0].rows_per_unit) == ("patient", 2)


def test_like_rows_of_another_card_share_a_budget(tmp_path: Path) -> None:
    one, two = (card_of(tmp_path / name, LIMIT) for name in ("one", "two"))
    release(one, None)
    changed = frame_of().iloc[20:].sample(frac=1, random_state=1)
    changed.to_parquet(tmp_path / "changed.parquet")
    refused(two, tmp_path / "changed.parquet", match="These rows are counted with those")


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (["--measure", 0.3], "--measure needs the rows in memory"),
        (["--attack", 40, "--attack-rows", "x.csv"], "--attack-rows needs the rows in memory"),
        (["--method", "dp-ebm-gdp-indicators"], "dp-ebm-gdp-indicators takes rows in memory only"),
    ],
)
def test_what_needs_rows_in_memory_is_refused_by_name(
    tmp_path: Path, more: list[object], match: str
) -> None:
    refused(card_of(tmp_path), table_of(tmp_path), *more, match=match)


@pytest.mark.parametrize("more", [["--store", "x"], ["--encrypt"]])
def test_without_a_table_there_is_nothing_to_keep(tmp_path: Path, more: list[object]) -> None:
    refused(card_of(tmp_path), None, *more, match="--store and --encrypt are about the rows of")


@pytest.mark.parametrize(
    ("text", "changed", "match"),
    [
        ("", {"age": 121.0}, "feature 'age' has a value outside its public bounds"),
        ("", {"age": float("nan")}, "patients: .*age"),
        ("", {"ward": "secret"}, "column 'ward' holds a value that is not among"),
        ("expect: {rows: 299}\n", {}, "'patients' describes .rows: expected 299, found another"),
        ("expect: {columns: 4}\n", {}, "columns: expected 4, found another"),
        ("expect: {positives: 3}\n", {}, "states `expect: positives` of private rows"),
    ],
)
def test_rows_that_break_the_card_are_refused_before_anything_is_spent(
    tmp_path: Path, text: str, changed: dict[str, object], match: str
) -> None:
    table = tmp_path / "mine.parquet"
    frame = frame_of()
    for name, value in changed.items():
        frame.loc[250, name] = value
    frame.to_parquet(table)
    refused(card_of(tmp_path, text), table, match=match)


def test_values_beyond_their_bounds_can_be_clipped_and_an_attack_made(tmp_path: Path) -> None:
    frame_of().assign(age=130.0).to_parquet(tmp_path / "mine.parquet")
    said = release(card_of(tmp_path), tmp_path / "mine.parquet", "--clip", "--attack", 40)
    assert "on 40 models that are fitted like this one" in " ".join(said.split())


def killed_after(answers: int, command: list[Any], code: str = KILLED) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, command), str(answers)],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_killed_release_goes_on_and_is_charged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, table = card_of(tmp_path, LIMIT), table_of(tmp_path)
    command, store = options(card, table), tmp_path / "out.store"
    killed_after(6, command)
    (begun,) = read_book().entries
    assert begun.status == "reserved"
    answers = (store / ANSWERS).read_bytes()
    for other in (["--delta", "1e-6"], ["--method", "dp-ebm-sound"]):
        with pytest.raises(DpreproError, match="is left of another release"):
            dprepro(*command, *other)
    found: list[bytes] = []
    delete = Folder.delete

    def deleted(self: Folder) -> None:
        found.append((self.path / ANSWERS).read_bytes())
        delete(self)

    monkeypatch.setattr(Folder, "delete", deleted)
    said = dprepro(*command)
    assert "its budget counts already" in " ".join(said.split())
    assert "0 release(s) of these rows" in said
    assert found[0].startswith(answers)
    (entry,) = read_book().entries
    assert (entry.name, entry.status) == (begun.name, "released")
    assert "agree" in dprepro("verify", tmp_path / "out")
    assert not store.exists()


def test_a_release_killed_while_it_reads_is_charged_once(tmp_path: Path) -> None:
    card, table = card_of(tmp_path), table_of(tmp_path)
    code = KILLED.replace("dprepro.rows.answer_log", "dprepro.rows.store")
    code = code.replace("KeptAnswers.keep", "Store._finished").replace("KeptAnswers", "Store")
    code = code.replace("    keep(*args)\n", "")  # before the store is whole
    killed_after(1, options(card, table), code)
    assert (tmp_path / "out.store" / "book-entry").is_file()
    assert not (tmp_path / "out.store" / "store.json").exists()
    release(card, table)
    (entry,) = read_book().entries
    assert entry.status == "released"


def test_a_release_that_had_noise_is_never_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if it fails before it draws anything when it goes on."""
    card, table = card_of(tmp_path), table_of(tmp_path)
    killed_after(6, options(card, table))

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dprepro.release.publish.fit_model", interrupted)
        found = CliRunner().invoke(app, [*map(str, options(card, table))])
    assert found.exit_code == 130
    assert "The same command goes on with what is in" in " ".join(found.output.split())
    assert [entry.status for entry in read_book().entries] == ["reserved"]
    release(card, table)
    assert [entry.status for entry in read_book().entries] == ["released"]


def test_what_fails_before_its_noise_is_cancelled_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, table = card_of(tmp_path), table_of(tmp_path)

    def full(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeptAnswers, "next", full)
        assert CliRunner().invoke(app, [*map(str, options(card, table))]).exit_code == 130
    assert [entry.status for entry in read_book().entries] == ["cancelled"]
    release(card, table)
    assert [entry.status for entry in read_book().entries] == ["released"]


def test_without_its_store_a_release_is_another_one(tmp_path: Path) -> None:
    card, table = card_of(tmp_path), table_of(tmp_path)
    killed_after(6, options(card, table))
    release(card, table, "--store", tmp_path / "elsewhere")
    assert [entry.status for entry in read_book().entries] == ["reserved", "released"]


def test_an_encrypted_release_starts_anew_and_counts_twice(tmp_path: Path) -> None:
    card, table = card_of(tmp_path), table_of(tmp_path)
    command = options(card, table, "--encrypt")
    killed_after(6, command, KILLED.replace("KeptAnswers", "UnkeptAnswers"))
    assert not (tmp_path / "out.store" / "book-entry").exists()
    dprepro(*command)
    assert [entry.status for entry in read_book().entries] == ["reserved", "released"]
    assert not (tmp_path / "out.store").exists()


def test_answers_of_a_fit_that_is_no_release_are_not_used(tmp_path: Path) -> None:
    config = write_table(tmp_path, "binary", rows_of("binary", 300))
    card, table, store = tmp_path / "patients.yaml", table_of(tmp_path), tmp_path / "rows"
    fit = ["fit", config, "--method", "dp-ebm-plus", "--table", table, "-o", tmp_path / "m.json"]
    killed_after(6, [*fit, "--store", store])
    with pytest.raises(DpreproError, match="holds the rows and answers of another fit or release"):
        release(card, table, "--store", store)
    assert [entry.status for entry in read_book().entries] == ["cancelled"]
    assert (store / ANSWERS).is_file()


def test_a_table_that_changes_during_the_release_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dprepro.release.fitting import fit_model

    card, table = card_of(tmp_path), table_of(tmp_path)

    def fit(*arguments: object, **given: object) -> object:
        model = fit_model(*arguments, **given)  # type: ignore[arg-type]
        frame_of().iloc[1:].to_parquet(table)
        return model

    monkeypatch.setattr("dprepro.release.publish.fit_model", fit)
    with pytest.raises(DpreproError, match=r"rows changed during the release.*counts as spent"):
        release(card, table)
    assert not (tmp_path / "out").exists()
    assert [entry.counts for entry in read_book().entries] == [True]


def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    card, table = card_of(tmp_path), table_of(tmp_path)
    killed_after(6, options(card, table))
    for path in (tmp_path / "out.store").iterdir():
        assert path.stat().st_mode & 0o077 == 0
