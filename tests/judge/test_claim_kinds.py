"""Each number of each claim matters: with another number the claim comes out otherwise."""

import math
from decimal import Decimal

import pytest
from pydantic import ValidationError

from dprepro.judge.claim_kinds import (
    BestInMost,
    CellClaim,
    Computed,
    FactClaim,
    Figure,
    Means,
    Repeated,
    Repeats,
    Settings,
    SettingsOf,
    Within,
    same,
)
from dprepro.judge.claims import load_claims
from dprepro.judge.deviations import load_claim_deviations
from dprepro.judge.quantities import found_params
from dprepro.papers.published_cell import PublishedCell
from dprepro.runtime.errors import DpreproError


def printed(dataset, method, epsilon, mean, metric="auc"):
    return PublishedCell("paper", "1", dataset, method, epsilon, metric, mean, 0.01)


CELLS = [
    printed("adult", "ebm", math.inf, 0.93),
    printed("adult", "dp-ebm", 1.0, 0.88),
    printed("wine-white", "ebm", math.inf, 0.6, "rmse"),
    printed("wine-white", "dp-ebm", 1.0, 0.7, "rmse"),
    printed("telco", "ebm", math.inf, 0.85),
]
MEANS = Means({cell: cell.mean for cell in CELLS}, True)


def test_a_mean_is_found_by_dataset_method_and_level():
    assert MEANS.get("adult", "dp-ebm", 1.0) == 0.88
    assert MEANS.get("adult", "dp-ebm", 2.0) is None


def test_a_lead_is_positive_where_the_metric_is_better_and_needs_both_means():
    leads = MEANS.leads(("ebm", math.inf), ("dp-ebm", 1.0))
    assert leads == pytest.approx({"adult": 0.05, "wine-white": 0.1})


def test_last_bits_are_no_lead():
    auc = {"ebm": 0.3, "dp-ebm": 0.1 + 0.2}
    means = {printed("adult", name, math.inf, 0.3): mean for name, mean in auc.items()}
    assert auc["dp-ebm"] > auc["ebm"]
    for own, other in (("ebm", "dp-ebm"), ("dp-ebm", "ebm")):
        leads = Means(means, True).leads((own, math.inf), (other, math.inf))
        assert leads == {"adult": 0.0}


def test_a_claim_without_a_rule_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        CellClaim(name="x", section="1", states="S")


@pytest.mark.parametrize(("won", "holds"), [(0, False), (1, False), (2, True)])
def test_a_method_is_best_in_most_settings_if_it_wins_more_than_half(won, holds):
    claim = BestInMost(
        name="n", section="s", states="x", table="1", datasets=["adult", "wine-white"],
        methods="dp-ebm", rivals=["a", "b"], epsilons=1, metric="auc",
    )  # fmt: skip
    cells = claim.unprinted("paper")
    assert len(cells) == 2 * 3
    ahead = {dataset for dataset, _ in zip(claim.datasets, range(won), strict=False)}
    means = {c: 0.8 if c.method != "dp-ebm" else 0.9 if c.dataset in ahead else 0.8 for c in cells}
    finding = claim.assess(Means(means, True))
    assert finding.holds == holds
    assert finding.figures == {"won": won, "settings": 2}
    assert claim.range == "in most of 2 settings"
    assert claim.assess(Means({}, False)) is None


@pytest.mark.parametrize(
    ("low", "high", "mean", "holds", "is_rounded"),
    [
        ("0.77", "0.81", 0.79, True, False),
        ("0.77", "0.81", 0.814, True, True),
        ("0.77", "0.81", 0.766, True, True),
        ("0.77", "0.81", 0.816, False, False),
        ("0.77", "0.81", 0.764, False, False),
        ("1000", None, 1e9, True, False),
        ("1000", None, 999.0, False, False),
        (None, "0.5", -1.0, True, False),
        (None, "0.5", 0.6, False, False),
        ("10", "10", 9.5, True, True),
        ("10", "10", 10.0, True, False),
        ("10", "10", 10.5, True, True),
    ],
)
def test_a_mean_lies_in_a_range_up_to_the_rounding_of_its_bounds(
    low, high, mean, holds, is_rounded
):
    claim = Within(
        name="range", section="section 1", states="In a range.", table="1", dataset="adult",
        methods="dp-ebm", epsilons=1.0, metric="auc", low=low, high=high,
    )  # fmt: skip
    (asked,) = claim.unprinted("paper")
    found = claim.assess(Means({asked: mean}, True))
    assert (found.holds, found.is_rounded) == (holds, is_rounded)
    assert ("outside: dp-ebm ε=1" in found.text) is not holds
    assert found.figures == {"dp-ebm ε=1": mean}
    assert claim.assess(Means({}, True)) is None


