from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dprepro.data.card import Card, load_card
from dprepro.data.cleaning import clean, clean_with_units, column_kinds
from dprepro.data.dataset import load, values_digest
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.runtime.errors import DpreproError

MakeCard = Callable[..., Card]
FEATURES: dict[str, Any] = {
    "age": {"numeric": [0, 100]},
    "colour": {"categories": ["green", "red", "blue"]},
}


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20.0, 31.0, np.nan, 44.0],
            "colour": ["red", " blue", "red ", "?"],
            "y": ["yes", "no", "no", "yes"],
        }
    )


def arrow(table: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(table, preserve_index=False)


def cleaned(table: pd.DataFrame, card: Card) -> tuple[pd.DataFrame, np.ndarray, Domain | None]:
    return clean(arrow(table), card, card.sources[0])


def problem(table: pd.DataFrame, card: Card) -> str:
    with pytest.raises(DpreproError) as caught:
        cleaned(table, card)
    return str(caught.value)


def test_without_features_types_are_inferred(table: pd.DataFrame, make_card: MakeCard) -> None:
    X, y, domain = cleaned(table, make_card())
    assert list(X.columns) == ["age", "colour"]
    assert X["age"].dtype == np.float64
    assert list(X["colour"].cat.categories) == ["blue", "red"]
    assert X["colour"].isna().tolist() == [False, False, False, True]
    np.testing.assert_array_equal(y, [1, 0, 0, 1])
    assert y.dtype == np.int64
    assert domain is None


def test_features_give_order_categories_and_domain(
    table: pd.DataFrame, make_card: MakeCard
) -> None:
    X, _, domain = cleaned(table, make_card({"features": FEATURES}))
    assert list(X["colour"].cat.categories) == ["green", "red", "blue"]
    expected = (
        NumericFeature("age", 0, 100),
        CategoricalFeature("colour", ("green", "red", "blue")),
    )
    assert domain == Domain(expected, ("not yes", "yes"))
    swapped = make_card({"features": dict(reversed(FEATURES.items()))})
    assert list(cleaned(table, swapped)[0].columns) == ["colour", "age"]


def test_a_missing_text_that_is_a_category_stays_one(
    table: pd.DataFrame, make_card: MakeCard
) -> None:
    features = {**FEATURES, "colour": {"categories": ["red", "blue", "?"]}}
    X, _, _ = cleaned(table, make_card({"features": features}))
    assert X["colour"].astype(str).tolist() == ["red", "blue", "red", "?"]


def test_fill_replaces_missing_values_only(table: pd.DataFrame, make_card: MakeCard) -> None:
    X, _, _ = cleaned(table, make_card({"fill": {"age": "0", "colour": "blue"}}))
    np.testing.assert_array_equal(X["age"], [20, 31, 0, 44])
    assert X["colour"].astype(str).tolist() == ["red", "blue", "red", "blue"]


def test_drop_and_rename(table: pd.DataFrame, make_card: MakeCard) -> None:
    raw = table.rename(columns={"age": "AGE"}).assign(id=range(4))
    sources = [{"file": "a.csv", "rename": {"AGE": "age"}}]
    card = make_card({"drop": ["id"], "sources": sources})
    pd.testing.assert_frame_equal(cleaned(raw, card)[0], cleaned(table, make_card())[0])


def test_kinds_are_named_as_in_the_source(make_card: MakeCard) -> None:
    card = make_card({"features": FEATURES, "sources": [{"openml": 1, "rename": {"Y": "y"}}]})
    expected = {"age": "numeric", "colour": "text", "Y": "text"}
    assert column_kinds(card, card.sources[0]) == expected


def test_numbers_kept_as_text_are_parsed(table: pd.DataFrame, make_card: MakeCard) -> None:
    table["age"] = [" 20", "31 ", "", "4.4e1"]
    X, _, _ = cleaned(
        table, make_card({"features": FEATURES | {"colour": {"categories": ["red", "blue"]}}})
    )
    np.testing.assert_array_equal(X["age"], [20, 31, np.nan, 44])


@pytest.mark.parametrize("column", [[0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], ["0", "1", "1", "0"]])
def test_labels_read_the_same_however_they_are_stored(
    table: pd.DataFrame, make_card: MakeCard, column: list[Any]
) -> None:
    y = cleaned(table.assign(y=column), make_card({"positive": "1"}))[1]
    np.testing.assert_array_equal(y, [0, 1, 1, 0])


def test_the_positive_label_is_1_wherever_the_card_lists_it(
    table: pd.DataFrame, make_card: MakeCard
) -> None:
    for labels in (["yes", "no"], ["no", "yes"]):
        _, y, _ = cleaned(table, make_card({"labels": labels}))
        np.testing.assert_array_equal(y, [1, 0, 0, 1])


def test_multiclass_codes_follow_the_cards_labels(table: pd.DataFrame, make_card: MakeCard) -> None:
    changes = {
        "task": "multiclass",
        "target": "colour",
        "missing": [],
        "labels": ["red", "?", "blue"],
    }
    _, y, _ = cleaned(table, make_card(changes, without=("positive",)))
    np.testing.assert_array_equal(y, [0, 2, 0, 1])


def test_regression_target_and_bounds(table: pd.DataFrame, make_card: MakeCard) -> None:
    changes = {
        "task": "regression",
        "target": "age",
        "target_bounds": [0, 90],
        "features": {"colour": FEATURES["colour"], "y": {"categories": ["no", "yes"]}},
    }
    card = make_card(changes, without=("positive",))
    _, y, domain = cleaned(table.dropna(), card)
    np.testing.assert_array_equal(y, [20, 31, 44])
    assert y.dtype == np.float64
    assert domain is not None
    assert domain.target == (0.0, 90.0)
    assert problem(table, card).endswith("or a text that the card lists under `missing`")


def test_bool_and_date_columns_are_categories(table: pd.DataFrame, make_card: MakeCard) -> None:
    extra = table.assign(flag=[True, False, True, True], day=pd.Timestamp("2024-01-02"))
    X, _, _ = cleaned(extra, make_card())
    assert list(X["flag"].cat.categories) == ["False", "True"]
    assert X["day"].nunique() == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"target": "Y"}, "no target column 'Y'"),
        ({"positive": "maybe"}, "the card's `positive` 'maybe', and does not"),
        ({"positive": "yess"}, "from its codebook: labels that are read from the rows are not"),
        ({"target": "colour", "positive": "red", "missing": []}, "must hold two labels"),
        (
            {"labels": ["yes", "never"]},
            "column 'y' holds a value that is not among the card's labels. Allowed: never, yes",
        ),
        ({"drop": ["agee"]}, "did you mean 'age'?"),
        ({"drop": ["age", "colour"]}, "no column is left"),
        ({"fill": {"aeg": "0"}}, "`fill` names 'aeg'"),
        ({"fill": {"age": "none"}}, "'none' is not a number"),
        ({"fill": {"colour": "pink"}}, "'pink' is not one of its categories"),
        ({"features": {"age": FEATURES["age"]}}, "column 'colour' is not in the card"),
        ({"features": {**FEATURES, "size": {"numeric": [0, 1]}}}, "`features` names 'size'"),
        (
            {"features": {**FEATURES, "colour": {"numeric": [0, 1]}}},
            "column 'colour' is to hold numbers",
        ),
        (
            {"features": {**FEATURES, "colour": {"categories": ["reed", "blue"]}}},
            "Allowed: reed, blue",
        ),
    ],
)
def test_what_does_not_fit_the_card_is_named(
    table: pd.DataFrame, make_card: MakeCard, changes: dict[str, Any], says: str
) -> None:
    assert says in problem(table, make_card(changes))


