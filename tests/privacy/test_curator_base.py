"""A curator's answers: noise in every number, no more uses than the ledger has, heard by some."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dprepro.privacy.curator_base import Curator, listening
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.privacy.query import BudgetError, Instruction, NoisyAnswer, Query, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, Sensitivity

BUDGET = (1.0, 1e-6)
MU = mu_of(*BUDGET)
UNIT = 2.0**-30


@dataclass(frozen=True)
class Sum(Query):
    """A sum of parts clipped to +-bound."""

    bound: float = 1.0

    @property
    def enforced(self) -> float:
        return self.bound


@dataclass(frozen=True)
class Shift(Instruction):
    by: float


class SumCurator(Curator):
    relations = frozenset({ADD_REMOVE})

    def __init__(self, rows: np.ndarray, uses: int, multiplier: float, **settings: Any) -> None:
        super().__init__(Ledger(*BUDGET, ADD_REMOVE), 0, ())
        self.rows = rows
        self.uses = self._gaussian(
            releases="sums", noise_multiplier=multiplier, uses=uses,
            **{"sensitivity": Sensitivity(1.0, 2.0), "budget": BUDGET} | settings,
        )  # fmt: skip
        self.ledger = self._source.ledger

    def answer(self, query: Sum) -> NoisyAnswer:
        parts = np.clip(self.rows, -query.bound, query.bound) / UNIT
        exact = parts.astype(np.int64).sum(axis=0)
        return self._announce(query, self.uses.answer(exact, query, UNIT))

    def _follow(self, instruction: Shift) -> None:
        self.rows = self.rows + instruction.by


def curator(uses: int = 4, **settings: Any) -> SumCurator:
    return SumCurator(np.zeros((5, 3)), uses, math.sqrt(uses) / MU, **settings)


@pytest.mark.parametrize(("bound", "charged"), [(1.0, 0.99), (0.5, 0.0), (1.0, math.nan)])
def test_a_query_that_enforces_less_than_it_charges_cannot_be_built(
    bound: float, charged: float
) -> None:
    with pytest.raises(SensitivityError, match="charge at least"):
        Sum(charged, 1.0, bound)


def test_every_number_of_every_answer_has_noise_of_its_own_with_the_stated_scale() -> None:
    asked = curator(uses=4000)
    answers = [asked.answer(Sum(0.5, 0.25, 0.5)) for _ in range(4000)]
    values = np.array([answer.value for answer in answers])
    assert np.unique(values).size == values.size
    scales = {answer.scale for answer in answers}
    assert scales == {0.5 / math.sqrt(0.25) * asked.ledger.entries[0].scale}
    assert values.std(axis=0) == pytest.approx(scales.pop(), rel=0.05)


def test_noise_goes_by_the_sensitivity_that_the_entry_states() -> None:
    stated = curator(uses=1, sensitivity=Sensitivity(3.0, 6.0)).answer(Sum(3.0, 1.0))
    assert stated.scale == pytest.approx(3.0 / MU)


def test_no_more_uses_are_answered_than_the_ledger_has() -> None:
    asked = curator(uses=2)
    for share in (0.5, 0.25, 0.25, 1.0):
        asked.answer(Sum(1.0, share))
    with pytest.raises(BudgetError, match="the ledger has 2"):
        asked.answer(Sum(1.0, 0.01))


@pytest.mark.parametrize("bound", [0.0, -0.5, math.nan])
def test_a_bound_that_bounds_nothing_is_refused(bound: float) -> None:
    for gap in (None, "a known gap"):
        with pytest.raises(SensitivityError):
            Sum(1e-9, 1.0, bound, gap=gap)
    with pytest.raises(SensitivityError, match="above 0"):
        Sum(0.0, 1.0, 1.0, gap="a known gap")


@pytest.mark.parametrize("share", [-100.0, math.nan, math.inf])
def test_a_refused_query_gives_no_uses_back(share: float) -> None:
    asked = curator(uses=1)
    with pytest.raises(BudgetError):
        asked.answer(Sum(1.0, share))
    asked.answer(Sum(1.0, 1.0))
    with pytest.raises(BudgetError):
        asked.answer(Sum(1.0, 0.5))


def test_a_query_whose_charge_was_changed_afterwards_gets_no_answer() -> None:
    query = Sum(1.0, 1.0)
    object.__setattr__(query, "charged", 1e-9)
    with pytest.raises(SensitivityError, match="charge at least"):
        curator().answer(query)


def test_a_query_of_a_class_from_elsewhere_gets_no_answer() -> None:
    """A method could write one that states what bound it likes."""
    modest = type(
        "Modest", (Sum,), {"enforced": 1e-9, "__module__": "dprepro.methods.dp_ebm.estimator"}
    )
    with pytest.raises(SensitivityError, match="no query of this curator"):
        curator().answer(modest(1e-9, 1.0))


@pytest.mark.parametrize("share", [0.0, -1.0, math.nan])
def test_a_query_has_a_positive_share(share: float) -> None:
    with pytest.raises(BudgetError):
        curator().answer(Sum(1.0, share))


def test_noise_that_forgets_the_number_of_uses_is_refused() -> None:
    SumCurator(np.zeros((5, 3)), 9, 3.0 / MU)
    with pytest.raises(BudgetError, match="root of the uses"):
        SumCurator(np.zeros((5, 3)), 9, 1.0 / MU)


def test_a_share_of_the_budget_may_be_tiny() -> None:
    mu = 1e-6
    tiny = (epsilon_of(mu, BUDGET[1]), BUDGET[1])
    assert SumCurator(np.zeros((5, 3)), 1, 1 / mu, budget=tiny).ledger.entries[0].budget == tiny


def test_listeners_hear_queries_releases_and_instructions_and_nothing_else() -> None:
    heard: list[Any] = []

    class Listener:
        def asked(self, query: Query, release: NoisyAnswer) -> None:
            heard.append((query, release))

        def told(self, instruction: Instruction) -> None:
            heard.append(instruction)

    with listening(Listener()):
        overheard = curator()
    unheard = curator()
    query = Sum(1.0, 1.0)
    release = overheard.answer(query)
    overheard.tell(Shift(0.5))
    unheard.answer(query)
    assert heard == [(query, release), Shift(0.5)]
    assert overheard.answer(Sum(1.0, 1.0)).value.mean() > 0  # the rows have moved


def test_a_method_that_cheats_is_caught() -> None:
    """It wants the mean of the exact targets as its intercept, and does not get it."""
    targets = Private(np.linspace(0, 1, 101))
    for cheat in (
        lambda: targets.open().mean(),
        lambda: np.mean(targets),  # type: ignore[call-overload]
        lambda: np.asarray(targets),
        lambda: targets.mean(),  # type: ignore[attr-defined]
        lambda: sum(targets),  # type: ignore[call-overload]
    ):
        with pytest.raises((PrivateRowsError, AttributeError)):
            cheat()


def test_mechanisms_that_spend_too_much_together_need_a_listed_gap() -> None:
    asked = curator()
    asked._require_budget()
    asked.ledger.add(asked.ledger.entries[0])
    with pytest.raises(BudgetError, match="divide the budget among all uses"):
        asked._require_budget()
    with pytest.raises(SensitivityError, match="add it to its gaps"):
        asked._require_budget("a gap")
    asked.ledger.gaps.append("a gap")
    asked._require_budget("a gap")


def test_a_fit_that_ends_says_whether_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    monkeypatch.setattr(SumCurator, "_end", lambda _, finished: ended.append(finished))
    with curator():
        pass
    with pytest.raises(RuntimeError), curator():
        raise RuntimeError
    assert ended == [True, False]
