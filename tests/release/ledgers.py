"""Ledgers of releases for tests."""

from __future__ import annotations

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_sigma
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.ledger_entry import LedgerEntry
from dprepro.privacy.sensitivity import ADD_REMOVE, Adjacency
from dprepro.release.budget_book import Entry, new_name


def gaussian_ledger(
    epsilon: float = 1.0,
    delta: float = 1e-6,
    adjacency: Adjacency = ADD_REMOVE,
    unit: str = "row",
    rows: int = 1,
) -> Ledger:
    """Return the ledger of one Gaussian answer that spends the whole budget for each unit."""
    entry = LedgerEntry(
        "gaussian", "a sum", 1.0, "L2", rows * gdp_sigma(1, epsilon, delta), 1,
        PrivacyBudget(epsilon, delta),
    )  # fmt: skip
    return Ledger(epsilon, delta, adjacency, [entry], unit=unit, rows_per_unit=rows)


def entry(card: str = "/a/card.yaml", rows: tuple[str, ...] = ("1",), **fields: object) -> Entry:
    """Return an entry of the book before it is reserved."""
    values = {
        "name": new_name(), "date": "2026-11-22", "dataset": "patients", "card": card,
        "rows": list(rows), "method": "dp-ebm-plus", "ledger": {},
    }  # fmt: skip
    return Entry.model_validate({**values, **fields})
