"""The ledger of a method of one's own is its author's word, and is called so wherever it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dprepro.audit import audit, find_case
from dprepro.audit.result import code_of
from dprepro.cli import app
from dprepro.methods import own, registry
from dprepro.methods.own import NOT_OURS, REPEATS
from dprepro.privacy.guarantee_status import AuditVerdict, AuthorsWord
from dprepro.privacy.ledger import Ledger, tracking_noise, tracking_sources
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.results.folder import read_results
from dprepro.results.runs import runs_of
from dprepro.runtime.errors import DpreproError
from tests.in_process import in_process
from tests.methods import authors
from tests.report.page.pages import whole

__all__ = ["in_process"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / "methods"))
    monkeypatch.chdir(tmp_path)
    registry.all_methods.cache_clear()
    yield tmp_path
    registry.all_methods.cache_clear()


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return " ".join(done.output.split())


def ledger(folder: Path, kind: str, seed: str = "null") -> str:
    config = authors.write(folder, kind, seed=seed)
    return run("ledger", config, "--method", f"my-{kind}", "--epsilon", 1)


def test_noise_of_a_library_is_not_called_exact(folder: Path) -> None:
    shown = ledger(folder, "numpy")
    assert "exact up to" not in shown
    assert f"a count: {NOT_OURS}" in shown
    assert "The stated guarantee holds, says its author. The method is one's own (code" in shown
    assert "its ledger is its author's word, and nobody has checked it; it is not audited" in shown
    found = json.loads(run("ledger", folder / "mine.yaml", "--method", "my-numpy", "--json"))
    assert found[0]["code"] == registry.get("my-numpy").code


def test_noise_of_our_samplers_is_called_exact_and_the_rest_the_authors_word(folder: Path) -> None:
    shown = ledger(folder, "ours")
    assert "Samplers: exact up to a distance of 2^-400" in shown
    assert NOT_OURS not in shown
    assert "The stated guarantee holds, says its author" in shown


@pytest.mark.parametrize("kind", ["none", "fixed", "undrawn"])
def test_fits_that_repeat_themselves_are_named(folder: Path, kind: str) -> None:
    """Without noise, with a seed of its own, and with an entry that nothing is drawn for."""
    shown = ledger(folder, kind)
    assert f"Read, but not covered by epsilon: {REPEATS}" in shown
    assert "The stated guarantee does not hold: 1 read not covered by epsilon. The method" in shown
    assert "exact up to" not in shown


def test_a_seed_that_was_given_is_named(folder: Path) -> None:
    for kind in ("numpy", "ours"):
        assert (
            ledger(folder, kind, seed="1").count("fixed seed: repeatable, never for release") == 1
        )


@pytest.mark.parametrize("kind", ["fake", "kinder"])
@pytest.mark.usefixtures("in_process")
def test_what_is_no_ledger_of_ours_is_none(folder: Path, kind: str) -> None:
    config = authors.write(folder, kind)
    assert f"my-{kind}: unverified: it keeps no ledger" in run("ledger", config)
    run("run", config, "--results", folder / "results", "--jobs", 1)
    (cell,) = (c for c in read_results(folder / "results").cells if c.task.label == f"my-{kind}")
    assert (cell.is_unverified, cell.word, cell.may_be_best) == (True, None, False)


def rows(folder: Path) -> dict[str, dict[str, object]]:
    found = json.loads(run("table", "--metric", "auc", "--results", folder / "results",
                           "--format", "json"))  # fmt: skip
    return {row["method"]: row for row in found}


@pytest.mark.usefixtures("in_process")
def test_tables_mark_it_until_that_very_code_is_audited_and_a_refuted_one_is_never_best(
    folder: Path,
) -> None:
    config, results = authors.write(folder, "numpy", "none", "smaller"), folder / "results"
    run("run", config, "--results", results, "--jobs", 1)
    before = {name: row["authors_word"] for name, row in rows(folder).items()}
    mine = dict.fromkeys(("my-numpy", "my-none", "my-smaller"), "not audited")
    assert before == {**mine, "dp-logistic-fair": None}
    marks = {"markdown": (r"\[†\] |", 3), "latex": ("what it spends is its author's word", 1),
             "csv": ("not audited", 3)}  # fmt: skip
    for form, (mark, times) in marks.items():
        shown = run("table", "--metric", "auc", "--results", results, "--format", form)
        assert shown.count(mark) == times
    assert "[†] alone: not audited. `dprepro audit METHOD" in run("table", "--metric", "auc")
    run("report", "--results", results, "--output", folder / "page.html")
    page = unescape(whole((folder / "page.html").read_text(encoding="utf-8")))
    assert "Its author's word, not audited" in page
    assert "its author's word: a method of one's own" in page
    assert [s.is_authors_word for s in runs_of(read_results(results)).spendings] == [True] * 3 + [
        False
    ]
    compared = run(
        "compare", "my-none", "dp-logistic-fair", "--results", results, "--metric", "auc"
    )
    assert (
        "my-none is a method of one's own, its epsilon its author's word, not audited" in compared
    )

    audited = ("audit", *mine, "--seed", 1, "--trials", 1500, "--output", results / "audit.json")
    run(*audited, code=1)
    after = rows(folder)
    words = {name: row["authors_word"] for name, row in after.items()}
    assert words == {
        "my-numpy": "audited", "my-none": "refuted", "my-smaller": "refuted",
        "dp-logistic-fair": None,
    }  # fmt: skip
    best = {name for name, row in after.items() if row["is_best"]}
    assert best
    assert best <= {"my-numpy", "dp-logistic-fair"}
    shown = run("table", "--metric", "auc", "--results", results, "--format", "markdown")
    assert r"\[† refuted\] |" in shown
    assert r"\[† audited\] |" in shown
    assert "an audit of this code refutes it" in run("ledger", config, "--method", "my-smaller")

    # Another code was not audited: neither good nor bad news is about it.
    source = folder / "methods" / "mine.py"
    source.write_text(source.read_text(encoding="utf-8") + "# changed\n")
    registry.all_methods.cache_clear()
    assert "it is not audited" in run("ledger", config, "--method", "my-smaller")


def test_an_audit_of_a_mechanism_is_none_of_a_method_that_has_its_name(folder: Path) -> None:
    authors.write(folder, "numpy")
    source = folder / "methods" / "mine.py"
    source.write_text(
        authors.SOURCE.replace('"my-" + kind', '{"numpy": "gaussian"}.get(kind, kind)')
    )
    mechanism, method = find_case("gaussian"), find_case("gaussian", "binary")
    assert (mechanism.task, method.task) == (None, "binary")
    assert code_of(mechanism) == {}
    assert code_of(method) == {"code": registry.get("gaussian").code}


def test_an_audit_goes_on_with_no_runs_of_another_code(folder: Path) -> None:
    """Those that a stopped audit has left."""
    authors.write(folder, "numpy")
    audit(find_case("my-numpy"), 40, seed=1, keep_in=folder / "runs.jsonl")
    source = folder / "methods" / "mine.py"
    source.write_text(f"{source.read_text()}# changed\n")
    registry.all_methods.cache_clear()
    with pytest.raises(DpreproError, match="delete the file to start anew"):
        audit(find_case("my-numpy"), 40, seed=1, keep_in=folder / "runs.jsonl")


def test_methods_says_whose_word_it_is(folder: Path) -> None:
    authors.write(folder, "numpy")
    shown = run("methods", "my-", "--verbose")
    assert (
        "guarantee epsilon (says its author), neighbours zero-out, noise: exact (says its" in shown
    )
    assert shown.count("says its author") == 2 * 8


def test_the_code_is_that_of_the_package_and_of_helpers_and_not_of_tests(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    files = {name: package / name for name in ("__init__.py", "curator.py", "test_mine.py")}
    helper = tmp_path / "helper.py"
    for file in (*files.values(), helper):
        file.write_text("METHODS = []\n")

    def code(*helpers: Path) -> str:
        return own.code_of(files["__init__.py"], helpers)

    first = code(helper)
    assert first == code(helper) != code()
    files["test_mine.py"].write_text("changed = 1\n")
    assert code(helper) == first
    for file in (files["curator.py"], helper):
        kept = file.read_text(encoding="utf-8")
        file.write_text(f"{kept}changed = 1\n")
        assert code(helper) != first
        file.write_text(kept)
    (package / "more.py").write_text("")
    assert code(helper) != first


def test_our_methods_have_no_code_and_their_ledgers_say_nothing_of_authors() -> None:
    assert {method.code for method in registry.all_methods().values()} == {""}
    assert "code" not in Ledger(1.0, 1e-6, "zero-out").summary()


def test_watching_can_be_nested_and_knows_what_was_drawn_for_which_ledger() -> None:
    mine, other = (Ledger(1.0, 0.0, "zero-out") for _ in range(2))
    with tracking_noise() as may_have_drawn, tracking_sources() as sources:
        source = NoiseSource(mine, None)
        source.enter_laplace(releases="a count", epsilon=1.0, sensitivity=1.0)
        assert [s.drawn_for(mine) for s in sources] == [[]]
        assert not may_have_drawn()
        source.add_laplace(np.zeros((), np.int64), 1.0)
    assert source.drawn_for(mine) == mine.entries
    assert source.drawn_for(other) == []
    assert may_have_drawn()


def test_the_worst_news_counts() -> None:
    within, exceeded = AuditVerdict.WITHIN, AuditVerdict.EXCEEDED
    undecided = [AuditVerdict.UNDECIDED, AuditVerdict.FEW_RUNS]
    assert AuthorsWord.after([]) is AuthorsWord.after(undecided) is AuthorsWord.NOT_AUDITED
    assert AuthorsWord.after([*undecided, within]) is AuthorsWord.AUDITED
    assert AuthorsWord.after([within, exceeded]) is AuthorsWord.REFUTED
    assert AuthorsWord.worst([None, AuthorsWord.AUDITED, AuthorsWord.NOT_AUDITED]) is (
        AuthorsWord.NOT_AUDITED
    )
    assert AuthorsWord.worst([None]) is None
