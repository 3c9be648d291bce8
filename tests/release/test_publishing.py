from __future__ import annotations

import math
from pathlib import Path

import pytest

from dprepro.data.card import load_card
from dprepro.methods import registry
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.release.book import Entry, Total, reserve, settle
from dprepro.release.publish import of_the_book, publisher_of
from dprepro.release.statement import Limit, Together
from dprepro.runtime.errors import DpreproError
from tests.private_table import rows_of, write_table
from tests.release.ledgers import entry, gaussian_ledger


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path))


def reserved(**fields: object) -> tuple[Entry, Total]:
    made = entry(**fields)  # type: ignore[arg-type]
    return made, reserve(made, gaussian_ledger())


def test_earlier_releases_of_the_rows_are_counted() -> None:
    first = reserved()
    reserved(card="/other", rows=("2",))
    settle(reserved()[0].name, "cancelled")
    second = reserved()
    reserved()  # meanwhile, by another process
    assert of_the_book(*first)["earlier_releases"] == 0
    assert of_the_book(*second)["earlier_releases"] == 1
    alone, both = (of_the_book(*made)["together"] for made in (first, second))
    assert isinstance(alone, Together)
    assert isinstance(both, Together)
    assert alone.epsilon == pytest.approx(1.0, abs=1e-3)
    assert (both.unit, both.delta, both.relation) == ("row", 2e-6, "add/remove-one")
    assert 1.2 < (both.epsilon or 0) < 2


def test_where_nothing_bounds_them_together_that_is_said() -> None:
    made, _ = reserved()
    unbounded = Total(PrivacyBudget(math.inf, 1e-6), ZERO_OUT, "patient", False)
    assert of_the_book(made, unbounded)["together"] == Together(
        epsilon=None, delta=1e-6, unit="patient", relation="zero-out"
    )


def test_a_release_that_the_book_lost_is_refused() -> None:
    _, total = reserved()
    with pytest.raises(DpreproError, match="does not have this release"):
        of_the_book(entry(), total)


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
