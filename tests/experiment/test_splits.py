from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprepro.experiment.splits import Units, fold_rows, split_rows, stratified_rows


@given(n=st.integers(2, 400), share=st.floats(0.01, 0.99), split=st.integers(0, 99))
def test_the_parts_are_disjoint_and_complete(n: int, share: float, split: int) -> None:
    if not 0 < np.ceil(n * share) < n:
        with pytest.raises(ValueError, match="one part is empty"):
            split_rows(n, share, 1, "d", split)
        return
    train, test = split_rows(n, share, 1, "d", split)
    assert sorted([*train, *test]) == list(range(n))
    assert len(test) == np.ceil(n * share)


def test_credit_fraud_leaves_the_papers_number_of_training_rows() -> None:
    train, test = split_rows(284_807, 0.2, 1, "credit", 0)
    assert (len(train), len(test)) == (227_845, 56_962)


def test_splits_repeat_and_differ_by_number() -> None:
    first = split_rows(100, 0.2, 1, "d", 0)[1]
    assert np.array_equal(first, split_rows(100, 0.2, 1, "d", 0)[1])
    assert not np.array_equal(first, split_rows(100, 0.2, 1, "d", 1)[1])


def test_every_row_is_held_out_equally_often() -> None:
    held_out = np.zeros(50)
    for split in range(2000):
        held_out[split_rows(50, 0.2, 1, "d", split)[1]] += 1
    # Binomial(2000, 0.2): standard deviation 17.9; five of them.
    assert np.all(np.abs(held_out - 400) < 90)


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_are_an_error(n: int) -> None:
    with pytest.raises(ValueError, match=r"too few rows for test_share 0\.2"):
        split_rows(n, 0.2, 1, "d", 0)


def test_a_stratified_split_holds_out_the_share_of_each_label() -> None:
    labels = np.repeat([0, 1, 2], [700, 200, 100])
    train, test = stratified_rows(labels, 0.3, 1, "d", 0)
    assert sorted([*train, *test]) == list(range(1000))
    assert np.bincount(labels[test]).tolist() == [210, 60, 30]
    assert np.array_equal(test, stratified_rows(labels, 0.3, 1, "d", 0)[1])
    assert not np.array_equal(test, stratified_rows(labels, 0.3, 1, "d", 1)[1])
    assert not np.array_equal(test, stratified_rows(labels, 0.3, 2, "d", 0)[1])


def test_a_label_of_one_row_cannot_be_stratified_and_is_not_counted_out_loud() -> None:
    with pytest.raises(ValueError, match="rows of every label in both parts") as error:
        stratified_rows(np.array([0] * 9 + [1]), 0.3, 1, "d", 0)
    assert "1 member" not in str(error.value)


@given(n=st.integers(2, 200), folds=st.integers(2, 12))
def test_every_row_is_in_the_test_part_of_one_fold(n: int, folds: int) -> None:
    if folds > n:
        with pytest.raises(ValueError, match=f"fold 0 of {folds}: too few rows"):
            fold_rows(n, folds, 1, "d", 0)
        return
    parts = [fold_rows(n, folds, 1, "d", fold) for fold in range(folds)]
    assert sorted(row for _, test in parts for row in test) == list(range(n))
    assert all(sorted([*train, *test]) == list(range(n)) for train, test in parts)
    sizes = [len(test) for _, test in parts]
    assert max(sizes) - min(sizes) <= 1


def test_another_partition_has_other_folds_and_the_first_is_the_default() -> None:
    tests = [[tuple(fold_rows(50, 5, 1, "d", k, part)[1]) for k in range(5)] for part in range(3)]
    assert all(sorted(row for test in part for row in test) == list(range(50)) for part in tests)
    assert len({test for part in tests for test in part}) == 15
    assert tuple(fold_rows(50, 5, 1, "d", 2)[1]) == tests[0][2]


@pytest.mark.parametrize(("folds", "fold"), [(1, 0), (5, 5), (5, -1)])
def test_a_fold_that_does_not_exist_is_an_error(folds: int, fold: int) -> None:
    with pytest.raises(ValueError, match=f"cannot take fold {fold} of {folds}: too few rows"):
        fold_rows(50, folds, 1, "d", fold)


@given(owners=st.lists(st.sampled_from("pqrst"), min_size=1, max_size=40))
def test_all_rows_of_a_unit_are_on_one_side(owners: list[str]) -> None:
    names = np.array(owners, dtype=object)
    units = Units.of(names, len(names))
    assert units.number == len(set(owners))
    if units.number < 2:
        return
    train, test = (units.rows(part) for part in split_rows(units.number, 0.4, 1, "d", 0))
    assert sorted([*train, *test]) == list(range(len(names)))
    assert not set(names[train]) & set(names[test])
    order = np.random.default_rng(0).permutation(len(names))
    again = Units.of(names[order], len(names))
    assert set(names[order][again.rows(split_rows(again.number, 0.4, 1, "d", 0)[1])]) == set(
        names[test]
    )


def test_without_names_each_row_is_a_unit() -> None:
    units = Units.of(None, 4)
    assert (units.number, units.rows(np.array([2, 0])).tolist()) == (4, [0, 2])
