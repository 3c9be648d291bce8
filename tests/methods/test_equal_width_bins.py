"""Values that stand for bins; `tests/methods/privatree/test_bins.py` has how values get there."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.equal_width_bins import Bins


def test_a_number_stands_for_the_middle_of_its_bin_and_goes_back_there():
    bins = Bins.of(NumericFeature("x", -2, 6, missing=True), 4)
    values = bins.decode(np.arange(5))
    np.testing.assert_array_equal(values, [-1, 1, 3, 5, np.nan])
    np.testing.assert_array_equal(bins.encode(pd.Series(values)), np.arange(5))


def test_a_category_stands_for_itself_and_the_last_bin_for_a_missing_one():
    bins = Bins.of(CategoricalFeature("c", ("u", "v"), missing=True), 4)
    values = bins.decode(np.array([1, 0, 2]))
    assert values.tolist()[:2] == ["v", "u"]
    np.testing.assert_array_equal(bins.encode(pd.Series(values)), [1, 0, 2])
    assert pd.isna(Bins.of(CategoricalFeature("c", ()), 4).decode(np.array([0]))[0])


@pytest.mark.parametrize("bounds", [(2.0, 2.0), (-8e307, 8e307), (0.0, 5e-324)])
def test_middles_lie_between_all_bounds(bounds):
    bins = Bins.of(NumericFeature("x", *bounds), 32)
    values = bins.decode(np.arange(bins.count))
    assert np.all((values >= bounds[0]) & (values <= bounds[1]))
