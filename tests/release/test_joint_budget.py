"""What releases spend together, and which of them one person can be in."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprepro.additive.record import ledger_to_json
from dprepro.data.card_parts import BudgetLimit
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency
from dprepro.release import budget_book
from dprepro.release.budget_book import (
    Entry,
    look_ahead,
    read_book,
    reserve,
    total_for,
    total_spent,
)
from dprepro.release.joint_budget import total_of
from dprepro.runtime.errors import DpreproError
from tests.release.ledgers import entry, gaussian_ledger


def test_gaussian_releases_compose_exactly() -> None:
    """mu of Gaussian DP adds up in squares: Dong, Roth, Su 2022, Corollary 3.3."""
    total = total_of([gaussian_ledger(1.0), gaussian_ledger(0.5)], delta=1e-6)
    wanted = epsilon_of(math.hypot(mu_of(1.0, 1e-6), mu_of(0.5, 1e-6)), 1e-6)
    assert total.budget.epsilon == pytest.approx(wanted, rel=1e-3)
    assert wanted <= total.budget.epsilon + 1e-9
    assert total.by_accountant
    assert total.adjacency is ADD_REMOVE


def test_one_release_spends_what_its_ledger_says() -> None:
    ledger = gaussian_ledger(2.0)
    assert total_of([ledger]).budget == pytest.approx((ledger.spent_epsilon(), 1e-6), rel=1e-6)


def test_at_the_sum_of_the_deltas_it_is_never_more_than_basic_composition() -> None:
    ledgers = [gaussian_ledger(e) for e in (0.1, 0.5, 1.0)]
    total = total_of(ledgers)
    assert total.budget.delta == pytest.approx(3e-6)
    assert total.budget.epsilon <= sum(ledger.spent_epsilon() for ledger in ledgers)


def test_two_relations_are_counted_under_replace_one() -> None:
    ledgers = [gaussian_ledger(1.0), gaussian_ledger(1.0, adjacency=ZERO_OUT)]
    total = total_of(ledgers, delta=1e-6)
    assert total.adjacency is REPLACE_ONE
    assert total.budget.epsilon > total_of([ledgers[0]] * 2, delta=1e-6).budget.epsilon


def test_no_delta_leaves_gaussian_noise_without_a_bound() -> None:
    assert total_of([gaussian_ledger()], delta=0.0).budget.epsilon == math.inf


def test_units_add_up_among_themselves_and_for_rows() -> None:
    patients = [gaussian_ledger(1.0, unit="patient", rows=5)] * 2
    as_rows = [gaussian_ledger(1.0)] * 2
    of_patients = total_of(patients, "patient", 1e-6).budget.epsilon
    assert of_patients == pytest.approx(total_of(as_rows, delta=1e-6).budget.epsilon, rel=1e-3)
    of_row = total_of(patients, "row", 1e-6).budget.epsilon
    assert of_row < of_patients / 2
    alone = [ledger.spent_epsilon_of_row() for ledger in patients]
    assert alone[0] < of_row <= sum(alone) + 1e-6
    assert total_of(patients[:1], "row").budget.epsilon == pytest.approx(alone[0], rel=1e-6)


def test_releases_for_rows_say_nothing_of_patients() -> None:
    ledgers = [gaussian_ledger(), gaussian_ledger(unit="patient", rows=5)]
    assert total_of(ledgers, "patient").budget.epsilon == math.inf
    assert math.isfinite(total_of(ledgers, "row").budget.epsilon)


def test_releases_for_other_units_of_the_same_name_say_nothing_of_these() -> None:
    ledgers = [gaussian_ledger(unit="patient", rows=5)] * 2
    assert total_of(ledgers, "patient", same_units=False).budget.epsilon == math.inf
    assert total_of(ledgers, "row", same_units=False) == total_of(ledgers, "row")


def of_other_people(*names: str, epsilon: float = 1.0, relation: Adjacency = ADD_REMOVE) -> Entry:
    """Return a release that is in the book, and is said to have nobody of the named ones."""
    ledger = ledger_to_json(gaussian_ledger(epsilon, adjacency=relation))
    return entry(ledger=ledger, status="released", other_people=dict.fromkeys(names, "said"))


@given(
    number=st.integers(1, 6),
    apart=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12),
)
def test_all_largest_sets_of_releases_that_a_person_can_be_in_are_found(
    number: int, apart: set[tuple[int, int]]
) -> None:
    book: list[Entry] = []
    for k in range(number):
        names = [book[j].name for j, i in apart if i == k and j < k]
        book.append(of_other_people(*names))
    people = [
        set(some)
        for size in range(1, number + 1)
        for some in combinations(range(number), size)
        if all(pair not in apart for pair in combinations(some, 2))
    ]
    wanted = {frozenset(some) for some in people if not any(some < more for more in people)}
    found = [[book.index(e) for e in some] for some in budget_book._of_one_person(list(book))]
    assert {frozenset(some) for some in found} == wanted
    assert len(found) == len(wanted)


def test_what_is_spent_is_the_most_of_any_person() -> None:
    """Years 1, 2 and 3, of other people each, then all of them, and year 2 again: mu adds up."""
    first, second = of_other_people(epsilon=1.0), of_other_people(epsilon=2.0)
    second = second.model_copy(update={"other_people": {first.name: "said"}})
    third = of_other_people(first.name, second.name, epsilon=0.5)
    again = of_other_people(first.name, third.name, epsilon=1.0)
    book = [first, second, third, of_other_people(epsilon=0.25), again]
    mu = math.hypot(*(mu_of(epsilon, 1e-6) for epsilon in (2.0, 0.25, 1.0)))
    total = total_for(again, book, 1e-6)
    assert total.is_parallel
    assert total.budget.epsilon == pytest.approx(epsilon_of(mu, 1e-6), rel=1e-3)
    assert total.budget.epsilon >= epsilon_of(mu, 1e-6)


def test_under_replace_one_and_with_mixed_neighbours_all_are_added_up() -> None:
    """Somebody of one table may become somebody of another there, and both answers move."""
    for relations in ((REPLACE_ONE, REPLACE_ONE), (ADD_REMOVE, ZERO_OUT)):
        first = of_other_people(relation=relations[0])
        second = of_other_people(first.name, relation=relations[1])
        total = total_for(second, [first, second], 1e-6)
        assert not total.is_parallel
        assert total.budget == total_of([first.spent, second.spent], delta=1e-6).budget


def test_a_book_of_many_releases_is_added_up_in_a_moment() -> None:
    book: list[Entry] = []
    for _ in range(60):  # pairs that nobody is in both of: 2^30 sets of releases
        book.append(of_other_people(epsilon=0.1))
        book.append(of_other_people(book[-1].name, epsilon=0.1))
    total = total_for(book[-1], book, 1e-3)
    assert not total.is_parallel  # so many sets are not looked at
    assert total.budget == total_of([e.spent for e in book], delta=1e-3).budget
    assert total_for(book[0], [of_other_people() for _ in range(100)], 1e-3).budget.is_finite


class Others:
    """Rows that are like none in the book."""

    def __init__(self, are_others: bool) -> None:
        self.are_others = are_others

    def likeness_to(self, sketch: object) -> None:
        return None

    def sketch(self) -> None:
        return None


def test_a_yearly_card_of_other_people_has_its_limit_for_each_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path))
    limit = BudgetLimit(epsilon=1.2, delta=1e-6)
    same, others = Others(False), Others(True)

    def ask(rows: str, said: Others) -> Entry:
        made = entry(rows=(rows,), limit=limit)
        reserve(made, gaussian_ledger(), said)  # type: ignore[arg-type]
        return read_book().entries[-1]

    ask("year 1", same)
    with pytest.raises(DpreproError, match="beyond the budget"):
        ask("year 2", same)  # sound by default: anybody may be in both
    second = ask("year 2", others)
    assert list(second.other_people.values()) == ["of the same card"]
    assert read_book().earlier_than(second) == []
    total = total_spent(read_book().entries, "row")
    assert total is not None
    assert total.is_parallel
    assert total.budget.epsilon == pytest.approx(1.0, abs=1e-3)
    for said in (same, others):  # the very same rows are the same people, whatever is said
        with pytest.raises(DpreproError, match=r"epsilon 1\.4"):
            ask("year 2", said)
    made = entry(rows=("all",))
    ahead = look_ahead(made, gaussian_ledger(0.1), same)  # type: ignore[arg-type]
    assert [e.name for e in ahead.earlier] == [e.name for e in read_book().entries]
    assert ahead.total.is_parallel
    with pytest.raises(DpreproError, match="beyond the budget"):
        ask("years 1 and 2", same)
