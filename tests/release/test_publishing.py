from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data.card import load_card
from dprepro.errors import DpreproError
from dprepro.methods import registry
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.release.book import Entry, reserve, settle
from dprepro.release.publishing import of_the_book, publisher_of
from dprepro.release.statement import Limit, Together
from tests.private_table import rows_of, write_table
from tests.release.ledgers import entry, gaussian_ledger


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path))


def reserved(epsilon: float = 1.0, **fields: object) -> Entry:
    made = entry(**fields)  # type: ignore[arg-type]
    reserve(made, gaussian_ledger(epsilon))
    return made


def together(made: Entry) -> Together:
    found = of_the_book(made, "row")["together"]
    assert isinstance(found, Together)
    return found


def test_earlier_releases_of_the_rows_are_counted_and_composed() -> None:
    first = reserved()
    reserved(card="/other", rows=("2",))
    settle(reserved().name, "cancelled")
    second = reserved()
    reserved()  # meanwhile, by another process
    assert of_the_book(first, "row")["earlier_releases"] == 0
    assert of_the_book(second, "row")["earlier_releases"] == 1
    assert together(first).epsilon == pytest.approx(1.0, abs=1e-3)
    assert (together(second).delta, together(second).relation) == (2e-6, "add/remove-one")
    assert 1.2 < (together(second).epsilon or 0) < 2
    other = entry()
    reserve(other, gaussian_ledger(adjacency=ZERO_OUT))
    assert together(other).relation == "replace-one"


def test_where_nothing_bounds_them_together_that_is_said() -> None:
    reserved()
    assert of_the_book(reserved(), "patient")["together"] == Together(
        epsilon=None, delta=2e-6, unit="patient", relation="add/remove-one"
    )


def test_a_release_that_the_book_lost_is_refused() -> None:
    reserved()
    with pytest.raises(DpreproError, match="does not have this release"):
        of_the_book(entry(), "row")


def test_the_limit_of_the_card_and_its_facts_are_said(tmp_path: Path) -> None:
    text = "budget_limit: {epsilon: 2, delta: 1e-6}\nexpect: {rows: 20}\n"
    table = write_table(tmp_path, "binary", rows_of("binary", 20), text)
    found = publisher_of(
        load_card(table.with_name("patients.yaml")), registry.get("dp-ebm-plus"),
        date="2026-11-22", clips=False, delta_by_rule=True, earlier_releases=0,
        together=Together(epsilon=1, delta=1e-6, unit="row", relation="zero-out"),
    )  # fmt: skip
    assert found.limit == Limit(epsilon=2, delta=1e-6)
    assert [text.partition(",")[0] for text in found.compared] == ["the number of rows in the file"]
