from __future__ import annotations

import importlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from dprepro.additive.file import load_model
from dprepro.cli import app
from dprepro.cli import release as module
from dprepro.methods import registry
from dprepro.release import budget_book, folder
from dprepro.release.budget_book import read_book
from dprepro.release.fitting import fit_model
from dprepro.release.statement import Statement
from dprepro.report.model_page import model_page
from dprepro.results.audits import read_audits
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin
from tests.commands import dprepro
from tests.private_table import COUNTS, ROWS, Row, rows_of, write_table
from tests.test_releases import fix_noise, leaves, neighbours, without_releases

FILES = {"model.json", "model.html", "statement.json", "statement.md", "statement.html"}
RESULTS = builtin("results")
LIMIT = "budget_limit: {epsilon: 1.2, delta: 1e-5}\n"
UNIT = "unit: patient\nrows_per_unit: 2\n"
DELTA = ("--delta", "1e-5")


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("DPREPRO_STATE", str(place))
    return place


def card_of(tmp_path: Path, rows: list[Row] | None = None, text: str = "") -> Path:
    rows = rows_of("binary", 60) if rows is None else rows
    return write_table(tmp_path, "binary", rows, text).with_name("patients.yaml")


def release(card: Path, *options: object, epsilon: float = 1) -> str:
    given = options if "--delta" in options else (*DELTA, *options)
    place = card.with_name("out")
    return dprepro("release", card, "--epsilon", epsilon, "--yes", "-o", place, *given)


def refused(card: Path, *options: object, match: str) -> str:
    """Return the message of a release that writes nothing and spends nothing."""
    before = [e.model_dump() for e in read_book().entries]
    with pytest.raises(DpreproError, match=match) as caught:
        release(card, *options)
    assert not card.with_name("out").exists()
    assert not list(card.parent.glob(".out*"))
    assert [e.model_dump() for e in read_book().entries] == before
    return str(caught.value)


def test_a_release_is_a_model_and_its_statement(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path, text=LIMIT + "domain_note: known from the form\n")
    said = release(card)
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == FILES
    statement = Statement.model_validate_json((out / "statement.json").read_bytes())
    assert statement.privacy.holds
    assert statement.not_covered.floating_point == statement.not_covered.reads == []
    assert statement.publisher.domain_note == "known from the form"
    assert load_model(out / "model.json").labels_ == ("no", "yes")
    (entry,) = read_book().entries
    assert (entry.status, entry.model_sha256) == ("released", statement.model.sha256)
    assert "Beware" not in said
    assert said.count("bounds") == 1  # what is public is listed once
    for words in (
        "epsilon 1 of the stated 1", "Delta:    1e-05\n", "one row", "exact noise, no seed",
        "0 release(s) of these rows", "Limit:    epsilon 1.2, delta 1e-05", "Spent: epsilon 1",
    ):  # fmt: skip
        assert words in said
    assert "agree" in dprepro("verify", out)
    dprepro("withdraw", out, "--reason", "a ward is missing")
    failed = CliRunner().invoke(app, ["verify", str(out)])
    assert (failed.exit_code, "do not use it: a ward is missing" in failed.output) == (1, True)
    (out / "statement.md").write_text("It is safe.")
    failed = CliRunner().invoke(app, ["verify", str(out)])
    assert (failed.exit_code, "statement.md: not the text" in failed.output) == (1, True)
    (out / "model.html").write_text("<p>It is safe.")
    failed = CliRunner().invoke(app, ["verify", str(out)])
    assert (failed.exit_code, "model.html: not the page" in failed.output) == (1, True)


