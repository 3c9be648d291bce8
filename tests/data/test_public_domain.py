"""With a public domain the card alone decides what X, y and the domain can be: rows never do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.data.card import Card, card_names, load_card
from dprepro.data.cleaning import clean
from dprepro.runtime.errors import DpreproError
from tests.data.test_cleaning import arrow

MakeCard = Callable[..., Card]
FEATURES: dict[str, Any] = {
    "age": {"numeric": [0, 100], "missing": True},
    "colour": {"categories": ["red", "blue", "green"]},
}
TABLE = pd.DataFrame(
    {
        "age": [20.0, np.nan, 44.5, 31.0],
        "colour": ["red", "blue", "red", "green"],
        "y": ["yes", "no", "yes", "no"],
    }
)
LABELS = ["no", "yes", "perhaps"]
TASKS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "two classes": ({}, ()),
    "two named classes": ({"labels": ["yes", "no"]}, ()),
    "three classes": ({"task": "multiclass", "labels": LABELS}, ("positive",)),
}


def test_a_third_class_needs_the_cards_labels(write_card: Callable[..., Any]) -> None:
    path = write_card({"task": "multiclass", "features": FEATURES}, without=("positive",))
    with pytest.raises(DpreproError, match=r"(?s)toy.yaml.*`labels`.*labels: \[\.\.\.\]"):
        load_card(path)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    "rows", [[0], [1], [0, 2], [1, 3], [0, 1], [3, 2, 1, 0]], ids=lambda rows: str(rows)
)
def test_which_rows_are_there_changes_neither_domain_nor_codes(
    make_card: MakeCard, task: str, rows: list[int]
) -> None:
    changes, without = TASKS[task]
    card = make_card({**changes, "features": FEATURES}, without=without)
    X, y, domain = clean(arrow(TABLE), card, card.sources[0])
    some_X, some_y, some_domain = clean(arrow(TABLE.iloc[rows]), card, card.sources[0])
    assert some_domain == domain
    np.testing.assert_array_equal(some_y, y[rows])
    assert some_y.dtype == y.dtype
    assert some_X.dtypes.to_dict() == X.dtypes.to_dict()
    pd.testing.assert_frame_equal(some_X, X.iloc[rows].reset_index(drop=True))


def test_the_class_that_no_card_names_is_not_named_by_the_rows(make_card: MakeCard) -> None:
    card = make_card({"features": FEATURES})
    for name in ("no", "SENTINEL-7f3a"):
        _, y, domain = clean(arrow(TABLE.replace({"no": name})), card, card.sources[0])
        assert domain is not None
        assert domain.target == card.public_target == ("not yes", "yes")
        np.testing.assert_array_equal(y, [1, 0, 1, 0])
    third = TABLE.assign(y=["yes", "no", "perhaps", "no"])
    with pytest.raises(DpreproError, match="must hold two labels") as caught:
        clean(arrow(third), card, card.sources[0])
    assert "perhaps" not in str(caught.value)


def test_without_a_public_domain_labels_are_still_those_of_the_rows(make_card: MakeCard) -> None:
    changes = {"task": "multiclass", "target": "colour", "drop": ["y"]}
    card = make_card(changes, without=("positive",))
    _, y, domain = clean(arrow(TABLE), card, card.sources[0])
    assert domain is None
    assert card.public_target is None
    np.testing.assert_array_equal(y, [2, 0, 2, 1])


@pytest.mark.parametrize("name", card_names())
def test_every_built_in_public_domain_states_its_target(name: str) -> None:
    card = load_card(name)
    if card.features is not None:
        assert card.public_target is not None
        assert len(card.public_target) >= 2
        assert card.task == "regression" or card.labels is not None
