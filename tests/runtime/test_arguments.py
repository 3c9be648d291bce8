"""What callers give becomes plain numbers, texts, flags and paths, or is refused by name."""

from __future__ import annotations

import math
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd
import pytest

from dprepro.runtime.arguments import (
    INSIDE,
    POSITIVE,
    SHARE,
    Instance,
    Integer,
    Number,
    OneOf,
    OrNone,
    flag,
    name_of,
    numbers,
    path,
    real,
    shown,
    text,
    texts,
)


class Colour(str, Enum):
    RED = "red"


class Size(IntEnum):
    TWO = 2


NO_NUMBERS = [
    True, np.True_, "1", b"1", None, 1j, np.complex128(1), pd.NA, pd.NaT, [1.0], np.ones(1),
    np.ones((1, 1)), {}, object(), np.datetime64("2020-01-01"), np.timedelta64(1, "ns"),
    pd.Timestamp(0), pd.Series([1.0]), float, 10**400, -(10**400), 10**5000,
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0.5, 0.5), (1, 1), (np.float64(0.5), 0.5), (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(0.5), 0.5), (np.longdouble(0.5), 0.5), (np.array(0.5), 0.5),
        (np.int8(1), 1), (np.uint64(1), 1), (Fraction(1, 4), 0.25), (Size.TWO, 2),
        (pd.Series([1], dtype="Int64")[0], 1), (pd.Series([0.5], dtype="float64[pyarrow]")[0], 0.5),
        (np.array(0.5, dtype=object), 0.5),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_equal_to_a_number_is_taken_as_a_plain_one(given, expected):
    found = POSITIVE("x", given)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize("kind", [real, POSITIVE, SHARE, Integer(0), Number(0)], ids=repr)
@pytest.mark.parametrize("given", NO_NUMBERS, ids=lambda given: type(given).__name__)
def test_what_is_no_number_is_refused_by_name(kind, given):
    with pytest.raises(ValueError, match=r"^rate must be .*got "):
        kind("rate", given)


@pytest.mark.parametrize(
    ("kind", "inside", "outside", "allowed"),
    [
        (POSITIVE, [5e-324, 1e308], [0, -1, math.inf, math.nan], "positive and finite"),
        (SHARE, [1e-9, 1], [0, 1.1, math.nan], "a number above 0 and at most 1"),
        (INSIDE, [0.5], [0, 1, math.nan, np.longdouble(1) - np.finfo(np.longdouble).eps],
         "strictly between 0 and 1"),
        (Number(), [-1e308], [math.inf, -math.inf, math.nan], "a finite number"),
        (Number(0), [0, 1e308], [-1e-9, math.inf], "a finite number of at least 0"),
        (Number(0, math.inf, "(]"), [math.inf], [0, math.nan], "a positive number, or math.inf"),
        (Number(0, math.inf, "[]"), [0, math.inf], [-1, math.nan], "a number of at least 0, or"),
        (Number(0, 1), [0], [1], "a number of at least 0 and below 1"),
        (Number(1, 2, "[]"), [1, 2], [0.9, 2.1], "a number from 1 to 2"),
        (Integer(), [-5], [0.0], "an integer"),
        (Integer(1), [1, 2**63 - 1], [0, 1.0, 2**63], "an integer of at least 1"),
        (Integer(1, 3), [1, 3], [0, 4], "an integer from 1 to 3"),
        (OneOf(("red", "blue")), ["red", Colour.RED, np.str_("red")], ["Red", 1, pd.NA, ["red"]],
         "one of 'red', 'blue'"),
        (flag, [True, np.False_, np.array(True)], [1, 0, "true", None, pd.NA], "true or false"),
        (text, ["", "a\0", np.str_("a"), Colour.RED], [1, None, b"a", pd.NA, ["a"]], "a text"),
        (path, ["a", Path("a"), PurePosixPath("a"), np.str_("a")], [1, None, b"a", ["a"]],
         "a path"),
        (name_of, ["age", 0, np.int64(3)], [1.5, True, None, ("a", "b")], "a text, or a whole"),
        (texts, [["a"], ("a",), np.array(["a"]), pd.Series(["a"]), pd.Index(["a"]), [], {"a"}],
         ["a", b"a", 1, None, {"a": 1}, np.array("a")], "a list of texts"),
        (numbers, [[1, 0.5], np.array([1.0]), pd.array([1, 2])], ["1", 1, None],
         "a list of numbers"),
        (Instance(Path, "a Path"), [Path("a")], ["a", None, Path], "a Path"),
    ],
)  # fmt: skip
def test_a_kind_takes_what_it_says_and_refuses_the_rest(kind, inside, outside, allowed):
    for given in inside:
        kind("x", given)
    for given in outside:
        with pytest.raises(ValueError, match=f"^x must (be|lie) {allowed}"):
            kind("x", given)


def test_a_member_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"^each of methods must be a text, got 1$"):
        texts("methods", ["a", 1])


def test_texts_lose_their_enum_and_keep_their_nul():
    for given, expected in [(Colour.RED, "red"), (np.str_("a\0"), "a\0"), ("a\0", "a\0")]:
        found = text("x", given)
        assert (type(found), found) == (str, expected)
    assert OneOf(("red",))("x", Colour.RED).join(["", ""]) == "red"


def test_none_is_taken_where_it_is_allowed():
    kind = OrNone(Integer(1))
    assert (kind("x", None), kind("x", np.int8(2))) == (None, 2)
    with pytest.raises(ValueError, match=r"^x must be an integer of at least 1, or None, got 0$"):
        kind("x", 0)


def test_only_numbers_and_short_texts_are_quoted():
    """A table of private rows can end up where a parameter belongs."""
    private = pd.DataFrame({"disease": ["plague"]})
    for given in (private, private["disease"], ["plague"], {"a": "plague"}, np.array(["plague"])):
        assert shown(given) == f"a value of type {type(given).__name__}"
    assert shown("x" * 1000) == repr("x" * 99)[:-1] + "..."
    assert shown(10**5000) == "a number that is too large"
    assert (shown(np.float64(0.5)), shown(Colour.RED), shown(None)) == ("0.5", "'red'", "None")
