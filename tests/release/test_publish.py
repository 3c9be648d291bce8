"""A release is reserved before its noise and settled after, and says what the book has."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from dprepro.data.card import load_card
from dprepro.methods import registry
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.release.budget_book import Entry, Total, read_book, reserve, settle
from dprepro.release.publish import fit_reserved, of_the_book, publisher_of
from dprepro.release.statement import Limit, Together
from dprepro.runtime.errors import DpreproError
from tests.private_table import rows_of, write_table
from tests.release.ledgers import entry, gaussian_ledger


class Model:
    def __init__(self, ledger: Ledger | None) -> None:
        self.ledger_ = ledger


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def status() -> str:
    (found,) = read_book().entries
    return found.status


def fit(model: Any = None, fails: BaseException | None = None, draws: bool = False) -> Any:
    def run() -> Any:
        assert status() == "reserved"  # on the disk before any noise
        if draws:
            NoiseSource(gaussian_ledger(), None).sampler.permutation(3)
        else:
            NoiseSource(gaussian_ledger(), None)
        if fails is not None:
            raise fails
        return model

    return run


def nothing_is_kept(model: Any) -> None:
    pytest.fail("the model is not as planned")


def test_a_fit_is_reserved_before_its_noise_and_leaves_its_own_ledger() -> None:
    model = Model(gaussian_ledger(0.9))
    kept: list[Any] = []
    given = entry(), gaussian_ledger(1.0), fit(model, draws=True)
    found, total = fit_reserved(*given, kept.append)
    assert found is model
    assert kept == [model]
    assert total.budget.epsilon == pytest.approx(1.0, abs=1e-3)  # as planned
    assert status() == "reserved"
    assert read_book().entries[0].spent.epsilon == 0.9


@pytest.mark.parametrize("error", [DpreproError("no"), KeyboardInterrupt(), MemoryError()])
def test_a_fit_that_fails_before_its_noise_is_cancelled(error: BaseException) -> None:
    with pytest.raises(type(error)):
        fit_reserved(entry(), gaussian_ledger(), fit(fails=error), nothing_is_kept)
    assert status() == "cancelled"


@pytest.mark.parametrize("error", [DpreproError("no"), KeyboardInterrupt(), MemoryError()])
def test_a_fit_that_fails_after_its_noise_counts(error: BaseException) -> None:
    with pytest.raises(type(error)):
        fit_reserved(entry(), gaussian_ledger(), fit(fails=error, draws=True), nothing_is_kept)
    assert status() == "reserved"


def test_a_fit_that_fails_counts_where_others_than_our_samplers_draw_its_noise() -> None:
    """Of noise that a method of one's own takes from elsewhere nobody sees when it is drawn."""
    planned = gaussian_ledger()
    planned.code = "abc"
    planned.note_floating_point("a sum: noise of a library")
    with pytest.raises(DpreproError):
        fit_reserved(entry(), planned, fit(fails=DpreproError("no")), nothing_is_kept)
    assert status() == "reserved"


def test_a_fit_of_ones_own_with_other_noise_than_was_planned_is_not_written() -> None:
    ledger = gaussian_ledger(1.0)
    ledger.code = "abc"
    ledger.note_floating_point("a sum: noise of a library")
    with pytest.raises(DpreproError, match="lists noise that was not planned"):
        fit_reserved(entry(), gaussian_ledger(1.0), fit(Model(ledger), draws=True), nothing_is_kept)
    assert status() == "reserved"


def test_a_fit_that_spends_more_than_planned_counts_as_what_it_spent() -> None:
    spends_more = fit(Model(gaussian_ledger(2.0)), draws=True)
    with pytest.raises(DpreproError, match="was planned"):
        fit_reserved(entry(), gaussian_ledger(1.0), spends_more, nothing_is_kept)
    assert read_book().entries[0].spent.epsilon == 2.0
    assert read_book().entries[0].counts


def test_a_fit_without_a_ledger_is_not_released() -> None:
    with pytest.raises(DpreproError, match="left no ledger"):
        fit_reserved(entry(), gaussian_ledger(), fit(Model(None), draws=True), nothing_is_kept)
    assert status() == "reserved"


def test_a_process_that_dies_in_its_fit_counts() -> None:
    child = os.fork()
    if child == 0:
        try:
            fit_reserved(entry(), gaussian_ledger(), lambda: os._exit(9), nothing_is_kept)
        finally:
            os._exit(1)
    _, ended = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended) == 9  # in its fit, not before
    assert status() == "reserved"
    assert read_book().entries[0].counts


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
