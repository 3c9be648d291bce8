"""Bins of the toy: quantiles with both ends, and no missing values."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import NumericFeature
from dprepro.methods.toy_ebm.curator import ToyBins


def test_numeric_bins_are_quantiles_and_hold_the_ends():
    column = pd.Series([1.0, 2, 2, 2, 3, 4, 5, 9], name="x")
    feature = NumericFeature("x", 1, 9)
    bins = ToyBins.of(column, feature, 4)
    np.testing.assert_array_equal(
        bins.edges, np.unique(np.quantile(column, [0, 0.25, 0.5, 0.75, 1]))
    )
    assert bins.encode(pd.Series([-7.0, 1, 9, 70])).tolist() == [
        0,
        0,
        bins.count - 1,
        bins.count - 1,
    ]
    assert ToyBins.of(pd.Series([3.0, 3.0]), feature, 4).count == 1
    with pytest.raises(ValueError, match="'x' has missing values"):
        bins.encode(pd.Series([1.0, np.nan], name="x"))
