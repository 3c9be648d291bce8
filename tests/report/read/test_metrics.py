import pytest

from dprepro.errors import DpreproError
from dprepro.published.published import PublishedCell
from dprepro.report.read.metrics import (
    METRICS,
    SINGLE_RUN_FACTOR,
    Tolerance,
    find_metric,
    tolerances,
)


def printed(mean, std, decimals=3, metric="auc"):
    return PublishedCell("p", "1", "d", "m", 1.0, metric, mean, std, decimals)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.01,2sd", Tolerance(absolute=0.01, sds=2)),
        ("5%, 2sd", Tolerance(relative=0.05, sds=2)),
        ("0.5", Tolerance(absolute=0.5)),
        ("0", Tolerance()),
    ],
)
def test_terms_are_read(text, expected):
    assert Tolerance.parse(text) == expected


@pytest.mark.parametrize("name", list(METRICS))
def test_reading_what_is_written_gives_the_same_tolerance(name):
    tolerance = METRICS[name].tolerance
    written = str(tolerance).removeprefix("max(").removesuffix(")").replace(" ", "")
    assert Tolerance.parse(written) == tolerance


@pytest.mark.parametrize("text", ["", "two", "-0.1", "5%%", "nan", "inf", "0.1,,", "sd"])
def test_nonsense_is_refused_with_the_grammar(text):
    with pytest.raises(DpreproError, match="NUMBERsd"):
        Tolerance.parse(text)


def test_auroc_is_within_a_hundredth_or_two_standard_deviations():
    width = METRICS["auc"].tolerance.width
    assert width(printed(0.89, 0.004), None) == 0.01
    assert width(printed(0.89, 0.02), None) == 0.04


def test_rmse_is_within_five_per_cent_or_two_standard_deviations():
    width = METRICS["rmse"].tolerance.width
    assert width(printed(80000.0, 1000.0, 0, "rmse"), None) == pytest.approx(4000)
    assert width(printed(80000.0, 3000.0, 0, "rmse"), None) == pytest.approx(6000)


def test_accuracy_is_judged_as_auroc_is():
    assert METRICS["accuracy"].tolerance == METRICS["auc"].tolerance


def test_rounding_of_the_printed_figure_never_makes_a_deviation():
    cell = printed(0.004, 0.0, 3, "rmse")
    assert METRICS["rmse"].tolerance.width(cell, None) == pytest.approx(cell.half_unit)


def test_without_a_printed_sd_the_rest_doubles_and_our_own_sd_counts():
    single, several = printed(0.8, None), printed(0.8, 0.0)
    tolerance = METRICS["auc"].tolerance
    assert tolerance.width(single, None) == SINGLE_RUN_FACTOR * tolerance.width(several, None)
    assert tolerance.width(single, 0.03) == pytest.approx(0.06)
    assert tolerance.width(several, 0.03) == tolerance.width(several, None)


def test_overrides_replace_one_metric_only():
    widths = tolerances(["auc=0.5", "rmse=10%,3sd"])
    assert widths["auc"] == Tolerance(absolute=0.5)
    assert widths["rmse"] == Tolerance(relative=0.1, sds=3)
    assert widths["accuracy"] == METRICS["accuracy"].tolerance
    assert tolerances() == {name: metric.tolerance for name, metric in METRICS.items()}


@pytest.mark.parametrize(
    ("override", "message"),
    [("auc", "METRIC=TERMS"), ("aux=1", "did you mean 'auc'"), ("auc=x", "not a term")],
)
def test_wrong_overrides_are_refused(override, message):
    with pytest.raises(DpreproError, match=message):
        tolerances([override])


def test_an_unknown_metric_lists_those_there_are():
    with pytest.raises(DpreproError, match="Allowed: auc, rmse"):
        find_metric("f1")
