"""Quantile bins: about equally full, and never more than a byte can number."""

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bins import OTHER
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.dp_ebm.ebm import EBMClassifier, quantile_bins


def test_quantile_bins_separate_distinct_values_when_they_are_few():
    bins = quantile_bins(pd.Series([1.0, 2.0, 2.0, 5.0]), NumericFeature("x", 1, 5), 256)
    np.testing.assert_array_equal(bins.cuts, [1.5, 3.5])


def test_quantile_bins_are_about_equally_full():
    values = pd.Series(np.random.default_rng(0).lognormal(0, 2, 10_000))
    bins = quantile_bins(values, NumericFeature("x", 0, 1), 50)
    counts = np.bincount(bins.encode(values))
    assert bins.n_bins == 50
    assert np.abs(counts - 200).max() <= 2


def test_quantile_cuts_separate_even_neighbouring_floats():
    low = 1.0
    high = np.nextafter(low, 2.0)
    bins = quantile_bins(pd.Series([low, high]), NumericFeature("x", 0, 1), 8)
    np.testing.assert_array_equal(bins.encode(pd.Series([low, high])), [0, 1])


def test_quantile_bins_give_missing_values_a_bin_of_their_own():
    column = pd.Series([1.0, np.nan, 2.0])
    bins = quantile_bins(column, NumericFeature("x", 1, 2, missing=True), 8)
    np.testing.assert_array_equal(bins.encode(column), [0, 2, 1])
    jobs = pd.Series(["a", None])
    bins = quantile_bins(jobs, CategoricalFeature("x", ("a",), missing=True), 8)
    np.testing.assert_array_equal(bins.encode(jobs), [0, 1])


def test_of_too_many_categories_the_rarest_share_a_bin():
    """300 categories, the first 45 rare: as bytes, the last 44 would have been the first ones."""
    names = tuple(f"c{k:03}" for k in range(300))
    column = pd.Series(np.repeat(names, [3] * 45 + [10] * 255))
    feature = CategoricalFeature("x", names)
    bins = quantile_bins(column, feature, 256)
    assert bins.labels == (*names[45:], OTHER)
    np.testing.assert_array_equal(
        bins.encode(column), [255] * 135 + list(np.repeat(range(255), 10))
    )
    known = CategoricalFeature("x", names[45:], missing=True)
    gaps = pd.concat([column[135:], pd.Series([None] * 20)])
    assert quantile_bins(gaps, known, 256).n_bins == 256


def test_as_many_categories_as_there_are_bins_have_one_each():
    names = tuple(f"c{k:03}" for k in range(256))
    column = pd.Series(names)
    bins = quantile_bins(column, CategoricalFeature("x", names), 256)
    assert bins.labels == names
    gaps = pd.Series([*names[:-1], None])
    bins = quantile_bins(gaps, CategoricalFeature("x", names[:-1], missing=True), 256)
    np.testing.assert_array_equal(bins.encode(gaps), range(256))
    bins = quantile_bins(gaps, CategoricalFeature("x", names, missing=True), 256)
    assert bins.n_bins == 256


def test_an_ebm_tells_the_last_of_many_categories_from_the_first():
    names = [f"c{k:03}" for k in range(300)]
    X = pd.DataFrame({"x": np.tile(names, 8)})
    labels = np.tile(np.arange(300) < 100, 8).astype(int)
    model = EBMClassifier(n_epochs=30, learning_rate=0.3, min_samples_leaf=1, random_state=0)
    found = model.fit(X, labels).predict_proba(X)[:, 1]
    assert found[labels == 1].min() > found[labels == 0].max()


@pytest.mark.parametrize("max_bins", [2, 3, 5, 10, 255, 256])
def test_cuts_lie_after_numpys_quantiles(max_bins):
    """For every number of rows: the first distinct value above a quantile is right of its cut."""
    rng = np.random.default_rng(max_bins)
    sizes = [n for n in (3, 4, 7, 10, 11, 99, 100, 256, 257, 510, 512, 1000, 4097) if n > max_bins]
    assert len(sizes) > 3
    for n in sizes:
        values = rng.permutation(np.append(np.arange(max_bins + 1), rng.integers(0, 300, n)))
        distinct = np.unique(values)
        shares = np.arange(1, max_bins) / max_bins
        chosen = np.unique(np.quantile(values, shares, method="inverted_cdf"))
        expected = [(q + distinct[distinct > q].min()) / 2 for q in chosen if (distinct > q).any()]
        bins = quantile_bins(pd.Series(values.astype(float)), NumericFeature("x", 0, 1), max_bins)
        np.testing.assert_array_equal(bins.cuts, expected)
