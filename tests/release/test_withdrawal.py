"""A release that is taken back: its budget stays spent, and all who look are told."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

import pytest

from dprepro.data.card_parts import BudgetLimit
from dprepro.release.budget_book import book_path, read_book, reserve, settle, total_spent
from dprepro.release.withdrawal import FILE, found_withdrawn, withdraw_folder
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.release.ledgers import entry, gaussian_ledger


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a release that the book has."""
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))
    return released(tmp_path / "out")


def released(folder: Path, limit: float = 1.6) -> Path:
    folder.mkdir()
    (folder / "model.json").write_text(folder.name)
    made = entry(limit=BudgetLimit(epsilon=limit, delta=1e-6))
    reserve(made, gaussian_ledger())
    sha256 = hashlib.sha256(folder.name.encode()).hexdigest()
    settle(made.name, "released", folder=str(folder), model_sha256=sha256)
    return folder


def test_a_withdrawn_release_stays_spent_and_is_told_by_book_and_folder(out: Path) -> None:
    other = released(out.with_name("other"))
    assert found_withdrawn(out) is None
    said = dprepro("withdraw", out, "--reason", "a ward\nwas missing")
    assert "stays spent: (epsilon 1, delta 1e-06), for each row" in " ".join(said.split())
    total = total_spent(read_book().entries, "row")
    assert total is not None
    assert 1.3 < total.budget.epsilon < 1.6  # that of both
    with pytest.raises(DpreproError, match="beyond the budget"):
        reserve(entry(limit=BudgetLimit(epsilon=1.6, delta=1e-6)), gaussian_ledger())
    listed = " ".join(dprepro("budget").split())
    assert listed.count("and its budget stays spent: a ward was missing") == 1
    (out / FILE).rename(out / "gone")  # the book knows it, too
    found = found_withdrawn(out)
    book_path().unlink()  # elsewhere the folder says it
    (out / "gone").rename(out / FILE)
    assert found == found_withdrawn(out)
    assert found is not None
    assert found.reason == "a ward was missing"
    assert found_withdrawn(other) is None


def test_a_release_is_withdrawn_once_whoever_comes_first(out: Path) -> None:
    together, outcomes = threading.Barrier(2), list[str]()

    def withdraw(reason: str) -> None:
        together.wait()
        try:
            outcomes.append(withdraw_folder(out, reason)[0].withdrawn.reason)  # type: ignore[union-attr]
        except DpreproError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=withdraw, args=(reason,)) for reason in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (kept,) = [e.withdrawn for e in read_book().entries if e.withdrawn]
    assert kept.reason in outcomes
    assert sum("already: " + kept.reason in text for text in outcomes) == 1
    assert found_withdrawn(out) == kept


def test_a_folder_that_is_gone_is_known_by_its_path(out: Path) -> None:
    (out / "model.json").unlink()
    out.rmdir()
    assert "is gone, so the book alone says so" in dprepro("withdraw", out, "--reason", "an error")
    assert [e.withdrawn is not None for e in read_book().entries] == [True]


@pytest.mark.parametrize("reason", ["", " \n", "x" * 501])
def test_a_reason_is_a_sentence(out: Path, reason: str) -> None:
    with pytest.raises(DpreproError, match=r"--reason has \d+ characters, and 1 to 500 are"):
        withdraw_folder(out, reason)
    assert read_book().entries[0].withdrawn is None


def test_what_the_book_does_not_have_is_not_withdrawn(out: Path) -> None:
    made = entry()
    reserve(made, gaussian_ledger(0.1))  # not finished
    (out / "model.json").write_text("changed")
    before = book_path().read_bytes()
    for folder in (out, out.with_name("nowhere")):
        with pytest.raises(DpreproError, match=r"no finished release of .*Nothing is changed"):
            withdraw_folder(folder, "an error")
    assert book_path().read_bytes() == before
    assert not (out / FILE).exists()


def test_a_mark_that_was_tampered_with_is_no_mark(out: Path) -> None:
    withdraw_folder(out, "an error")
    mark = json.loads((out / FILE).read_text(encoding="utf-8"))
    for changed in ({"model_sha256": "0" * 64}, {"withdrawal": "never"}):
        (out / FILE).write_text(json.dumps({**mark, **changed}))
        with pytest.raises(DpreproError, match=r"withdrawn\.json(: not what| is about another)"):
            found_withdrawn(out)
    (out / FILE).unlink()
    book_path().write_text(book_path().read_text(encoding="utf-8").replace('"released"', '"sold"'))
    with pytest.raises(DpreproError, match="is damaged"):
        found_withdrawn(out)
