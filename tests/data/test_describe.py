from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dprepro.data.card import load_card
from dprepro.data.dataset import load, values_digest
from dprepro.data.describe import Column, Description, describe

WriteCard = Callable[..., Path]
FEATURES: dict[str, Any] = {
    "age": {"numeric": [25, 40]},
    "colour": {"categories": ["red", "blue", "green"]},
}


@pytest.fixture
def description(toy_csv: bytes) -> Callable[[Path], Description]:
    """Return a function that describes the toy table by the card at a path."""

    def make(path: Path) -> Description:
        path.with_name("toy.csv").write_bytes(toy_csv)
        return describe(load(path), load_card(path), "f" * 16)

    return make


def test_columns_with_a_public_domain(
    write_card: WriteCard, description: Callable[[Path], Description]
) -> None:
    # Ages 20, 31, missing, 44: two of the three values lie beyond 25 to 40.
    assert description(write_card({"features": FEATURES})).columns == [
        Column("age", "numeric", [25.0, 40.0], 1, 2 / 3),
        Column("colour", "categorical", ["red", "blue", "green"], 0, None),
    ]


def test_columns_without_one(
    write_card: WriteCard, description: Callable[[Path], Description]
) -> None:
    assert description(write_card()).columns == [
        Column("age", "numeric", None, 1, None),
        Column("colour", "categorical", None, 0, None),
    ]


def test_a_column_without_any_value_is_not_outside(write_card: WriteCard) -> None:
    path = write_card({"features": {"age": FEATURES["age"]}})
    path.with_name("toy.csv").write_text("age,y\n,yes\n,no\n")
    (column,) = describe(load(path), load_card(path), "").columns
    assert (column.missing, column.outside) == (2, 0.0)


NUMBERS = {"task": "regression", "target_bounds": [10, 1000.5]}


def test_targets_outside_their_bounds(write_card: WriteCard) -> None:
    path = write_card(NUMBERS, without=("positive",))
    path.with_name("toy.csv").write_text("x,y\n1,10\n2,9.9\n3,1000.5\n4,1001\n5,2000\n")
    described = describe(load(path), load_card(path), "")
    assert (described.target_bounds, described.target_outside) == ([10, 1000.5], 3 / 5)
    path.with_name("toy.csv").write_text("x,y\n")
    assert describe(load(path), load_card(path), "").target_outside == 0.0


def test_logarithms_of_targets_are_held_against_those_of_the_bounds(write_card: WriteCard) -> None:
    path = write_card({**NUMBERS, "target_transform": "log"}, without=("positive",))
    path.with_name("toy.csv").write_text("x,y\n1,10\n2,9.9\n3,1000.5\n4,1001\n")
    described = describe(load(path), load_card(path), "")
    assert (described.target_bounds, described.target_outside) == ([10, 1000.5], 0.5)


@pytest.mark.parametrize(
    ("changes", "without"), [({"positive": "1"}, ()), ({"task": "regression"}, ("positive",))]
)
def test_without_bounds_no_target_lies_outside(
    write_card: WriteCard, changes: dict[str, str], without: tuple[str, ...]
) -> None:
    path = write_card(changes, without=without)
    path.with_name("toy.csv").write_text("x,y\n1,1\n2,0\n")
    described = describe(load(path), load_card(path), "")
    assert (described.target_bounds, described.target_outside) == (None, None)


def test_size_origin_and_digests(
    write_card: WriteCard, description: Callable[[Path], Description]
) -> None:
    path = write_card({"labels": ["no", "yes"], "licence": "none", "citation": "me\n"})
    described = description(path)
    dataset = load(path)
    assert (described.rows, described.positives, described.labels) == (4, 2, ["no", "yes"])
    assert described.source == str(path.with_name("toy.csv"))
    assert not described.private
    assert described.sha256 == dataset.sha256
    assert described.values_sha256 == values_digest(dataset.X, dataset.y)
    assert (described.licence, described.citation) == ("none", "me")


def test_digests_of_private_rows_are_left_out(write_card: WriteCard, toy_csv: bytes) -> None:
    path = write_card()
    path.with_name("toy.csv").write_bytes(toy_csv)
    card = load_card(path)
    described = describe(load(path), card, card.fingerprint())
    assert described.private
    assert (described.sha256, described.values_sha256) == ("", "")


def test_json_round_trip(write_card: WriteCard, description: Callable[[Path], Description]) -> None:
    described = description(write_card({"features": FEATURES}))
    fields = json.loads(json.dumps(described.to_json(), allow_nan=False))
    columns = [Column(**column) for column in fields.pop("columns")]
    assert Description(columns=columns, **fields) == described