def test_infinite_values_are_refused(table: pd.DataFrame, make_card: MakeCard) -> None:
    table.loc[0, "age"] = np.inf
    assert "'age' has infinite values" in problem(table, make_card())


def test_a_table_of_one_column_points_to_the_separator(
    table: pd.DataFrame, make_card: MakeCard
) -> None:
    unparted = pd.DataFrame({"age;colour;y": ["1;red;no"]})
    with pytest.raises(DpreproError, match=r"there is only one column.*separator: "):
        cleaned(unparted, make_card())


def test_a_positive_label_that_occurs_is_not_asked_about(
    table: pd.DataFrame, make_card: MakeCard
) -> None:
    card = make_card()
    lone = table.assign(**{card.target: card.positive})
    with pytest.raises(DpreproError, match="must hold two labels") as caught:
        cleaned(lone, card)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("distinct", "kept"),
    [(None, [1, 1, 2, 1]), ({}, [1, 2, 1]), ({"but_for": ["a"]}, [1, 2])],
)
def test_repeated_rows_are_dropped_if_the_card_says_so(
    make_card: MakeCard, distinct: dict[str, Any] | None, kept: list[int]
) -> None:
    table = pd.DataFrame(
        {"a": [1.0, 1.0, 2.0, 3.0], "b": [5.0, 5.0, 6.0, 5.0], "y": ["yes", "yes", "no", "yes"]}
    )
    changes = {"expect": {"values_sha256": "0" * 64}, "distinct": distinct}
    X, y, _ = cleaned(table, make_card(changes))
    labels = {1: 1, 2: 0}
    assert y.tolist() == [labels[row] for row in kept]
    assert len(X) == len(kept)
    assert list(X.index) == list(range(len(kept)))


