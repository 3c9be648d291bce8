"""When nothing says what a fit at a stated epsilon has spent, and what is said then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NO_LEDGER = "keeps no ledger of its releases"
UNVERIFIED = (
    f"unverified: it {NO_LEDGER}, so nothing says what it spends. Give its fitted estimator a "
    "`ledger_` (dprepro.privacy.ledger.Ledger) with an entry for each release"
)
"""What is said of a method that was fitted at a finite epsilon and left no such ledger."""
UNTIL_RUN = (
    "unverified until a run shows its ledger: its entry in METHODS does not say `keeps_ledger=True`"
)
"""What is said of a method that nobody has fitted yet."""


def is_unverified(epsilon: float, ledger: Mapping[str, Any] | None) -> bool:
    """Whether a fit at this stated epsilon left nothing that says what it spent.

    `ledger` is what a journal keeps of the fitted estimator's ledger (`Ledger.summary`), None where
    it has none. A ledger without a release is as good as none: it adds up to 0 whatever was read.
    """
    return math.isfinite(epsilon) and (ledger is None or ledger.get("releases") == [])
