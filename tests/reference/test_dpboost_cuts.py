"""The cuts of DPBoost as published are those of LightGBM, on which the authors' code builds."""

import lightgbm
import numpy as np
import pytest

from dprepro.data.domain import NumericFeature
from dprepro.methods.dpboost.bins import observed_cuts


def used_thresholds(values, max_bin):
    """Return every threshold of a tree that grows until no bin can be parted any more."""
    model = lightgbm.train(
        {
            "objective": "regression", "num_leaves": 300, "max_bin": max_bin, "min_data_in_bin": 3,
            "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0, "verbose": -1, "num_threads": 1,
        },
        # Steep and strictly increasing, so that every cut is worth making.
        lightgbm.Dataset(values[:, None], np.argsort(np.argsort(values)).astype(float)),
        num_boost_round=1,
    )  # fmt: skip
    thresholds = model.trees_to_dataframe()["threshold"].dropna()
    return np.sort(thresholds.to_numpy())


@pytest.mark.parametrize("max_bin", [31, 255])
@pytest.mark.parametrize("kind", ["uniform", "normal", "skewed", "rounded", "mixed"])
def test_cuts_equal_those_of_lightgbm(kind, max_bin):
    rng = np.random.default_rng(3)
    values = {
        "uniform": rng.random(4000) + 1,
        "normal": rng.normal(size=4000),
        "skewed": rng.lognormal(sigma=2, size=4000),
        "rounded": rng.normal(scale=20, size=4000).round(),
        "mixed": np.where(rng.random(4000) < 0.7, 0.0, rng.exponential(size=4000).round(2)),
    }[kind]
    bins = observed_cuts(values, NumericFeature("x", -1, 1), max_bin)
    occupied = np.unique(bins.encode(values))
    # A tree shows only cuts with rows on both sides.
    separating = bins.cuts[occupied[:-1]]
    thresholds = used_thresholds(values, max_bin)
    assert thresholds.size == separating.size
    np.testing.assert_allclose(thresholds, separating, rtol=1e-9, atol=1e-30)
