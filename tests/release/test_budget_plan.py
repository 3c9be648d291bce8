"""A plan of releases to come says what the book then accepts, to the release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.data.card_parts import BudgetLimit
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.ledger_entry import LedgerEntry
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.release.budget_book import read_book, reserve
from dprepro.release.budget_plan import MOST, fitting
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import rows_of, write_table
from tests.release.ledgers import entry, gaussian_ledger


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def laplace_ledger(epsilon: float) -> Ledger:
    answer = LedgerEntry("laplace", "a sum", 1.0, "L1", 1 / epsilon, 1, PrivacyBudget(epsilon, 0))
    return Ledger(epsilon, 0.0, ADD_REMOVE, [answer])


@pytest.mark.parametrize(
    ("limit", "earlier", "ledger"),
    [
        (1.0, (0.3, 0.3), gaussian_ledger(0.4)),
        (1.0, (0.3,), laplace_ledger(0.3)),
        (0.5, (0.4,), gaussian_ledger(0.5)),
        (1.0, (), laplace_ledger(0.5)),
    ],
    ids=["gaussian", "laplace", "none", "just so"],
)
def test_as_many_as_planned_are_accepted_and_one_more_is_refused(
    limit: float, earlier: tuple[float, ...], ledger: Ledger
) -> None:
    of_card = BudgetLimit(epsilon=limit, delta=1e-5)
    for each in earlier:
        reserve(entry(limit=of_card), gaussian_ledger(each))
    found = fitting(read_book().entries, entry(limit=of_card), ledger, of_card.delta)
    spent = 0.0
    for _ in range(found.releases):
        spent = reserve(entry(limit=of_card), ledger).budget.epsilon
    if found.releases:
        assert found.spent == pytest.approx(spent, abs=2e-6)
    with pytest.raises(DpreproError, match="beyond the budget") as refused:
        reserve(entry(limit=of_card), ledger)
    assert found.with_one_more is not None
    assert f"epsilon {found.with_one_more:.3g}"[:11] in str(refused.value)
    assert bool(found.why_not) == (found.releases == 0)


def test_small_releases_are_counted_as_they_compose_and_not_added_up() -> None:
    """Twenty-five Gaussian releases of a fifth each spend about as much as one, not five times."""
    limit = BudgetLimit(epsilon=1.0, delta=1e-6)
    found = fitting([], entry(limit=limit), gaussian_ledger(0.2), limit.delta)
    assert 20 <= found.releases <= 26
    tiny = fitting([], entry(limit=limit), gaussian_ledger(0.001), limit.delta)
    assert (tiny.releases, tiny.with_one_more) == (MOST, None)


def test_what_nothing_bounds_fits_not_once() -> None:
    """A delta of the releases that the limit's delta leaves no room for is no matter of epsilon."""
    cited = LedgerEntry("cited", "a score", 1.0, "L1", 1.0, 1, PrivacyBudget(0.1, 4e-6))
    ledger = Ledger(0.1, 4e-6, ADD_REMOVE, [cited])
    limit = BudgetLimit(epsilon=5.0, delta=1e-5)
    found = fitting([], entry(limit=limit), ledger, limit.delta)
    assert (found.releases, found.with_one_more) == (2, None)
    none = fitting([], entry(limit=BudgetLimit(epsilon=1.0, delta=0.0)), gaussian_ledger(), 0.0)
    assert (none.releases, none.with_one_more) == (0, None)
    assert "at delta 0 nothing bounds" in none.why_not


def test_the_command_plans_releases_of_a_card(tmp_path: Path) -> None:
    text = "budget_limit: {epsilon: 1, delta: 1e-5}\nexpect: {rows: 60}\n"
    card = write_table(tmp_path, "binary", rows_of("binary", 60), text).with_name("patients.yaml")
    said = dprepro("budget", card, "--plan")
    assert "spent by 0 release(s): epsilon 0 at delta 1e-05" in said
    assert "epsilon 1, delta 0.001 each: none fits: beyond the budget" in said
    asked = ("--delta", "1e-6", "--epsilon", "0.6", "--epsilon", "0.9")
    found = json.loads(dprepro("budget", card, "--plan", *asked, "--format", "json"))
    assert found["limits"] == [{"epsilon": 1.0, "delta": 1e-5, "unit": "row"}]
    several, one = found["fits"]
    assert several["releases"] > 1 == one["releases"]
    assert several["spent"] <= 1 < several["with_one_more"]
    release = ("release", card, "--epsilon", "0.6", "--delta", "1e-6", "--yes", "-o")
    for k in range(several["releases"]):
        dprepro(*release, tmp_path / str(k))
    with pytest.raises(DpreproError, match="beyond the budget"):
        dprepro(*release, tmp_path / "one more")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--plan", "a plan is for the rows of a card"),
        ("CARD --epsilon 1 --format json", "--epsilon and --format say what to plan: add --plan"),
        ("CARD --plan", "sets no limit, so any number of releases fits: add `budget_limit"),
        ("CARD --plan --epsilon 0", "--epsilon must be a finite number above 0, given 0"),
        ("CARD --plan --epsilon 1 --delta 1", "--delta must lie from 0 to below 1, given 1"),
        ("CARD --plan --epsilon 1 --method ebm --delta 1e-6", "ebm has no privacy guarantee"),
    ],
)
def test_what_cannot_be_planned_is_said(tmp_path: Path, options: str, said: str) -> None:
    rows = "expect: {rows: 9}\n"
    card = write_table(tmp_path, "binary", rows_of("binary", 9), rows).with_name("patients.yaml")
    words = [str(card) if word == "CARD" else word for word in options.split()]
    outcome = CliRunner().invoke(app, ["budget", *words])
    assert isinstance(outcome.exception, DpreproError)
    assert said in str(outcome.exception)