def test_several_classes_are_released_as_two_are(tmp_path: Path, state: Path) -> None:
    text = LIMIT + "deployment: {curators: [us], intended_use: to learn, region: here}\n"
    config = write_table(tmp_path, "multiclass", rows_of("multiclass", 300), text)
    card, out = config.with_name("patients.yaml"), tmp_path / "out"
    said = refused(card, "--method", "dp-ebm-sound", match="not for multiclass")
    assert "Methods for a release of multiclass data: dp-ebm-plus" in said
    planned = dprepro("budget", card, "--plan", *DELTA)
    assert planned.startswith("patients, by dp-ebm-plus (add/remove-one), for each row")
    assert "epsilon 0.6, delta 1e-05 each: 3 more fit" in planned
    said = release(card)
    assert "Method:   dp-ebm-plus, exact noise, no seed" in said
    assert {path.name for path in out.iterdir()} == FILES | {"registry.yaml", "README.md"}
    statement = Statement.model_validate_json((out / "statement.json").read_bytes())
    assert (statement.privacy.holds, statement.data.task) == (True, "multiclass")
    assert statement.not_covered.reads == []
    assert "3 classes" in (out / "registry.yaml").read_text(encoding="utf-8")
    model = load_model(out / "model.json")
    assert (model.task, model.class_names) == ("multiclass", ("low", "middle", "high"))
    assert 'id="class-keys"' in (out / "model.html").read_text(encoding="utf-8")
    assert "agree" in dprepro("verify", out)
    new = tmp_path / "predicted.csv"
    dprepro("predict", out / "model.json", tmp_path / "patients.csv", "-o", new)
    assert [column for column in pd.read_csv(new) if column.startswith("probability")] == [
        "probability of low", "probability of middle", "probability of high"
    ]  # fmt: skip
    with pytest.raises(DpreproError, match="beyond the budget"):
        release(card, "-o", tmp_path / "second")


def test_counts_are_released_as_numbers_are(tmp_path: Path, state: Path) -> None:
    text = LIMIT + "deployment: {curators: [us], intended_use: to learn, region: here}\n"
    config = write_table(tmp_path, "counts", rows_of("counts", 300), text)
    card, out = config.with_name("patients.yaml"), tmp_path / "out"
    said = release(card, "--config", config)
    assert "Method:   dp-ebm-plus with loss: poisson, exact noise, no seed" in said
    assert {path.name for path in out.iterdir()} == FILES | {"registry.yaml", "README.md"}
    statement = Statement.model_validate_json((out / "statement.json").read_bytes())
    assert (statement.privacy.holds, statement.data.link) == (True, "log")
    assert statement.not_covered.reads == []
    texts = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    for name, words in {
        "statement.md": "a model that predicts y, a count, from 3 features",
        "statement.html": "where a function adds 0.3 to the logarithm of y, the prediction is 1.35",
        "registry.yaml": "3 features, a count as the target",
        "README.md": "of y: the logarithm of its prediction is a sum of one function",
        "model.html": "The sum, with the intercept, is the logarithm of y.",
    }.items():
        assert words in " ".join(texts[name].split())
    model = load_model(out / "model.json")
    assert model.has_log_link
    assert "agree" in dprepro("verify", out)
    new = tmp_path / "predicted.csv"
    dprepro("predict", out / "model.json", tmp_path / "patients.csv", "-o", new, "--explain")
    found = pd.read_csv(new)
    np.testing.assert_allclose(np.exp(found["sum"]).clip(0, 20), found["prediction"])
    with pytest.raises(DpreproError, match="beyond the budget"):
        release(card, "-o", tmp_path / "second")


def test_counts_of_a_card_whose_range_does_not_begin_at_0_are_refused(
    tmp_path: Path, state: Path
) -> None:
    config = write_table(tmp_path, "regression", rows_of("regression", 60), methods=[COUNTS])
    refused(
        config.with_name("patients.yaml"), "--config", config,
        match="for counts, which begin at 0, but the domain's target range is from -2 to 4",
    )  # fmt: skip


