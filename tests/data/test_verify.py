from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.data.card import Card
from dprepro.data.dataset import check_expectations, values_digest
from dprepro.runtime.errors import DpreproError


def frame(**columns: Any) -> pd.DataFrame:
    default = {"a": [1.0, np.nan, -2.5], "c": pd.Categorical(["x", None, "y"])}
    return pd.DataFrame({**default, **columns})


Y = np.array([0, 1, 1])


def test_the_digest_is_that_of_its_definition() -> None:
    content = (
        b"rows 3\nnumbers a\n"
        + np.array([1.0, np.nan, -2.5], dtype="<f8").tobytes()
        + b"categories c\nx\0y\n"
        + np.array([0, -1, 1], dtype="<i4").tobytes()
        + b"target\n"
        + np.array([0, 1, 1], dtype="<i8").tobytes()
    )
    assert values_digest(frame(), Y) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    "same",
    [
        frame(c=pd.Categorical(["x", None, "y"], categories=["y", "never", "x"])),
        frame(c=pd.Categorical(["x", None, "y"], ordered=True)),
        frame(a=np.array([1.0, np.nan, -2.5], dtype=">f8")),
        frame(a=np.array([1.0, -np.nan, -2.5])),
        frame().set_index(np.array([7, 8, 9])),
    ],
)
def test_the_digest_sees_values_not_their_storage(same: pd.DataFrame) -> None:
    assert values_digest(same, Y) == values_digest(frame(), Y)


def test_zero_has_no_sign() -> None:
    plus, minus = frame(a=[0.0, 1.0, 2.0]), frame(a=[-0.0, 1.0, 2.0])
    assert values_digest(plus, Y) == values_digest(minus, Y)


def test_the_digest_changes_with_every_value_name_and_order() -> None:
    others = [
        values_digest(frame(), Y),
        values_digest(frame(), np.array([1, 1, 1])),
        values_digest(frame(), Y.astype(float)),
        values_digest(frame(a=[1.0, 0.0, -2.5]), Y),
        values_digest(frame(a=[1.0, np.nan, np.nextafter(-2.5, 0)]), Y),
        values_digest(frame(c=pd.Categorical(["x", "x", "y"])), Y),
        values_digest(frame(c=pd.Categorical(["x", None, "z"])), Y),
        values_digest(frame().rename(columns={"a": "b"}), Y),
        values_digest(frame()[["c", "a"]], Y),
        values_digest(frame().iloc[:2], Y[:2]),
    ]
    assert len(set(others)) == len(others)


def test_expectations_that_hold_pass(make_card: Callable[..., Card]) -> None:
    digest = values_digest(frame(), Y)
    expect = {"rows": 3, "columns": 2, "positives": 2, "values_sha256": digest}
    check_expectations(frame(), Y, make_card({"expect": expect}))
    with pytest.raises(DpreproError):
        check_expectations(frame(), 1 - Y, make_card({"expect": expect}))


@pytest.mark.parametrize(
    ("expect", "says", "found"),
    [
        ({"rows": 4000}, "rows: expected 4,000, found ", "3"),
        ({"columns": 3}, "columns: expected 3, found ", "2"),
        ({"positives": 1}, "positives: expected 1, found ", "2"),
        ({"positive_share": [0.1, 0.2]}, "positive_share: expected 0.1 to 0.2, found ", "0.6667"),
        ({"values_sha256": "0" * 64}, "found ", values_digest(frame(), Y)),
    ],
)
def test_what_differs_is_said_and_what_was_found_of_published_rows(
    make_card: Callable[..., Card], expect: dict[str, Any], says: str, found: str
) -> None:
    published = {"sources": [{"file": "toy.csv", "sha256": "1" * 64}]}
    for changes, shown in ((published, True), ({}, "values_sha256" in expect)):
        with pytest.raises(DpreproError) as caught:
            check_expectations(frame(), Y, make_card({"expect": expect, **changes}))
        assert says + (found if shown else "another") in str(caught.value)
        assert "'toy'" in str(caught.value)


def test_a_digest_of_private_rows_is_not_told(make_card: Callable[..., Card]) -> None:
    card = make_card({"private": "true", "expect": {"values_sha256": "0" * 64}})
    with pytest.raises(DpreproError, match=r"values_sha256: expected 0+, found another") as caught:
        check_expectations(frame(), Y, card)
    assert values_digest(frame(), Y) not in str(caught.value)


def test_a_share_of_positives_that_is_known_as_printed(make_card: Callable[..., Card]) -> None:
    check_expectations(frame(), Y, make_card({"expect": {"positive_share": [0.66, 0.67]}}))
