import math
from decimal import Decimal

import pytest
from pydantic import ValidationError

from dprepro.judge.fact_claims import Computed, Figure, Repeated, Repeats, Settings, SettingsOf

PLACE = {"name": "a-claim", "section": "section 1", "states": "A number is stated."}


@pytest.mark.parametrize(
    ("value", "found", "holds"),
    [
        ("24.1", 24.149, True),
        ("24.1", 24.15, True),
        ("24.1", 24.151, False),
        ("7043", 7043, True),
        ("7043", 7042, False),
        ("0.2", 0.173, True),
    ],
)
def test_a_number_holds_up_to_half_a_unit_of_its_last_digit(value, found, holds):
    assert Figure(quantity="rows", value=value).holds(found) is holds


def test_about_and_at_most():
    about = Figure(quantity="rows", value="4000", within="500")
    assert [about.holds(found) for found in (3499, 3500, 4436, 4501)] == [False, True, True, False]
    bound = Figure(quantity="rows", value="2", relation="at most")
    assert [bound.holds(found) for found in (0.1, 2.0, 2.01)] == [True, True, False]
    with pytest.raises(ValidationError, match="leave it out"):
        Figure(quantity="rows", value="2", relation="at most", within="1")


def test_values_of_a_text_file_become_numbers():
    read = SettingsOf(
        method="m",
        params={"a": "32", "b": "1e-5", "c": ["0.2", ["3"]], "d": None, "e": "gdp", "f": "true",
                "g": {"h": "false"}},
    )  # fmt: skip
    assert read.params == {"a": 32, "b": 1e-5, "c": [0.2, [3]], "d": None, "e": "gdp", "f": True,
                           "g": {"h": False}}  # fmt: skip
    assert isinstance(read.params["a"], int)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"config": "adult", "params": {"max_bins": 1}}, "need a `method`"),
        ({"method": "ebm", "keys": {"splits": 1}}, "need a `config`"),
        ({"method": "ebm", "grid": {"rounds": [1]}}, "need a `config`"),
        ({"method": "ebm"}, "give `params`, `grid` or `keys`"),
    ],
)
def test_settings_name_their_owner(fields, message):
    with pytest.raises(ValidationError, match=message):
        SettingsOf(**fields)


def test_what_is_stated_reads_as_words():
    claim = Computed(
        **PLACE,
        figures={
            "rows": Figure(quantity="rows", value="7043"),
            "epsilon": Figure(quantity="spent_epsilon", value="0.50", relation="at most"),
        },
    )
    assert claim.stated() == {"rows": "7043", "epsilon": "at most 0.50"}
    entry = {"method": "ebm", "params": {"max_bins": "32"}}
    again = {"config": "adult", "method": "dp-ebm-gdp-2021", "params": {"max_bins": "64"}}
    stated = Settings(**PLACE, settings=[entry, again]).stated()
    assert stated == {"max_bins": "32", "dp-ebm-gdp-2021 max_bins": "64"}
    splits = [{"config": name, "keys": {"splits": "25"}} for name in ("adult", "telco")]
    stated = Settings(**PLACE, settings=splits).stated()
    assert stated == {"splits": "25", "telco splits": "25"}
    row = Repeated(dataset="adult", method="ebm", value="0.929")
    repeats = Repeats(**PLACE, paper="p", table="1", metric="auc", rows=[row, row])
    assert repeats.stated() == {"repeated": "2"}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Computed, {"figures": {}}),
        (Settings, {"settings": []}),
        (Repeats, {"paper": "p", "table": "1", "metric": "auc", "rows": []}),
    ],
)
def test_a_fact_states_something(kind, fields):
    with pytest.raises(ValidationError, match="at least 1 item"):
        kind(**PLACE, **fields)


def test_a_repeated_number_without_an_epsilon_is_not_private():
    row = Repeated(dataset="adult", method="ebm", value="0.929")
    assert (row.epsilon, row.value, row.std) == (math.inf, Decimal("0.929"), None)