@pytest.mark.parametrize(("complete", "kept"), [(False, [0, 1, 2, 3]), (True, [0, 3])])
def test_rows_that_lack_a_value_are_dropped_if_the_card_says_so(
    make_card: MakeCard, complete: bool, kept: list[int]
) -> None:
    table = pd.DataFrame(
        {"a": ["1", "", "3", "4"], "b": ["u", "v", " ?", "v"], "y": ["yes", "no", "no", "no"]}
    )
    X, y, _ = cleaned(table, make_card({"complete": complete}))
    assert y.tolist() == [[1, 0, 0, 0][row] for row in kept]
    assert list(X.index) == list(range(len(kept)))
    assert X.notna().all(axis=None) == complete


def test_units_of_rows_that_lack_a_value_go_with_them(make_card: MakeCard) -> None:
    table = pd.DataFrame({"a": ["1", "", "3"], "who": ["p", "q", "p"], "y": ["yes", "no", "no"]})
    card = make_card({"complete": True, "unit": "who", "rows_per_unit": 1})
    found = clean_with_units(arrow(table), card, card.sources[0])
    assert found.units is not None
    assert found.units.tolist() == ["p", "p"]


def test_a_column_that_need_not_agree_must_be_there(
    table: pd.DataFrame, make_card: MakeCard
) -> None:
    changes = {"expect": {"values_sha256": "0" * 64}, "distinct": {"but_for": ["agee"]}}
    assert "`distinct` names 'agee'" in problem(table, make_card(changes))


OWNED = b"age,who,y\n20, 007 ,yes\n31,7,no\n44,007,perhaps\n"
OWNED_CARD = {
    "unit": "who", "rows_per_unit": 1, "labels": ["other", "yes"],
    "relabel": {"no": "other", "perhaps": "other"}, "features": {"age": {"numeric": [0, 99]}},
}  # fmt: skip


def owned(write_card: Callable[..., Path], rows: bytes = OWNED, **changes: Any) -> Path:
    path = write_card({**OWNED_CARD, **changes})
    path.with_name("toy.csv").write_bytes(rows)
    return path


def test_the_unit_is_read_as_text_beside_the_features(write_card: Callable[..., Path]) -> None:
    path = owned(write_card)
    dataset = load(path)
    assert dataset.units is not None
    assert dataset.units.tolist() == ["007", "7", "007"]
    assert list(dataset.X.columns) == ["age"]
    assert load(owned(write_card, features=None, labels=["other", "yes"])).X.shape == (3, 1)
    without = load(owned(write_card, features=None, unit=None, rows_per_unit=None))
    assert without.units is None
    assert without.X.shape == (3, 2)


def test_texts_of_the_target_can_be_one_class(write_card: Callable[..., Path]) -> None:
    assert load(owned(write_card)).y.tolist() == [1, 0, 0]
    with pytest.raises(DpreproError, match="not among the card's labels"):
        load(owned(write_card, OWNED.replace(b"perhaps", b"never")))


def test_the_unit_takes_part_in_what_tells_data_apart(write_card: Callable[..., Path]) -> None:
    sha = hashlib.sha256(OWNED).hexdigest()
    public = {"sources": [{"file": "toy.csv", "sha256": sha}]}
    by_who, by_age = (
        load_card(owned(write_card, **public, **changes)).fingerprint()
        for changes in ({}, {"unit": "y2"})
    )
    assert by_who != by_age
    first, second = (
        load(owned(write_card, OWNED.replace(b"31,7", b"31," + name))) for name in (b"7", b"8")
    )
    digests = [values_digest(d.X, d.y, d.units) for d in (first, second)]
    assert digests[0] != digests[1]
    assert values_digest(first.X, first.y) == values_digest(second.X, second.y)


@pytest.mark.parametrize("blank", [b"", b"  ", b"NA", b"?"])
def test_rows_without_an_owner_are_refused_without_a_value(
    write_card: Callable[..., Path], blank: bytes
) -> None:
    with pytest.raises(DpreproError, match="unit column 'who' is missing in some rows") as caught:
        load(owned(write_card, OWNED.replace(b"31,7", b"31," + blank)))
    assert "007" not in str(caught.value)
    said = str(caught.value).partition(":")[2]
    assert said.endswith("(first in line 3)")  # where to look; not how many rows there are
    assert len(re.findall(r"[0-9]+", said)) == 1


def test_a_unit_that_is_no_column_is_named_with_those_there_are(
    write_card: Callable[..., Path],
) -> None:
    with pytest.raises(DpreproError, match="`unit` names 'whose', which is not a column") as caught:
        load(owned(write_card, unit="whose"))  # so that "who" is under no name of the card
    assert "did you mean 'who'" in str(caught.value)


def test_an_unknown_category_is_looked_up_in_the_codebook_not_in_the_rows(
    table: pd.DataFrame, make_card: MakeCard
) -> None:
    features = {**FEATURES, "colour": {"categories": ["reed", "blue"]}}
    said = problem(table, make_card({"features": features}))
    assert "Look in the codebook" in said
    assert "read_csv" not in said
