"""Which rows of a unit train: at most so many, chosen by these rows and a key alone."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprepro.data.dataset import KEY_BYTES, bounding_key, kept_rows

KEY = bounding_key(1)


def table(owners: list[str], values: list[float]) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return X, y and units of rows whose values say which they are."""
    texts = pd.Categorical(["even" if value % 2 == 0 else "odd" for value in values])
    X = pd.DataFrame({"a": np.array(values, dtype=float), "b": texts})
    return X, np.array(values, dtype=float), np.array(owners, dtype=object)


def kept(owners: list[str], values: list[float], most: int, key: bytes = KEY) -> list[tuple]:
    rows = kept_rows(*table(owners, values), most, key)
    assert rows.tolist() == sorted(set(rows.tolist()))
    return [(owners[row], values[row]) for row in rows]


ROWS = st.lists(st.tuples(st.sampled_from("pqrs"), st.integers(0, 6)), min_size=1, max_size=30)


@settings(deadline=None, max_examples=20)
@given(rows=ROWS, most=st.integers(1, 4), order=st.randoms(use_true_random=False))
def test_one_unit_more_or_less_and_the_order_of_rows_change_no_other_choice(
    rows: list[tuple[str, int]], most: int, order: object
) -> None:
    owners, values = [owner for owner, _ in rows], [float(value) for _, value in rows]
    found = kept(owners, values, most)
    counts = pd.Series(owners).value_counts()
    for owner, count in counts.items():
        assert sum(o == owner for o, _ in found) == min(count, most)
    others = [row for row in zip(owners, values, strict=True) if row[0] != "p"]
    if others:
        without = kept(*map(list, zip(*others, strict=True)), most)  # type: ignore[arg-type]
        assert without == [row for row in found if row[0] != "p"]
    shuffled = list(zip(owners, values, strict=True))
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    again = kept(*map(list, zip(*shuffled, strict=True)), most)  # type: ignore[arg-type]
    assert sorted(again) == sorted(found)


def test_a_category_is_read_by_its_text_and_not_by_a_code_that_depends_on_other_rows() -> None:
    owners, values = ["p"] * 6, [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]
    alone = kept(owners, values, 2)
    beside = kept([*owners, "q"], [*values, 0.0], 2)  # "even" comes before "odd"
    assert beside[:-1] == alone


def test_each_row_of_a_unit_is_kept_equally_often_over_keys() -> None:
    values = [float(value) for value in range(5)]
    chosen = [value for n in range(150) for _, value in kept(["p"] * 5, values, 2, bounding_key(n))]
    counts = np.bincount(np.array(chosen, dtype=int))
    # Binomial(150, 0.4): standard deviation 6; five of them.
    assert counts.sum() == 300
    assert np.all(np.abs(counts - 60) < 30)


def test_units_do_not_prefer_the_same_rows() -> None:
    owners = [f"p{k}" for k in range(200) for _ in range(2)]
    found = kept(owners, [0.0, 1.0] * 200, 1)
    assert 70 < sum(value == 0 for _, value in found) < 130


def test_a_key_is_repeated_from_what_it_is_derived_from_and_secret_without() -> None:
    assert bounding_key(1, "d", 0) == bounding_key(1, "d", 0) != bounding_key(1, "d", 1)
    assert bounding_key() != bounding_key()
    assert len(bounding_key()) == len(KEY) == KEY_BYTES


def test_many_rows_of_bytes_and_missing_values_are_no_matter() -> None:
    pixels = pd.DataFrame({"p": np.arange(6, dtype=np.uint8)})
    rows = kept_rows(pixels, np.arange(6), np.array(["a"] * 6, dtype=object), 4, KEY)
    assert len(rows) == 4
    holes = pd.DataFrame({"p": [np.nan] * 3})
    assert len(kept_rows(holes, np.zeros(3), np.array(["a"] * 3, dtype=object), 1, KEY)) == 1


@pytest.mark.parametrize("most", [1, 7])
def test_units_within_the_bound_keep_all(most: int) -> None:
    assert len(kept(["p", "q", "r"], [1.0, 1.0, 1.0], most)) == 3


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("key", [bounding_key(n) for n in range(4)])
def test_no_order_of_the_rows_of_a_unit_changes_which_are_kept(key: bytes, most: int) -> None:
    """All 24 orders of four rows, with rows of others before, between and behind them."""
    owned = [("p", 0.0), ("p", 1.0), ("p", 2.0), ("p", 3.0)]
    others = [("q", 4.0), ("r", 5.0), ("q", 6.0)]
    found = set()
    for order in itertools.permutations(owned):
        for place in (0, 2, 4):
            rows = [*order[:place], *others, *order[place:]]
            chosen = kept(*map(list, zip(*rows, strict=True)), most, key)  # type: ignore[arg-type]
            found.add(tuple(sorted(row for row in chosen if row[0] == "p")))
    assert len(found) == 1
    assert len(found.pop()) == most


def test_which_row_is_kept_depends_on_the_key_and_on_each_value() -> None:
    """Else a choice by anything that all rows have alike would pass the test above."""
    by_key = {kept(["p"] * 4, [0.0, 1.0, 2.0, 3.0], 1, bounding_key(n))[0] for n in range(40)}
    assert len(by_key) == 4
