"""The budget book: accounts, what releases spend together, and limits."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path

import pytest

from dprepro.data.card_parts import BudgetLimit
from dprepro.data.register import register_path
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT
from dprepro.release import budget_book
from dprepro.release.budget_book import (
    Entry,
    accept_new_register,
    book_path,
    limits_of,
    look_ahead,
    read_book,
    reserve,
    settle,
    total_spent,
)
from dprepro.runtime.errors import DpreproError
from tests.release.ledgers import entry, gaussian_ledger

LIMIT = BudgetLimit(epsilon=1.6, delta=1e-6)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def test_releases_of_the_same_rows_or_card_are_one_account() -> None:
    for card, rows in [("/a", ["1"]), ("/b", ["1", "2"]), ("/c", ["2"]), ("/d", ["9"])]:
        reserve(entry(card, tuple(rows)), gaussian_ledger())
    found = read_book()
    assert [e.card for e in found.of("/a", ["unknown"])] == ["/a", "/b", "/c"]
    assert [e.card for e in found.of("/new", ["2"])] == ["/a", "/b", "/c"]
    assert found.of("/new", ["unknown"]) == []
    assert [len(account) for account in found.accounts()] == [3, 1]


def test_a_limit_is_kept_over_all_releases_and_nothing_is_entered_beyond_it() -> None:
    first = reserve(entry(limit=LIMIT), gaussian_ledger())
    assert first.budget.epsilon == pytest.approx(1.0, abs=1e-3)
    second = reserve(entry(limit=LIMIT), gaussian_ledger())
    assert 1.3 < second.budget.epsilon < 1.6
    before = book_path().read_bytes()
    for ask in (look_ahead, reserve):
        with pytest.raises(DpreproError, match=r"allows \(epsilon 1\.6, delta 1e-06\) in all"):
            ask(entry(limit=LIMIT), gaussian_ledger())
    assert book_path().read_bytes() == before


def test_a_new_name_or_card_for_the_same_rows_gets_no_new_budget() -> None:
    reserve(entry("/a", limit=LIMIT), gaussian_ledger(1.5))
    for card, limit in [("/b", None), ("/b", BudgetLimit(epsilon=99, delta=1e-6))]:
        with pytest.raises(DpreproError, match="beyond the budget: the card of patients allows"):
            reserve(entry(card, limit=limit, dataset="other"), gaussian_ledger())
    reserve(entry("/b", ("other rows",)), gaussian_ledger())


def test_the_owner_can_raise_the_limit_on_the_card_itself() -> None:
    reserve(entry("/a", limit=LIMIT), gaussian_ledger(1.5))
    reserve(entry("/a", limit=BudgetLimit(epsilon=3, delta=1e-6)), gaussian_ledger())
    assert len(read_book().entries) == 2


def test_what_failed_before_its_noise_does_not_count_and_what_was_killed_does() -> None:
    names = []
    for _ in range(2):
        made = entry(limit=LIMIT)
        reserve(made, gaussian_ledger(1.5))
        names.append(made.name)
        settle(made.name, "cancelled")
    assert total_spent(read_book().entries, "row") is None
    reserve(entry(limit=LIMIT), gaussian_ledger(1.5))  # and then the power failed
    with pytest.raises(DpreproError, match="beyond the budget"):
        reserve(entry(limit=LIMIT), gaussian_ledger(1.5))


def test_for_patients_nothing_bounds_what_a_release_for_rows_spent() -> None:
    reserve(entry(limit=LIMIT), gaussian_ledger())
    with pytest.raises(DpreproError, match=r"for each patient, and .* nothing bounds"):
        reserve(entry(limit=LIMIT), gaussian_ledger(unit="patient", rows=2))


def test_a_total_is_for_one_unit_at_the_delta_of_its_limit() -> None:
    patients = gaussian_ledger(unit="patient", rows=2)
    reserve(entry("/a", ("1", "unit values v")), patients)
    reserve(entry("/b", limit=BudgetLimit(epsilon=9, delta=1e-5)), gaussian_ledger())
    rows = total_spent(read_book().entries, "row")
    of_patients = total_spent(read_book().entries, "patient")
    assert rows is not None
    assert of_patients is not None
    assert (rows.budget.delta, rows.budget.is_finite) == (1e-5, True)
    assert of_patients.budget == (math.inf, 2e-6)
    reserve(entry("/d", ("2", "unit values v")), patients)
    reserve(entry("/d", ("2", "unit values w")), patients)
    total = total_spent(read_book().of("/d", []), "patient")
    assert total is not None
    assert not total.budget.is_finite  # patients of other values


def test_two_releases_at_once_cannot_both_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    look, together = budget_book._read, threading.Barrier(2)

    def slowly(path: Path) -> budget_book.Book:
        found = look(path)
        time.sleep(0.1)  # without a lock the other one reads the same book meanwhile
        return found

    monkeypatch.setattr(budget_book, "_read", slowly)
    outcomes: list[str] = []

    def release() -> None:
        together.wait()
        try:
            reserve(entry(limit=LIMIT), gaussian_ledger(1.5))
            outcomes.append("entered")
        except DpreproError:
            outcomes.append("refused")

    threads = [threading.Thread(target=release) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["entered", "refused"]
    assert len(read_book().entries) == 1


def test_a_reservation_is_on_the_disk_when_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def watched(number: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        sync(number)

    monkeypatch.setattr(os, "fsync", watched)
    reserve(entry(), gaussian_ledger())
    assert any("budget-book.json" in path for path in synced)
    assert str(book_path().parent) in synced  # the name of the file, too
    assert book_path().stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 2, "entries": []}'])
def test_a_damaged_book_releases_nothing(text: str) -> None:
    book_path().parent.mkdir()
    book_path().write_text(text)
    with pytest.raises(DpreproError, match="is damaged, so nobody can say what was spent"):
        reserve(entry(), gaussian_ledger())
    assert book_path().read_text(encoding="utf-8") == text


def test_a_book_of_another_version_releases_nothing() -> None:
    book_path().parent.mkdir()
    book_path().write_text('{"version": 1, "entries": []}')
    with pytest.raises(DpreproError, match="has version 1, and this dprepro reads version 4"):
        reserve(entry(), gaussian_ledger())


def test_without_its_register_the_book_releases_nothing() -> None:
    reserve(entry(limit=LIMIT), gaussian_ledger(1.5))
    kept = register_path().read_bytes()
    with pytest.raises(DpreproError, match="is not lost"):
        accept_new_register()
    register_path().unlink()
    for ask in (look_ahead, reserve):
        with pytest.raises(DpreproError, match="not the one that the budget book was made with"):
            ask(entry("/b", ("new token",)), gaussian_ledger())
    with pytest.raises(DpreproError, match="--register-lost"):
        read_book()
    register_path().write_bytes(kept)
    assert len(read_book().entries) == 1


def test_after_its_register_is_lost_all_releases_count_against_every_dataset() -> None:
    reserve(entry(limit=LIMIT), gaussian_ledger(1.5))
    reserve(entry("/b", ("2",), dataset="clients"), gaussian_ledger(0.1))
    register_path().unlink()
    assert accept_new_register() == 2
    with pytest.raises(DpreproError, match="beyond the budget: the card of patients"):
        reserve(entry("/c", ("new token",)), gaussian_ledger())
    reserve(entry("/c", ("new token",)), gaussian_ledger(0.01))
    reserve(entry("/d", ("another",)), gaussian_ledger(0.01))
    found = read_book()
    assert [e.card for e in found.of("/d", ["another"])] == ["/a/card.yaml", "/b", "/d"]


def test_what_the_book_could_not_read_again_is_not_entered() -> None:
    ledger = gaussian_ledger()
    ledger.entries *= 65  # a model file has at most 64
    with pytest.raises(DpreproError, match="cannot keep what is to be spent"):
        reserve(entry(), ledger)
    assert read_book().entries == []


def test_an_entry_with_a_ledger_that_is_none_is_damage() -> None:
    reserve(entry(), gaussian_ledger())
    book_path().write_text(
        book_path().read_text(encoding="utf-8").replace('"gaussian"', '"nothing"')
    )
    with pytest.raises(DpreproError, match="is damaged"):
        read_book()


def test_without_a_place_for_the_book_nothing_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "file" / "state"))
    with pytest.raises(DpreproError, match="cannot use the budget book"):
        reserve(entry(), gaussian_ledger())


LIMIT_OF_PATIENTS = BudgetLimit(epsilon=2, delta=1e-6)
PATIENTS = gaussian_ledger(1.0, unit="patient", rows=2)


def of_patients(
    card: str = "/a", rows: str = "1", values: str = "v", column: str = "id", **fields: object
) -> Entry:
    tokens = (rows, f"unit values {values}", f"unit column {column}")
    return entry(card, tokens, **{"limit": LIMIT_OF_PATIENTS, **fields})


@pytest.mark.parametrize(
    "row_release",
    [
        entry("/b", ("1",)),
        entry("/b", ("1",), limit=LIMIT_OF_PATIENTS),
        entry("/a", ("1",), limit=LIMIT_OF_PATIENTS),
    ],
    ids=["no limit", "limit for rows", "same card, now for rows"],
)
def test_a_limit_for_patients_refuses_a_release_for_rows(row_release: Entry) -> None:
    reserve(of_patients(), PATIENTS)
    with pytest.raises(DpreproError, match=r"for each patient, .*only for each patient"):
        reserve(row_release, gaussian_ledger(0.01))
    assert len(read_book().entries) == 1


def test_an_owner_who_takes_back_all_limits_of_a_card_may_release_for_rows() -> None:
    reserve(of_patients(), PATIENTS)
    reserve(entry("/a", ("1",)), gaussian_ledger(0.01))
    assert limits_of(read_book().entries) == []


def test_a_limit_for_rows_bounds_releases_for_patients() -> None:
    reserve(entry("/a", ("1",), limit=LIMIT_OF_PATIENTS), gaussian_ledger(1.0))
    reserve(of_patients("/b", limit=None), PATIENTS)
    with pytest.raises(DpreproError, match=r"for each row, .*would be spent"):
        reserve(of_patients("/b", limit=None), gaussian_ledger(6.0, unit="patient", rows=2))


def test_units_of_one_name_with_other_values_are_other_units() -> None:
    reserve(of_patients(), PATIENTS)
    with pytest.raises(DpreproError, match="nothing bounds"):
        reserve(of_patients("/b", values="w", column="visit"), PATIENTS)
    with pytest.raises(DpreproError, match="nothing bounds"):  # the values decide
        reserve(of_patients("/b", values="w", column="id"), PATIENTS)
    reserve(of_patients("/b", column="renamed"), PATIENTS)


def test_units_of_a_corrected_file_are_the_same_if_they_are_of_the_same_column() -> None:
    reserve(of_patients(), PATIENTS)
    with pytest.raises(DpreproError, match="nothing bounds"):
        reserve(of_patients(rows="2", values="w", column="visit"), PATIENTS)
    total = reserve(of_patients(rows="2", values="w"), PATIENTS)
    assert 1 < total.budget.epsilon < 2


def test_other_neighbours_than_before_are_named_where_the_budget_does_not_suffice() -> None:
    reserve(entry("/a", ("1",), limit=LIMIT_OF_PATIENTS), gaussian_ledger(1.0))
    of_rows = entry("/a", ("1",), limit=LIMIT_OF_PATIENTS)
    with pytest.raises(DpreproError) as caught:
        reserve(of_rows, gaussian_ledger(1.0, adjacency=ZERO_OUT))
    assert (
        "would be spent (replace-one): earlier releases have add/remove-one neighbours and this "
        "one zero-out, so all are counted under replace-one, which costs more" in str(caught.value)
    )
    assert "smaller --epsilon, or a method with add/remove-one neighbours" in str(caught.value)
    with pytest.raises(DpreproError) as caught:
        reserve(of_rows, gaussian_ledger(2.0))
    assert "neighbours" not in str(caught.value)
    for adjacency in (ADD_REMOVE, ZERO_OUT):  # then no method avoids it any more
        reserve(
            entry("/b", ("2",), limit=LIMIT_OF_PATIENTS), gaussian_ledger(0.1, adjacency=adjacency)
        )
    with pytest.raises(DpreproError) as caught:
        reserve(entry("/b", ("2",), limit=LIMIT_OF_PATIENTS), gaussian_ledger(2.0))
    assert "which costs more" in str(caught.value)
    assert "or a method with" not in str(caught.value)


def test_a_limit_may_be_reached_and_a_refusal_says_what_exceeds_it() -> None:
    limit = BudgetLimit(epsilon=1, delta=1e-6)
    with pytest.raises(DpreproError, match=r"and this release alone, epsilon 1\.5 would be spent"):
        reserve(entry("/a", ("1",), limit=limit), gaussian_ledger(1.5))
    reserve(entry("/a", ("1",), limit=limit), gaussian_ledger(1.0))
    with pytest.raises(DpreproError, match="and with all earlier releases of these rows, epsilon"):
        reserve(entry("/a", ("1",), limit=limit), gaussian_ledger(0.1))


def test_a_cancelled_release_sets_no_limit_and_the_latest_of_a_card_comes_last() -> None:
    wide = BudgetLimit(epsilon=9, delta=1e-6)
    given = [
        ("/a", LIMIT_OF_PATIENTS, "cancelled"),
        ("/a", LIMIT_OF_PATIENTS, "released"),
        ("/b", LIMIT_OF_PATIENTS, "released"),
        ("/a", wide, "released"),
    ]
    for card, limit, status in given:
        made = entry(card, ("1",), limit=limit)
        reserve(made, gaussian_ledger(0.1))
        settle(made.name, status)  # type: ignore[arg-type]
    found = limits_of(read_book().entries)
    assert [(e.card, e.limit) for e in found] == [("/b", LIMIT_OF_PATIENTS), ("/a", wide)]


def test_a_limit_whose_delta_is_too_small_says_so() -> None:
    with pytest.raises(DpreproError, match=r"at delta 0 nothing bounds .* holds at this delta"):
        reserve(of_patients(limit=BudgetLimit(epsilon=2)), PATIENTS)