@pytest.mark.parametrize("task", ["multiclass", "counts"])
def test_classes_and_counts_are_attacked_as_two_labels_are(
    tmp_path: Path, state: Path, task: str
) -> None:
    config = write_table(tmp_path, task, rows_of(task, 300), LIMIT)
    given = ("--config", config) if task == "counts" else ()
    release(config.with_name("patients.yaml"), "--attack", 40, *given)
    statement = Statement.model_validate_json((tmp_path / "out" / "statement.json").read_bytes())
    assert statement.publisher.attack is not None
    assert statement.publisher.attack.shadow_models == 40


def test_a_release_reads_card_and_rows_once_and_plans_once(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(place: str) -> None:
        module, _, name = place.rpartition(".")
        usual = getattr(importlib.import_module(module), name)

        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            return usual(*arguments, **options)

        monkeypatch.setattr(place, call)

    for place in ("data.card.read_model", "data.dataset.load_by", "release.planning.plan"):
        counted(f"dprepro.{place}")
    release(card_of(tmp_path))
    assert sorted(calls) == ["load_by", "plan", "read_model"]


def test_a_terminal_shows_how_far_a_release_has_come(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    console = Console(file=shown, stderr=True, force_terminal=True, width=100)
    monkeypatch.setattr("dprepro.release.publish.error_console", lambda: console)
    said = release(card_of(tmp_path))
    for words in ("reading the rows", "fitting dp-ebm-plus to all rows", "boosting"):
        assert words in shown.getvalue()
        assert words not in said


def test_a_second_release_beyond_the_limit_is_refused(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path, text=LIMIT)
    release(card, "-o", tmp_path / "first")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "rows.csv").write_bytes((tmp_path / "patients.csv").read_bytes())
    other = copy / "clients.yaml"
    other.write_text(
        card.read_text(encoding="utf-8").replace(LIMIT, "").replace("patients", "rows")
    )
    for again in (card, other):
        assert "1.2" in refused(again, match="beyond the budget: the card of patients")


def test_a_second_release_says_what_both_spend(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path, text="budget_limit: {epsilon: 3, delta: 2e-5}\n")
    found = []
    for name in ("first", "second"):
        release(card, "-o", tmp_path / name)
        text = (tmp_path / name / "statement.json").read_text(encoding="utf-8")
        found.append(Statement.model_validate_json(text))
        dprepro("withdraw", tmp_path / name, "--reason", "a ward is missing")
    first, second = (statement.publisher for statement in found)
    (named,) = second.earlier
    assert (named.model_sha256, named.date) == (found[0].model.sha256, first.date)
    assert (named.epsilon, named.delta, named.unit, named.withdrawn) == (1, 1e-5, "row", first.date)
    assert '"earlier": [' not in (tmp_path / "first" / "statement.json").read_text(encoding="utf-8")
    assert (first.earlier_releases, second.earlier_releases) == (0, 1)
    assert (first.together.epsilon or 9) <= 1 < 1.3 < (second.together.epsilon or 0) < 2
    assert (second.together.delta, second.together.relation) == (2e-5, "add/remove-one")
    assert second.limit is not None
    assert (second.limit.epsilon, second.limit.delta) == (3, 2e-5)
    assert "has 1 earlier release" in found[1].registry.release_frequency
    page = (tmp_path / "second" / "statement.md").read_text(encoding="utf-8")
    assert "has 1 earlier release of these rows" in page
    assert "With this one they spend, for each row: epsilon 1." in page
    assert f"| {first.date}, withdrawn on {first.date} | 1 | 1e-05 | dp-ebm-plus | " in page
    assert f"| {named.model_sha256[:12]}… |" in page
    assert "epsilon 3, delta 2e-05" in page


def test_releases_with_other_neighbours_say_why_they_cost_more(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path)
    first = release(card, "-o", tmp_path / "first")
    assert "neighbours" not in first
    second = release(card, "-o", tmp_path / "second", "--method", "dp-ebm-sound")
    said = "which costs more"
    assert f"neighbours and this one zero-out, so all are counted under replace-one, {said}" in (
        " ".join(second.split())
    )
    statement = (tmp_path / "second" / "statement.md").read_text(encoding="utf-8")
    assert "(replace-one, as the neighbours of the releases differ)" in statement
    assert "neighbours of the releases" not in (tmp_path / "first" / "statement.md").read_text(
        encoding="utf-8"
    )
    book = " ".join(dprepro("budget").split())
    assert "replace-one, as the neighbours of the releases differ, for each row" in book
    lines = [line for line in (first + second).splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(" " * 10) for line in lines)  # what is public, folded


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("expect: {positives: 30}\n", "`expect: positives` of private rows"),
        ("expect: {positive_share: [0.1, 0.9]}\n", "`expect: positive_share` of private"),
        (f"private: true\nexpect: {{values_sha256: {'a' * 64}}}\n", "`expect: values_sha256`"),
        (f"expect: {{values_sha256: {'a' * 64}}}\ndistinct: {{}}\n", "has `distinct`"),
    ],
)
def test_a_card_whose_truth_a_release_would_disclose_is_refused(
    tmp_path: Path, state: Path, text: str, said: str
) -> None:
    refused(card_of(tmp_path, text=text), match=said)