def test_a_sampling_error_on_both_sides_widens_a_range():
    claim = Within(
        name="range", section="section 1", states="In a range.", table="1", dataset="adult",
        methods="dp-ebm", epsilons=1.0, metric="auc", low="0.77", high="0.81",
    )  # fmt: skip
    (asked,) = claim.unprinted("paper")

    def holds(mean, error):
        return claim.assess(Means({asked: mean}, True, errors={asked: error})).holds

    # From 0.77 - 0.0283 = 0.7417 on, the sampling error suffices.
    means = [Means({asked: mean}, True, errors={asked: 0.01}) for mean in (0.74, 0.743)]
    rounded = [claim.assess(found).is_rounded for found in means]
    assert rounded == [True, False]
    # Beyond half a unit below the bound, noise is needed, and said with its numbers.
    found = [claim.assess(Means({asked: m}, True, errors={asked: 0.01})) for m in (0.766, 0.743)]
    assert [(one.is_rounded, one.is_noisy) for one in found] == [(True, False), (False, True)]
    assert [one.text for one in found] == [
        "0.766",
        "0.743; within noise: dp-ebm ε=1 (0.743; counts from 0.7367 to 0.8433)",
    ]
    assert found[0].allowed["dp-ebm ε=1"] == pytest.approx((0.73672, 0.84328), abs=1e-5)

    # 0.765 - 2 sqrt(2) 0.01 = 0.7367, 0.815 + 2 sqrt(2) 0.01 = 0.8433.
    assert [holds(mean, 0.01) for mean in (0.736, 0.737, 0.843, 0.844)] == [
        False,
        True,
        True,
        False,
    ]
    assert not holds(0.764, 0.0)


@pytest.mark.parametrize(
    ("bounds", "mean", "words"),
    [({"low": "0.77"}, 0.75, "from 0.7367 on"), ({"high": "0.81"}, 0.83, "up to 0.8433")],
)
def test_a_single_bound_widened_by_noise_is_named(bounds, mean, words):
    claim = Within(
        name="range", section="section 1", states="Beyond.", table="1", dataset="adult",
        methods="dp-ebm", epsilons=1.0, metric="auc", **bounds,
    )  # fmt: skip
    (asked,) = claim.unprinted("paper")
    found = claim.assess(Means({asked: mean}, True, errors={asked: 0.01}))
    assert found.holds
    assert found.is_noisy
    assert found.text == f"{mean}; within noise: dp-ebm ε=1 ({mean}; counts {words})"


def test_a_range_needs_a_bound():
    with pytest.raises(ValueError, match="give `low`, `high`, or both"):
        Within(
            name="range", section="1", states="In a range.", table="1", dataset="adult",
            methods="dp-ebm", epsilons=1.0, metric="auc",
        )  # fmt: skip


FACTS = [
    (paper, claim)
    for paper, claims in load_claims().items()
    for claim in claims
    if isinstance(claim, FactClaim)
]
EXPLAINED = {(entry.paper, entry.claim) for entry in load_claim_deviations()}


def of(kind):
    return [
        pytest.param(claim, id=f"{paper}-{claim.name}")
        for paper, claim in FACTS
        if isinstance(claim, kind) and (paper, claim.name) not in EXPLAINED
    ]


@pytest.mark.parametrize(("paper", "claim"), FACTS, ids=lambda value: getattr(value, "name", value))
def test_a_fact_is_as_stated_or_has_a_reviewed_reason(paper, claim):
    found = claim.establish()
    assert found.holds is ((paper, claim.name) not in EXPLAINED)
    assert ("not as stated" in found.text) is not found.holds
    assert claim.stated()


@pytest.mark.parametrize("claim", of(Computed))
def test_another_number_would_not_be_computed(claim):
    for title, figure in claim.figures.items():
        other = figure.value * 2 + 1 if figure.relation == "is" else figure.value / 1000
        changed = {**claim.figures, title: figure.model_copy(update={"value": Decimal(other)})}
        found = claim.model_copy(update={"figures": changed}).establish()
        assert not found.holds
        assert found.text.endswith(f"not as stated: {title}")


def other_value(value):
    if isinstance(value, list):
        return [*value, 1]
    return 7.5 if value is None else value * 2


@pytest.mark.parametrize("claim", of(Settings))
def test_another_setting_would_not_be_found(claim):
    for place, entry in enumerate(claim.settings):
        for part in ("keys", "grid", "params"):
            for name, value in getattr(entry, part).items():
                values = {**getattr(entry, part), name: other_value(value)}
                entries = list(claim.settings)
                entries[place] = entry.model_copy(update={part: values})
                found = claim.model_copy(update={"settings": entries}).establish()
                assert not found.holds
                assert f"not as stated: {entry.method or entry.config} has {name} " in found.text
                assert found.figures["agree"] == found.figures["values"] - 1


