"""Functions of two features: cells, predictions, files, edits."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dprepro.additive.bins import MOST_GROUPS, Pair, even_groups, without_sides
from dprepro.additive.editing import level, make_monotone, set_value, undo
from dprepro.additive.file import load_model, model_from_json, model_to_json, save_model
from dprepro.additive.shapes import shapes_of
from dprepro.release.predicting import Wanted, predictions
from dprepro.runtime.errors import DpreproError
from tests.additive import small

FILE = small.file(**small.PAIRS)
AGE_HOURS = "age & hours"


def model(**changes: Any) -> Any:
    return small.model(**small.PAIRS, **changes)


# --- cells ----------------------------------------------------------------------------------------


def test_a_row_lies_in_the_cell_of_its_groups_and_in_no_other() -> None:
    """Sums over the cells of a pair have the sensitivity of one part because of that."""
    first, second = np.array([0, 1, 1, 2], np.uint8), np.array([1, 0, 2], np.uint8)
    pair = Pair(0, 1, first, second)
    rows = [(b, c) for b in range(4) for c in range(3)]
    cells = pair.cells_of(*map(np.array, zip(*rows, strict=True)))
    assert cells.dtype == np.uint8
    assert pair.shape == (3, 3)
    assert cells.tolist() == [3 * first[b] + second[c] for b, c in rows]
    assert {*cells.tolist()} == set(range(pair.n_cells))


def test_the_largest_pair_numbers_its_cells_in_a_byte() -> None:
    groups = np.arange(MOST_GROUPS, dtype=np.uint8)
    pair = Pair(0, 1, groups, groups)
    every = np.repeat(groups, MOST_GROUPS), np.tile(groups, MOST_GROUPS)
    assert pair.cells_of(*every).tolist() == list(range(256))


@given(
    counts=arrays(np.float64, st.integers(1, 60), elements=st.floats(1e-3, 1e6)),
    most=st.integers(2, MOST_GROUPS),
    seed=st.integers(0, 5),
)
def test_groups_join_neighbours_in_the_order_and_have_no_gap(
    counts: np.ndarray, most: int, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(counts.size)
    groups = even_groups(counts, order, most)
    along = groups[order].astype(int)
    assert along[0] == 0
    assert {*np.diff(along).tolist()} <= {0, 1}
    assert along[-1] < most


def test_groups_have_about_as_many_rows_each() -> None:
    counts = np.random.default_rng(0).uniform(1, 3, 100)
    sizes = np.bincount(even_groups(counts, np.arange(100), 8), counts)
    assert np.all(np.abs(sizes / sizes.mean() - 1) < 3 / sizes.mean() * 2)


@given(
    arrays(np.float64, (4, 3), elements=st.floats(-10, 10)),
    arrays(np.float64, 4, elements=st.floats(0.1, 10)),
    arrays(np.float64, 3, elements=st.floats(0.1, 10)),
)
def test_what_depends_on_one_side_is_taken_out(
    values: np.ndarray, first: np.ndarray, second: np.ndarray
) -> None:
    rest = without_sides(values, first, second)
    np.testing.assert_allclose(rest @ second, 0, atol=1e-9)
    np.testing.assert_allclose(first @ rest, 0, atol=1e-9)
    sides = values - rest
    np.testing.assert_allclose(sides - sides[:1] - sides[:, :1] + sides[0, 0], 0, atol=1e-9)
    np.testing.assert_allclose(without_sides(rest, first, second), rest, atol=1e-9)


# --- predictions ----------------------------------------------------------------------------------


def test_a_pair_adds_the_value_of_the_cell_and_nothing_where_a_bin_is_missing() -> None:
    made, X = model(), small.rows()
    added = made.contributions(X)[:, len(made.bins_) :]
    assert added.shape == (len(X), 4)
    for k, term in enumerate(made.pairs_):
        for i in range(len(X)):
            names = X.columns[[term.pair.first, term.pair.second]]
            first, second = (
                made.bins_[j].encode(X[name].iloc[[i]])[0]
                for j, name in zip((term.pair.first, term.pair.second), names, strict=True)
            )
            expected = 0.0
            if min(first, second) >= 0:
                expected = term.values[
                    term.pair.first_groups[first], term.pair.second_groups[second]
                ]
            assert added[i, k] == expected
    assert (added == 0).any(axis=0).tolist() == [False, True, False, True]


def test_explanations_name_pairs_and_add_up() -> None:
    made, X = model(), small.rows()
    columns = predictions(made, X, Wanted(explain=True))
    parts = [values for name, values in columns.items() if name.startswith("contribution of ")]
    assert f"contribution of {AGE_HOURS}" in columns
    assert len(parts) == 9
    total = columns["intercept"] + np.sum(parts, axis=0)
    np.testing.assert_allclose(total, columns["log_odds"], rtol=0, atol=1e-12)


# --- files ----------------------------------------------------------------------------------------


def test_a_model_with_pairs_comes_back_to_the_bit(tmp_path: Path) -> None:
    made, X = model(), small.rows()
    save_model(made, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.contributions(X), made.contributions(X))
    again = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert again["version"] == 3
    assert again["pairs"] == FILE["pairs"]
    assert model_to_json(loaded) == again


def test_a_model_without_pairs_is_written_as_before() -> None:
    written = model_to_json(small.model())
    assert written["version"] == 2
    assert "pairs" not in written
    assert "pairs" not in written["prediction"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["version"], 2, "pairs are for version 3"),
        (["pairs"], [], "at least 1"),
        (["pairs"], None, "pairs are for version 3, which needs them"),
        (["pairs", 0, "first"], "height", "'height', which is not a feature"),
        (["pairs", 3], small.pair("town", "none missing", [0, 1, 0], [0]), "must stand before"),
        (["pairs", 0, "first_groups"], [0, 0, 1, 2, 3], "'age' has 6 bins, but 5 have groups"),
        (["pairs", 0, "first_groups"], [0, 0, 1, 2, 2, 4], "without a gap"),
        (["pairs", 0, "first_groups"], [0, 0, 1, 2, 2, 2], "the groups make 6 cells"),
        (["pairs", 0, "first_groups", 0], 16, "less than 16"),
        (["pairs", 0, "first_groups", 0], -1, "greater than or equal to 0"),
        (["pairs", 0, "values", 0], 0.5, "must be whole numbers"),
        (["pairs", 0, "values", 0], float("inf"), "finite"),
        (["pairs", 0, "counts", 0], -1, "greater than or equal to 0"),
        (["pairs", 0, "noise"], None, "pairs have noise where features have it"),
        (["pairs", 0, "more"], 1, "Extra inputs"),
        (["pairs", 1], FILE["pairs"][0], "a pair is there twice"),
        (["units"], None, "units are for version 2 and later"),
    ],
)
def test_a_broken_pair_is_refused(path: list, value: object, said: str) -> None:
    file: Any = deepcopy(FILE)
    target = file
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(DpreproError, match=said):
        model_from_json(file)


# --- edits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "at", "cell"),
    [
        (AGE_HOURS, "50 & 3", (2, 0)),
        (AGE_HOURS, "(missing) & 90", (3, 1)),
        ("hours & town", "9 & O'Hare", (1, 1)),
    ],
)
def test_a_cell_is_set_and_the_edit_is_undone(name: str, at: str, cell: tuple[int, int]) -> None:
    made = model()
    place = made.term_names.index(name) - len(made.bins_)
    before = made.pairs_[place].values
    edit = set_value(made, name, at, 1.5)
    assert edit is not None
    after = made.pairs_[place].values
    assert after[cell] == 1.5
    assert np.sum(after != before) == 1
    assert str(edit) == f"{name}: set {at} to 1.5"
    loaded = model_from_json(model_to_json(made))
    np.testing.assert_array_equal(loaded.pairs_[place].values, after)
    shape = shapes_of(loaded)[len(loaded.bins_) + place]
    assert shape.is_edited
    np.testing.assert_array_equal(shape.released, before.ravel())
    undo(loaded)
    assert model_to_json(loaded) == model_to_json(model())


def test_nothing_changes_where_the_cell_has_the_value_already() -> None:
    made = model()
    value = float(made.pairs_[0].values[2, 0])
    assert set_value(made, AGE_HOURS, "50 & 3", value) is None
    assert made.edits_ == []


@pytest.mark.parametrize("at", ["50", "50 & 300", "50 & x"])
def test_a_cell_that_is_not_there_is_named(at: str) -> None:
    with pytest.raises(DpreproError, match=r"a cell is named by|neither a number in its bounds"):
        set_value(model(), AGE_HOURS, at, 0.0)


def test_other_edits_of_a_pair_are_refused_by_name() -> None:
    for edit in (
        lambda: make_monotone(model(), AGE_HOURS, "increasing"),
        lambda: level(model(), AGE_HOURS, 0.0, 1.0),
    ):
        with pytest.raises(DpreproError, match="is a pair of features: only single cells"):
            edit()


# --- shapes ---------------------------------------------------------------------------------------


def test_cells_are_named_by_the_ranges_and_categories_that_they_hold() -> None:
    shapes = shapes_of(model())
    assert [shape.sides is None for shape in shapes] == 5 * [True] + 4 * [False]
    shape = shapes[6]
    assert shape.sides is not None
    # Bin 4 ends at infinity, bin 5 is that of missing values.
    assert shape.sides[0] == ("age", ("[-inf, 60)", "bin 4 or bin 5"))
    assert shape.sides[1] == ("plain", ("NA", "both"))
    assert shape.labels[1] == "[-inf, 60) & both"
