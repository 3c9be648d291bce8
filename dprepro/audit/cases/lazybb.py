"""LazyBB: rows that are all alike, and a canary whose label shifts a vote against the odds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import Case, MethodPair, Setting
from dprepro.audit.cases.general import table
from dprepro.data.boolean import BooleanEncoder
from dprepro.data.domain import Domain, NumericFeature

_LOG_ODDS = 2.5
_TRIALS = 10_000
_ONE_ROUND = {"rounds": 1, "density": 1.0}


def against_the_odds(setting: Setting) -> Case:
    """Return a pair on which a hypothesis can say yes or no, and no is the likelier.

    All rows have the same x, so every 1-Rule is one of two constants. With n rows and m more noes
    than yeses the log odds of a yes are -epsilon m / 2, and exchanging a no for a yes changes m by
    2: the probability of the rare answer changes by almost e^epsilon. One round over equal weights
    spends all the budget.
    """
    return _case(setting, {} if setting.method == "dp-one-rule" else _ONE_ROUND)


def against_the_odds_of_labels(setting: Setting) -> Case:
    """Return the same pair for a tree, nearly all of whose budget its labels get."""
    return _case(setting, {**_ONE_ROUND, "splits": 1, "label_share": 0.99})


def _case(setting: Setting, params: dict[str, Any]) -> Case:
    behind = max(1, round(_LOG_ODDS / setting.epsilon))
    yes, no = 5, 5 + 2 * behind - 1
    domain = Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1"))
    x, y = np.ones(yes + no), np.repeat([1, 0], [yes, no])
    pair = MethodPair(
        setting, domain, present=table(x, y, (1.0, 1)), absent=table(x, y, (1.0, 0)), params=params
    )
    return Case(
        subject=setting.method,
        task=setting.task,
        neighbours=f"{yes} rows of one label, {no} of the other, one of either, all else the same",
        fit=pair.fit,
        observe=_Vote(domain),
        trials=_TRIALS,
    )


class _Vote:
    """Observes what the only hypothesis says of all rows: -1 or 1."""

    def __init__(self, domain: Domain) -> None:
        self.rows = BooleanEncoder(domain).transform(pd.DataFrame({"x": [1.0]}))

    def __call__(self, model: Any) -> np.ndarray:
        """Return float64 (1,)."""
        return np.asarray(model.decision_function(self.rows))


CASES = {
    "dp-one-rule": against_the_odds,
    "lazybb-1r": against_the_odds,
    "lazybb-1r-approx": against_the_odds,
    "lazybb-topdown": against_the_odds_of_labels,
    "lazybb-topdown-approx": against_the_odds_of_labels,
}
