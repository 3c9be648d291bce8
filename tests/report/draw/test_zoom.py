"""A closer look at the good curves of a panel: which these are, and the range it has."""

import math

import pytest

from dprepro.report.draw.curves import Curve, Panel, Point, zoom_of
from dprepro.results.metrics import METRICS


def curve(title, *means, published=(), epsilons=(0.5, 1.0, 2.0, 4.0)):
    points = [
        tuple(Point(e, mean, None) for e, mean in zip(epsilons, those, strict=False))
        for those in (means, published)
    ]
    return Curve(title, title, *points)


def look(*curves, metric="auc"):
    return zoom_of(Panel("d", "D", METRICS[metric], curves))


def names(curves):
    return [one.title for one in curves]


def test_curves_at_a_fifth_of_the_way_are_good_and_those_below_are_not():
    found = look(curve("a", 1.0), curve("b", 0.8), curve("c", 0.79), curve("d", 0.0))
    assert names(found.good) == ["a", "b"]
    assert names(found.others) == ["c", "d"]
    assert (found.lowest, found.highest) == (0.8, 1.0)


def test_of_an_error_the_lowest_are_good():
    found = look(curve("a", 1.0), curve("b", 2.7), curve("c", 2.9), curve("d", 9.9), metric="rmse")
    assert names(found.good) == ["a", "b"]
    assert (found.lowest, found.highest) == (1.0, 2.7)


def test_errors_over_decades_are_compared_by_their_logarithms():
    curves = [curve("a", 1.0), curve("b", 2.4), curve("c", 2.7), curve("d", 100.0)]
    assert names(look(*curves, metric="rmse").good) == ["a", "b"]


def test_a_curve_counts_by_its_median_and_the_range_leaves_its_far_points_out():
    found = look(curve("a", 0.9, 1.0, 0.95), curve("b", 0.1, 0.9, 0.9), curve("c", 0.0, 0.1, 0.2))
    assert names(found.good) == ["a", "b"]
    assert (found.lowest, found.highest) == (0.9, 1.0)


def test_points_without_privacy_count_where_a_curve_has_no_others():
    endless = (math.inf,)
    best = curve("best", 0.9, 1.0, epsilons=(1.0, math.inf))
    found = look(best, curve("open", 0.95, epsilons=endless), curve("c", 0.0), curve("d", 0.1))
    assert names(found.good) == ["best", "open"]
    assert found.highest == 1.0


def test_printed_points_stand_in_for_measured_ones_and_belong_to_the_range():
    found = look(curve("a", 1.0, published=(0.99,)), curve("b", published=(0.9,)), curve("c", 0.0))
    assert names(found.good) == ["a", "b"]
    assert (found.lowest, found.highest) == (0.9, 1.0)


@pytest.mark.parametrize(
    "means", [(1.0, 0.9), (1.0, 0.5, 0.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0)], ids=str
)
def test_there_is_nothing_to_see_closer_for_two_curves_one_good_one_or_equal_ones(means):
    assert look(*(curve(str(k), mean) for k, mean in enumerate(means))) is None
