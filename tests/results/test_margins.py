""""""

import math

import pytest

from dprepro.papers.published_cell import PublishedCell
from dprepro.results.margins import (
    METRICS,
    Margin,
    find_metric,
    level,
    level_in_words,
    margins,
    with_level,
)
from dprepro.runtime.errors import DpreproError


def printed(mean, std, decimals=3, metric="auc"):
    return PublishedCell("p", "1", "d", "m", 1.0, metric, mean, std, decimals)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.01", Margin(absolute=0.01)),
        ("5%", Margin(relative=0.05)),
        ("0.01, 5%", Margin(absolute=0.01, relative=0.05)),
    ],
)
def test_terms_are_read(text, expected):
    assert Margin.parse(text) == expected


@pytest.mark.parametrize("name", list(METRICS))
def test_reading_what_is_written_gives_the_same_margin(name):
    margin = METRICS[name].margin
    assert Margin.parse(str(margin).replace(" ", "")) == margin


@pytest.mark.parametrize("text", ["", "two", "-0.1", "5%%", "nan", "inf", "0.1,,", "2sd"])
def test_nonsense_is_refused_with_the_grammar(text):
    with pytest.raises(DpreproError, match="NUMBER%"):
        Margin.parse(text)


@pytest.mark.parametrize("text", ["0", "0%", "0,0%"])
def test_a_margin_of_nothing_is_refused(text):
    with pytest.raises(DpreproError, match="positive"):
        Margin.parse(text)


def test_scores_have_a_fixed_margin_and_errors_one_that_goes_with_their_size():
    assert METRICS["auc"].margin.width(printed(0.89, 0.04)) == 0.005
    assert METRICS["accuracy"].margin == METRICS["auc"].margin
    assert METRICS["rmse"].margin.width(printed(80000.0, 3000.0, 0, "rmse")) == pytest.approx(1600)


def test_rounding_of_the_printed_figure_never_makes_a_deviation():
    cell = printed(0.004, 0.0, 3, "rmse")
    assert METRICS["rmse"].margin.width(cell) == pytest.approx(cell.half_unit)


def test_overrides_replace_one_metric_only():
    widths = margins(["auc=0.5", "rmse=10%"])
    assert widths["auc"] == Margin(absolute=0.5)
    assert widths["rmse"] == Margin(relative=0.1)
    assert widths["accuracy"] == METRICS["accuracy"].margin
    assert margins() == {name: metric.margin for name, metric in METRICS.items()}


@pytest.mark.parametrize(
    ("override", "message"),
    [("auc", "METRIC=TERMS"), ("aux=1", "did you mean 'auc'"), ("auc=x", "not a term")],
)
def test_wrong_overrides_are_refused(override, message):
    with pytest.raises(DpreproError, match=message):
        margins([override])


def test_an_unknown_metric_lists_those_there_are():
    with pytest.raises(DpreproError, match=r"Allowed: auc, rmse.* scikit-learn's scorers: .*f1"):
        find_metric("nothing")
    with pytest.raises(DpreproError, match="did you mean 'balanced_accuracy'"):
        find_metric("balanced_acuracy")


@pytest.mark.parametrize(
    ("name", "recorded", "title", "higher"),
    [
        ("brier_score", "brier_score", "Brier score", False),
        ("calibration_error", "calibration_error", "Expected calibration error", False),
        ("average_precision", "average_precision", "Average precision", True),
        ("roc_auc", "auc", "AUROC", True),
        ("balanced_accuracy", "balanced_accuracy", "Balanced accuracy", True),
        ("neg_median_absolute_error", "median_absolute_error", "Median absolute error", False),
        ("median_absolute_error", "median_absolute_error", "Median absolute error", False),
    ],
)
def test_every_metric_says_which_way_is_better(name, recorded, title, higher):
    metric = find_metric(name)
    assert (metric.name, metric.title, metric.higher_is_better) == (recorded, title, higher)
    assert metric.margin in (METRICS["auc"].margin, METRICS["rmse"].margin)


def test_a_share_of_a_negative_mean_is_as_wide():
    share = Margin(relative=0.02)
    assert share.width(printed(-50.0, None)) == share.width(printed(50.0, None)) == 1.0
    assert Margin(absolute=2.0, relative=0.02).width(printed(50.0, None)) == 2.0


def test_both_terms_of_a_margin_are_named():
    assert str(Margin(absolute=0.01, relative=0.05)) == "0.01 or 5 %"
    assert str(Margin(relative=0.05)) == "5 %"


def test_digits_and_directions_of_the_metrics():
    """Errors have no fixed number of digits: it goes with their size."""
    scores = ("auc", "accuracy", "average_precision", "r2", "rademacher_bound")
    counts = ("n_features", "n_columns")
    digits = dict.fromkeys([*scores, "log_loss"], 3) | dict.fromkeys(counts, 1)
    assert {n: m.decimals for n, m in METRICS.items() if m.decimals is not None} == {
        **digits,
        "pct_features": 2,
    }
    assert {name for name, metric in METRICS.items() if metric.higher_is_better} == set(scores)


@pytest.mark.parametrize(
    ("epsilon", "heading", "words", "title"),
    [
        (0.5, "0.5", "epsilon 0.5", "EBM, ε=0.5"),
        (8.0, "8", "epsilon 8", "EBM, ε=8"),
        (math.inf, "Non-Private", "non-private", "EBM"),
    ],
)
def test_a_level_reads_alike_wherever_it_stands(epsilon, heading, words, title):
    assert level(epsilon) == heading
    assert level_in_words(epsilon) == words
    assert with_level("EBM", epsilon) == title
