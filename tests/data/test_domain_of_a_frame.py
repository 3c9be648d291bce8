"""A domain that a user states for a frame: nothing of it is read from rows without consent."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest

from dprepro import CategoricalFeature, Domain, DpreproError, NumericFeature, load, load_domain
from dprepro.runtime.errors import DpreproWarning

FRAME = pd.DataFrame({
    "age": [39.5, 50.25], "hours": [40, 13], "city": ["Zanzibar", "Quito"],
    "code": pd.Categorical(["x1", "x2"]), "member": [True, False],
})  # fmt: skip
BOUNDS = {"age": (0, 120), "hours": (0, 100)}
CATEGORIES = {"city": ["Bonn", "Lyon"], "code": ["a"], "member": ["True", "False"]}


def test_what_is_stated_is_the_domain_in_the_order_of_the_columns():
    found = Domain.from_frame(
        FRAME, target=(0, 9), bounds=BOUNDS, categories=CATEGORIES, missing=["age", "city"]
    )
    assert found.features == (
        NumericFeature("age", 0, 120, missing=True), NumericFeature("hours", 0, 100),
        CategoricalFeature("city", ("Bonn", "Lyon"), missing=True),
        CategoricalFeature("code", ("a",)), CategoricalFeature("member", ("True", "False")),
    )  # fmt: skip
    assert (found.target, found.is_public) == ((0, 9), True)


def test_every_column_of_which_nothing_is_stated_is_named_with_lines_to_paste():
    with pytest.raises(ValueError, match="nothing is stated of hours, city, code, mem") as raised:
        Domain.from_frame(FRAME, target=(0, 1), bounds={"age": (0, 120)})
    said = str(raised.value)
    pasted = "".join(line for line in said.splitlines() if line.startswith("    "))
    call = ast.parse(f"f({pasted})", mode="eval").body
    lines = {word.arg: [key.value for key in word.value.keys] for word in call.keywords}
    assert lines == {"bounds": ["hours"], "categories": ["city", "code", "member"]}
    values = ("39.5", "50.25", "40", "13", "Zanzibar", "Quito", "x1", "x2")
    assert not any(value in said for value in values)


def test_what_is_read_by_consent_is_named_and_no_guarantee_holds_for_it():
    columns = FRAME[["age", "hours", "city"]]
    with pytest.warns(DpreproWarning, match="rows: bounds of age; categories of city; which"):
        found = Domain.from_frame(columns, target=(0, 1), bounds={"hours": (0, 100)}, observed=True)
    whole = Domain.observe(FRAME[["age", "city"]], np.array([0, 1]), "binary")
    assert found.features == (
        whole.features[0], NumericFeature("hours", 0, 100), whole.features[1],
    )  # fmt: skip
    assert set(found.observed) == set(whole.observed)
    assert not found.is_public


def test_numbers_can_be_categories_and_texts_have_no_bounds():
    found = Domain.from_frame(FRAME[["hours"]], target=(0, 1), categories={"hours": ["13", "40"]})
    assert found.features == (CategoricalFeature("hours", ("13", "40")),)
    with pytest.raises(ValueError, match="bounds names 'city', a column of dtype"):
        Domain.from_frame(FRAME[["city"]], target=(0, 1), bounds={"city": (0, 1)})
    with pytest.raises(ValueError, match="bounds and categories both name 'age'"):
        Domain.from_frame(
            FRAME[["age"]], target=(0, 1), bounds={"age": (0, 1)}, categories={"age": ["1"]}
        )
    with pytest.raises(ValueError, match=r"bounds must name columns .* 'aeg'; did you mean 'age'"):
        Domain.from_frame(FRAME[["age"]], target=(0, 1), bounds={"aeg": (0, 1)})
    with pytest.raises(ValueError, match="frame has two columns 'age'"):
        Domain.from_frame(FRAME[["age", "age"]], target=(0, 1), bounds={"age": (0, 1)})


def test_a_card_states_the_domain_that_loading_has():
    assert load_domain("breast-cancer") == load("breast-cancer").domain
    with pytest.raises(DpreproError, match="unknown dataset 'breast-cancre'; did you mean"):
        load_domain("breast-cancre")


def test_a_card_without_features_states_none(write_card):
    with pytest.raises(DpreproError, match="the card of toy states no public domain"):
        load_domain(write_card({"features": None}))