def test_a_public_number_of_rows_is_in_the_statement(tmp_path: Path, state: Path) -> None:
    said = release(card_of(tmp_path, text="expect: {rows: 60}\n"))
    words = "the number of rows in the file, which the card states and which was compared"
    assert words in " ".join(said.split())
    assert f"- {words}\n" in (tmp_path / "out" / "statement.md").read_text(encoding="utf-8")
    assert f"<li>{words}</li>" in (tmp_path / "out" / "statement.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("fails", [KeyboardInterrupt(), DpreproError("the book is full")])
def test_what_fails_after_the_folder_is_written_says_so(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, fails: BaseException
) -> None:
    settle = budget_book.settle

    def broken(name: str, status: Any, **found: object) -> None:
        if status == "released":
            raise fails
        settle(name, status, **found)

    monkeypatch.setattr("dprepro.release.publish.settle", broken)
    card, out = card_of(tmp_path), tmp_path / "out"
    command = ["release", str(card), "--epsilon", "1", *DELTA, "-o", str(out), "--yes"]
    found = CliRunner().invoke(app, command)
    said = f"{found.output}{found.exception}"
    assert f"{out} is written; the book counts it" in said
    assert "othing is written" not in said
    assert (out / "statement.md").exists()
    assert [entry.status for entry in read_book().entries] == ["reserved"]
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("task", ["binary", "multiclass", "counts"])
def test_neighbours_differ_in_nothing_but_releases(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    fix_noise(monkeypatch)
    monkeypatch.setattr("dprepro.release.publish._today", lambda: "2026-11-22")
    found = []
    for rows in (rows_of(task), neighbours(task)["one less"]):
        monkeypatch.setenv("DPREPRO_STATE", str(state / str(len(rows))))  # a book of its own
        config = write_table(tmp_path, task, rows)
        given = ("--config", config) if task == "counts" else ()
        release(config.with_name("patients.yaml"), "-o", tmp_path / f"out-{len(rows)}", *given)
        out = tmp_path / f"out-{len(rows)}"
        texts = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
        model, statement = texts["model.json"], json.loads(texts["statement.json"])
        sha256 = statement["model"]["sha256"]
        numbers = {float(ROWS), float(ROWS - 1)}
        assert not [leaf for leaf in leaves(statement) if leaf in numbers]
        assert texts.pop("model.html") == model_page(
            load_model(out / "model.json"), "patients", "model.json"
        )  # of the model file, and of nothing else
        del texts["model.json"]
        without = {name: text.replace(sha256, "") for name, text in texts.items()}
        found.append((without_releases(model.encode()), without))
        assert model not in (pair[0] for pair in found)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("-77.5", "1", "a", "yes"), r"'age' has a value outside its public bounds \[0, 120\]"),
        (("7", "1", "secret-77.5", "yes"), "not among the card's categories"),
        (
            ("", "1", "a", "yes"),
            "values are missing in age, and the card does not allow it: add `missing: true`",
        ),
    ],
)
def test_rows_that_break_the_card_are_refused(
    tmp_path: Path, state: Path, row: Row, said: str
) -> None:
    card = card_of(tmp_path, [*rows_of("binary", 60), row])
    assert "77.5" not in refused(card, match=said)


