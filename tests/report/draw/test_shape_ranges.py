"""In which numbers shape functions are drawn, and how much a function varies over the rows."""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.report.draw.shapes import equally_wide, has_room, heights, in_range, variation
from tests.report.draw.test_shapes import AGE, WORK


def test_variation_is_the_standard_deviation_over_the_rows():
    values = np.repeat(AGE.values, AGE.counts.astype(int))
    assert variation(AGE) == pytest.approx(values.std())
    assert variation(replace(AGE, counts=AGE.counts / 200)) == pytest.approx(values.std())
    assert variation(replace(AGE, values=np.zeros(4))) == 0


def test_without_any_rows_all_bins_count_alike():
    assert variation(replace(AGE, counts=np.zeros(4))) == pytest.approx(AGE.values.std())


@pytest.mark.parametrize("size", [1e-150, 1e-99, 0.5, 1e99, 1e150])
def test_values_get_a_unit_only_where_axes_need_one(size):
    extreme = replace(AGE, values=size * AGE.values, released=size * AGE.released, noise=None)
    (shown, none), unit = in_range([extreme, None])
    assert none is None
    assert (unit == 1.0) == (1e-100 < size < 1e100)
    np.testing.assert_allclose(unit * shown.values, extreme.values)
    assert 1e-100 <= np.abs(shown.values).max() <= 1e100
    if unit != 1.0:
        assert 1 <= np.abs(shown.values).max() < 10


def test_noise_has_the_unit_of_the_values_and_leaves_the_panel_at_most():
    values, noise = 1e150 * AGE.values, np.array([1e149, 1e150, 1e200, np.inf])
    shape = replace(AGE, values=values, released=values, noise=noise)
    (shown,), unit = in_range([shape])
    np.testing.assert_allclose(shown.noise[:2] * unit, noise[:2])
    size = np.abs(values).max() / unit
    np.testing.assert_allclose(shown.noise[2:], 1e6 * size)


def test_counts_are_scaled_only_where_their_sum_overflows():
    (shown,), _ = in_range([AGE])
    np.testing.assert_array_equal(shown.counts, AGE.counts)
    (shown,), _ = in_range([replace(AGE, counts=1e300 * AGE.counts)])
    np.testing.assert_allclose(shown.counts, AGE.counts / 40)


@pytest.mark.parametrize(
    ("edges", "room"),
    [
        ([0, 3, 9], True),
        ([1.0, 1.0 + 1e-13], False),
        ([1e6, 1e6 + 1e-3], True),
        ([0, 1e-101], False),
        ([0, 1e-99], True),
        ([-1e308, 1e308], False),
        ([5, 1, 6], True),
    ],
)
def test_a_range_has_room_where_axes_tell_its_ends_apart(edges, room):
    assert has_room(np.array(edges, float)) == room


def test_equally_wide_bins_are_named_at_some_borders():
    shape, places, names = equally_wide(AGE, np.array([0.0, 1e-8, 2.5, 50.0, 1e9]))
    np.testing.assert_array_equal(shape.edges, [0, 1, 2, 3, 4])
    assert places == [0, 1, 3, 4]
    assert names == ["0", "1e-08", "50", "1e+09"]
    _, places, names = equally_wide(AGE, np.array([1.0, 1.0 + 1e-9, 1.0 + 2e-9]))
    assert places == [0, 2]
    assert names == ["1.0", "1.000000002"]


def test_heights_are_shares_of_the_densest_bin():
    np.testing.assert_allclose(heights(AGE, 3), np.array([1.0, 2.0, 0.5]) / 2)
    assert heights(replace(WORK, edges=None), 2).max() == 1
    assert heights(replace(AGE, counts=np.zeros(4)), 3).max() == 0
