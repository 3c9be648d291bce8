from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data.card_parts import BudgetLimit
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT
from dprepro.release.book import Entry, limits_of, read_book, reserve, settle
from dprepro.runtime.errors import DpreproError
from tests.release.ledgers import entry, gaussian_ledger

LIMIT = BudgetLimit(epsilon=2, delta=1e-6)
PATIENTS = gaussian_ledger(1.0, unit="patient", rows=2)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def of_patients(
    card: str = "/a", rows: str = "1", values: str = "v", column: str = "id", **fields: object
) -> Entry:
    tokens = (rows, f"unit values {values}", f"unit column {column}")
    return entry(card, tokens, **{"limit": LIMIT, **fields})


@pytest.mark.parametrize(
    "row_release",
    [entry("/b", ("1",)), entry("/b", ("1",), limit=LIMIT), entry("/a", ("1",), limit=LIMIT)],
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
    reserve(entry("/a", ("1",), limit=LIMIT), gaussian_ledger(1.0))
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
    reserve(entry("/a", ("1",), limit=LIMIT), gaussian_ledger(1.0))
    of_rows = entry("/a", ("1",), limit=LIMIT)
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
        reserve(entry("/b", ("2",), limit=LIMIT), gaussian_ledger(0.1, adjacency=adjacency))
    with pytest.raises(DpreproError) as caught:
        reserve(entry("/b", ("2",), limit=LIMIT), gaussian_ledger(2.0))
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
    given = [("/a", LIMIT, "cancelled"), ("/a", LIMIT, "released"), ("/b", LIMIT, "released"),
             ("/a", wide, "released")]  # fmt: skip
    for card, limit, status in given:
        made = entry(card, ("1",), limit=limit)
        reserve(made, gaussian_ledger(0.1))
        settle(made.name, status)  # type: ignore[arg-type]
    found = limits_of(read_book().entries)
    assert [(e.card, e.limit) for e in found] == [("/b", LIMIT), ("/a", wide)]


def test_a_limit_whose_delta_is_too_small_says_so() -> None:
    with pytest.raises(DpreproError, match=r"at delta 0 nothing bounds .* holds at this delta"):
        reserve(of_patients(limit=BudgetLimit(epsilon=2)), PATIENTS)