@pytest.mark.parametrize("claim", of(Repeats))
@pytest.mark.parametrize("field", ["value", "std"])
def test_another_repeated_number_would_not_agree(claim, field):
    for place, row in enumerate(claim.rows):
        number = getattr(row, field)
        if number is None:
            continue
        rows = list(claim.rows)
        unit = Decimal(1).scaleb(number.as_tuple().exponent)
        rows[place] = row.model_copy(update={field: number + unit})
        found = claim.model_copy(update={"rows": rows}).establish()
        assert not found.holds
        assert found.figures == {"agree": len(rows) - 1, "repeated": len(rows)}
        assert found.text.startswith(f"{len(rows) - 1} of {len(rows)} agree with Table ")
        assert f"{row.dataset}, {row.method}, ε={row.epsilon:g}: " in found.text


def test_a_number_that_is_printed_nowhere_is_an_error():
    claim = next(claim for _, claim in FACTS if isinstance(claim, Repeats))
    row = claim.rows[0].model_copy(update={"epsilon": 77.0})
    with pytest.raises(DpreproError, match="at epsilon 77 in table"):
        claim.model_copy(update={"rows": [row]}).establish()


def test_a_fact_without_a_rule_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        FactClaim(name="x", section="1", states="S")


def test_whole_numbers_are_shown_in_full_and_others_with_four_digits():
    parts = {"whole": 1234567, "other": 0.123456}
    figures = {
        title: Figure(quantity="total", of={"parts": [part]}, value=str(part))
        for title, part in parts.items()
    }
    claim = Computed(name="x", section="1", states="S", figures=figures)
    assert claim.establish().text == "whole 1234567, other 0.1235"


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


def test_parameters_of_a_level_replace_those_of_the_method_and_its_defaults():
    assert found_params("mnist", "dp-llm", 2)["noise_multiplier"] == 1.3
    assert found_params("mnist", "dp-llm", 0.5)["noise_multiplier"] is None
    assert found_params("mnist", "dp-llm")["accountant"] == "moments"
    assert found_params(None, "dp-llm")["accountant"] == "pld"


def test_values_come_from_the_config_its_grid_and_its_methods():
    found = SettingsOf(
        config="lazybb-grid",
        method="lazybb-topdown",
        keys={"splits": 1},
        grid={"rounds": [1]},
        params={"splits": 1},
    ).ours()
    assert found["rounds"] == [5, 9, 15, 19, 25, 29, 35, 39, 45, 51]
    assert found["splits"] == 3
    keys = SettingsOf(config="adult", keys={"delta": 1, "epsilons": [1]}).ours()
    assert keys == {"delta": 1e-6, "epsilons": (0.5, 1, 2, 4, 8)}


@pytest.mark.parametrize(
    ("stated", "ours", "agree"),
    [
        ([0.5, 1], (0.5, 1.0), True),
        ([0.5, 1], (0.5, 1.0, 2.0), False),
        ([0.5, 1], (0.5, 1.1), False),
        ([1], 1, False),
        (0.03333333333333333, 1 / 30, True),
        (0.033, 1 / 30, False),
        (1.0, 1 + 0.9e-9, True),
        (1.0, 1 + 1.5e-9, False),
        (None, None, True),
        (None, 300, False),
        ("gdp", "gdp", True),
        ("gdp", "classic", False),
    ],
)
def test_values_agree(stated, ours, agree):
    assert same(stated, ours) is agree


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"config": "adult", "method": "dp-ebm-gpd", "params": {"max_bins": 1}},
            "no method 'dp-ebm-gpd'; did you mean 'dp-ebm-gdp",
        ),
        (
            {"method": "dp-ebm-gdp", "params": {"max_bin": 1}},
            "its defaults has no 'max_bin'; did you mean 'max_bins'",
        ),
        (
            {"config": "adult", "method": "dp-ebm-gdp-2021", "params": {"max_bin": 1}},
            "dp-ebm-gdp-2021 in adult has no 'max_bin'",
        ),
        ({"config": "adult", "keys": {"split": 1}}, "did you mean 'splits'"),
        ({"config": "mnist", "method": "dp-llm", "grid": {"rounds": [1]}}, "has no 'rounds'"),
        ({"method": "dp-ebm", "params": {"max_bins": 1}}, "beginning of several methods"),
        ({"method": "ebn", "params": {"max_bins": 1}}, "unknown method"),
        ({"config": "adlut", "keys": {"splits": 1}}, "did you mean 'adult'. Only built-in"),
    ],
)
def test_names_that_do_not_exist_are_errors(fields, message):
    with pytest.raises(DpreproError, match=message):
        SettingsOf(**fields).ours()