def test_values_beyond_their_bounds_can_be_clipped(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path, [*rows_of("binary", 60), ("500", "1", "a", "yes")])
    release(card, "--clip")
    text = (tmp_path / "out" / "statement.md").read_text(encoding="utf-8")
    assert "otherwise it would have been refused" not in text


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (("target: y", "target: z"), (), "no target column 'z'"),
        (("  ward: {categories: [a, b, c]}\n", ""), (), "'ward' is not in the card"),
        (("task: binary", "task: FILL_IN"), (), "line 3, task"),
        (("", ""), ("--method", "ebm"), "no privacy guarantee"),
        (("", ""), ("--method", "dp-logistic-fair"), "floating point"),
        (("", ""), ("--delta", "0"), "needs a delta above 0"),
        (("", ""), ("--delta", "1"), "--delta must lie from 0 to below 1"),
        (("", ""), ("--config", "none"), "no config 'none'"),
    ],
)
def test_what_cannot_be_released_is_refused(
    tmp_path: Path, state: Path, change: tuple[str, str], options: tuple[str, ...], said: str
) -> None:
    card = card_of(tmp_path)
    card.write_text(card.read_text(encoding="utf-8").replace(*change))
    refused(card, *options, match=said)


def test_a_careless_delta_is_refused_and_a_large_one_warned_of(tmp_path: Path, state: Path) -> None:
    """A delta of 0.01 passed without a word: it lets one row in 100 be published as it is."""
    card = card_of(tmp_path)
    said = refused(card, "--delta", "0.01", match="--allow-large-delta")
    assert "publish each row as it is with that probability" in said
    assert "Nothing was spent" in said
    found = release(card, "--delta", "1e-3")
    assert "Beware:   delta 0.001 is large" in found
    assert "The delta is large." in (tmp_path / "out" / "statement.md").read_text(encoding="utf-8")


def test_what_is_refused_is_named_as_it_was_asked_for(tmp_path: Path, state: Path) -> None:
    """The message named a file that the user did not have, and keys of it to change."""
    rows = rows_of("binary", 60)
    card = card_of(tmp_path, rows, UNIT)
    said = refused(card, "--delta", "0.5", "--allow-large-delta", match="leaves nothing")
    assert said.startswith(f"{card} with --epsilon 1 --delta 0.5 --method dp-ebm-plus: ")
    for words in ("release.yaml", "under `methods`"):
        assert words not in said


def test_a_card_without_a_domain_or_rows_is_refused(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path)
    card.write_text(card.read_text(encoding="utf-8").partition("features:")[0])
    refused(card, match="domain: observed")
    refused(card_of(tmp_path), "--delta", "1e-5", "--epsilon", "nan", match="finite number above 0")
    (tmp_path / "patients.csv").unlink()
    refused(card, match="no file at")
    refused(card_of(tmp_path / "x").with_name("no.yaml"), match="no dataset card")


def test_without_a_public_number_of_rows_delta_is_asked_for(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path)
    with pytest.raises(DpreproError, match="choose --delta"):
        dprepro("release", card, "--epsilon", 1, "--yes")


def test_a_place_that_exists_is_refused(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path)
    (tmp_path / "taken").mkdir()
    refused(card, "-o", tmp_path / "taken", match="exists already")


def test_a_full_disk_spends_nothing(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: folder.StagingFolder) -> None:
        raise DpreproError("cannot write out: No space left on device")

    monkeypatch.setattr(folder.StagingFolder, "_make", full)
    refused(card_of(tmp_path), match="No space left on device")


