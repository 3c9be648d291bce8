import math

import pytest

from dprepro.judge.cell_claims import BestInMost, CellClaim, Means, Within
from dprepro.papers.cells import PublishedCell


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

    # 0.765 - 2 sqrt(2) 0.01 = 0.7367, 0.815 + 2 sqrt(2) 0.01 = 0.8433.
    assert [holds(mean, 0.01) for mean in (0.736, 0.737, 0.843, 0.844)] == [
        False,
        True,
        True,
        False,
    ]
    assert not holds(0.764, 0.0)


def test_a_range_needs_a_bound():
    with pytest.raises(ValueError, match="give `low`, `high`, or both"):
        Within(
            name="range", section="1", states="In a range.", table="1", dataset="adult",
            methods="dp-ebm", epsilons=1.0, metric="auc",
        )  # fmt: skip