def test_a_disk_that_fails_after_the_fit_counts_what_was_spent(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(self: folder.StagingFolder) -> None:
        raise DpreproError("cannot write: disk full")

    monkeypatch.setattr(folder.StagingFolder, "publish", publish)
    card = card_of(tmp_path)
    with pytest.raises(DpreproError, match="its budget counts as spent; the model lies in"):
        release(card)
    assert not (tmp_path / "out").exists()
    assert [entry.counts for entry in read_book().entries] == [True]


def test_nobody_to_ask_spends_nothing(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path)
    with pytest.raises(DpreproError, match="give --yes to spend the budget"):
        dprepro("release", card, "--epsilon", 1, *DELTA)
    assert read_book().entries == []


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [("n", 1, "nothing was spent"), (typer.Abort, 130, "interrupted: nothing was spent")],
)
def test_a_no_or_an_interrupt_at_the_question_spends_nothing(
    tmp_path: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: object,
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(module, "_is_terminal", lambda: True)

    def confirm(question: str) -> bool:
        if answer == "n":
            return False
        raise answer  # type: ignore[misc]

    monkeypatch.setattr(module.typer, "confirm", confirm)
    card = card_of(tmp_path)
    command = ["release", str(card), "--epsilon", "1", *DELTA, "-o", str(tmp_path / "out")]
    found = CliRunner().invoke(app, command)
    assert (found.exit_code, said in found.output) == (code, True)
    assert read_book().entries == []
    assert not (tmp_path / "out").exists()


def test_a_yes_at_the_question_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    monkeypatch.setattr(module.typer, "confirm", lambda text: not asked.append(text))
    module._ask(False)
    module._ask(True)
    assert asked == ["Spend this? It cannot be taken back"]


def test_an_interrupt_before_the_first_noise_spends_nothing(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dprepro.release.publish.fit_model", interrupted)
    card = card_of(tmp_path)
    command = ["release", str(card), "--epsilon", "1", "--yes", *DELTA]
    found = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out")])
    assert (found.exit_code, "interrupted: nothing is written" in found.output) == (130, True)
    assert [entry.status for entry in read_book().entries] == ["cancelled"]
    assert not list(tmp_path.glob("*out*"))


def test_rows_that_change_during_the_release_are_not_released(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*arguments: object, **options: object) -> object:
        model = fit_model(*arguments, **options)  # type: ignore[arg-type]
        with (tmp_path / "patients.csv").open("a") as file:
            file.write("1,1,a,yes\n")
        return model

    monkeypatch.setattr("dprepro.release.publish.fit_model", fit)
    with pytest.raises(DpreproError, match=r"rows changed during the release.*counts as spent"):
        release(card_of(tmp_path))
    assert not (tmp_path / "out").exists()
    assert [entry.counts for entry in read_book().entries] == [True]


def test_the_default_delta_is_said_and_stated(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path, text="expect: {rows: 60}\n")
    said = dprepro("release", card, "--epsilon", 1, "--yes", "-o", tmp_path / "out")
    assert "Delta:    0.001 (largest power of ten up to 1 / (10 n)" in said
    assert "order of magnitude of n" in (tmp_path / "out" / "statement.md").read_text(
        encoding="utf-8"
    )


def test_a_release_for_patients_bounds_their_rows(tmp_path: Path, state: Path) -> None:
    rows = rows_of("binary", 60)
    card = card_of(tmp_path, text=UNIT + "unit_title: guest\n" + LIMIT)
    text = (tmp_path / "patients.csv").read_text(encoding="utf-8").splitlines()
    owners = ["patient", *(str(k // 4) for k in range(len(rows)))]
    lines = [f"{line},{owner}" for line, owner in zip(text, owners, strict=True)]
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n")
    assert "one guest, of whose rows up to 2 are used" in release(card)
    out = tmp_path / "out"
    assert "one guest" in (out / "statement.md").read_text(encoding="utf-8")
    privacy = Statement.model_validate_json((out / "statement.json").read_bytes()).privacy
    assert (privacy.unit, privacy.rows_per_unit, privacy.holds) == ("patient", 2, True)
    of_row, of_unit = privacy.spent.of_row or 0, privacy.spent.of_unit or 0
    assert of_unit / 2 < of_row <= (privacy.spent.under_replace_one or 0)
    assert of_unit <= 1 + 1e-6
    assert "agree" in dprepro("verify", out)
    copy = tmp_path / "copy.yaml"
    copy.write_text(
        card.read_text(encoding="utf-8").replace(UNIT, "drop: [patient]\n").replace(LIMIT, "")
    )
    out.rename(tmp_path / "first")
    refused(copy, match=r"for each guest, .* nothing bounds")


def test_the_audits_of_the_method_are_in_the_statement(tmp_path: Path, state: Path) -> None:
    record = {
        "subject": "dp-ebm-plus/answers", "task": "binary", "neighbours": "x", "adjacency": "x",
        "epsilon": 1.0, "delta": 1e-6, "ledger_epsilon": 1.0, "lower_bound": 0.67,
        "confidence": 0.95, "bound": "GDP", "verdict": "within", "trials": 24000,
        "date": "2026-01-02", "dprepro": "9.9",
    }  # fmt: skip
    others = [record | {"task": "regression"}, record | {"subject": "dp-ebm-sound"}]
    others.append(record | {"method_version": 1})  # that method was another one
    (tmp_path / "audit.json").write_text(json.dumps([record, *others]))
    release(card_of(tmp_path), "--audits", tmp_path)
    audits = json.loads((tmp_path / "out" / "statement.json").read_text(encoding="utf-8"))[
        "publisher"
    ]["audits"]
    theirs, *ours = audits
    assert (theirs["subject"], theirs["lower_bound"]) == ("dp-ebm-plus/answers", 0.67)
    assert (theirs["date"], theirs["dprepro"]) == ("2026-01-02", "9.9")
    assert "method_version" not in theirs  # as its record has none
    version = registry.get("dp-ebm-plus").version
    known = [a for a in read_audits(RESULTS) if a.method == "dp-ebm-plus" and a.task == "binary"]
    assert [a["subject"] for a in ours] == [a.subject for a in known]
    assert {a["method_version"] for a in ours} == {version}
    most = max(known, key=lambda a: (a.lower_bound or 0) / a.epsilon)
    page = (tmp_path / "out" / "statement.md").read_text(encoding="utf-8")
    assert f"on record for dp-ebm-plus, version {version}, {most.subject} showed most" in page
    assert f"epsilon {most.lower_bound:.4g} at least, of {most.epsilon:g}" in page
    assert f"by {most.trials:,} fits." in page


def test_two_releases_draw_noise_of_their_own(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path)
    release(card, "-o", tmp_path / "one")
    release(card, "-o", tmp_path / "two")
    one, two = (load_model(tmp_path / name / "model.json") for name in ("one", "two"))
    assert not np.array_equal(one.shape_functions_[0], two.shape_functions_[0])


SAYS_WHO = (
    'deployment: {curators: ["Clinic"], intended_use: "Planning of beds", region: "Exampleland"}\n'
)


def test_a_release_for_the_registry(tmp_path: Path, state: Path) -> None:
    card = card_of(tmp_path, text=SAYS_WHO)
    release(card, "--registry")
    out = card.with_name("out")
    assert {path.name for path in out.iterdir()} == FILES | {"registry.yaml", "README.md"}
    dprepro("verify", out)
    record = out / "registry.yaml"
    record.write_text(record.read_text(encoding="utf-8").replace("Clinic", "Someone"))
    with pytest.raises(AssertionError, match=r"registry\.yaml: not the text"):
        dprepro("verify", out)


def test_a_card_that_does_not_say_who_is_refused_for_the_registry(
    tmp_path: Path, state: Path
) -> None:
    message = refused(card_of(tmp_path), "--registry", match="does not say who releases the model")
    assert "deployment: {curators: [" in message
