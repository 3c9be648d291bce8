"""Prediction intervals: what a model says of new rows, in Python, in files and in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprepro.additive.describe import intervals_in_words
from dprepro.additive.editing import set_value, undo
from dprepro.additive.file import model_from_json, model_to_json
from dprepro.additive.model import LEVELS, ResidualSizes
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor
from dprepro.release.statement import state
from dprepro.release.statement_pages import as_html, as_markdown
from dprepro.report.model_page import model_page
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.release.models import publisher

DOMAIN = Domain((NumericFeature("x", 0.0, 1.0),), (0.0, 100.0))


def with_intervals(**changes):
    return small.model("regression", intervals=small.INTERVALS, **changes)


def fitted(**params):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(600)})
    y = (60 * X["x"] + 20 + rng.normal(0, 5, 600)).to_numpy().clip(0, 100)
    params = {"n_epochs": 8, "domain": DOMAIN, "random_state": 0, **params}
    return DPEBMPlusRegressor(8.0, **params).fit(X, y), X, y


@pytest.mark.parametrize(
    ("coverage", "size"), [(0.5, 1 / 8), (0.8, 1 / 4), (0.95, 1 / 2), (0.65, 3 / 16)]
)
def test_an_interval_is_the_prediction_plus_and_minus_a_size_within_the_range(coverage, size):
    """Not the sum: where it lies beyond the range, the prediction is the range's end."""
    model, X = with_intervals(), small.rows()
    found, sums = model.predict(X), model.scores_of(model.contributions(X))
    assert (sums > model.range_[1] + 0.5).any()
    np.testing.assert_allclose(found, np.clip(sums, *model.range_))
    expected = np.clip(np.stack([found - size, found + size]), *model.range_)
    lower, upper = model.predict_interval(X, coverage).T
    np.testing.assert_allclose([lower, upper], expected, rtol=0, atol=1e-12)
    assert ((lower <= model.predict(X)) & (model.predict(X) <= upper)).all()
    assert {-1.0, 2.0} <= {*lower, *upper}  # both ends of the range are met


def test_an_edit_widens_the_intervals_of_the_rows_that_it_moves():
    """So that they cover at least as often, and hold the prediction."""
    model, X = with_intervals(), small.rows()
    model.range_ = None
    before = model.predict_interval(X, 0.8)
    value = model.shape_functions_[3][0]
    set_value(model, "town", "Bonn", value + 0.5)
    after = model.predict_interval(X, 0.8)
    moved = (X["town"] == "Bonn").to_numpy()
    assert 0 < moved.sum() < len(X)
    np.testing.assert_array_equal(after[:, 0], before[:, 0])
    np.testing.assert_allclose(after[:, 1] - before[:, 1], 0.5 * moved, atol=1e-12)
    undo(model)
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), before)


def test_an_edit_of_a_pair_widens_the_intervals_of_the_rows_that_it_moves():
    model, X = with_intervals(**small.PAIRS), small.rows()
    model.range_ = None
    before = model.predict_interval(X, 0.8)
    set_value(model, "hours & town", "8 & Bonn", float(model.pairs_[2].values[1, 2]) + 0.5)
    after = model.predict_interval(X, 0.8)
    # Missing hours share the bin of 8.
    moved = (X["hours"].isin([8.0, np.nan]) & (X["town"] == "Bonn")).to_numpy()
    assert 0 < moved.sum() < len(X)
    np.testing.assert_array_equal(after[:, 0], before[:, 0])
    np.testing.assert_allclose(after[:, 1] - before[:, 1], 0.5 * moved, atol=1e-9)
    undo(model)
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), before)


def test_a_function_made_monotone_by_the_fit_counts_as_edited():
    free, X, _ = fitted()
    tied, _, _ = fitted(monotone={"x": "decreasing"})
    assert tied.edits_
    assert tied.residual_sizes_.half_width(0.9) == free.residual_sizes_.half_width(0.9)
    lower, upper = tied.predict_interval(X).T
    others = free.predict_interval(X)
    assert (lower <= others[:, 0]).all()
    assert (upper >= others[:, 1]).all()
    assert ((lower <= tied.predict(X)) & (tied.predict(X) <= upper)).all()


@pytest.mark.parametrize("coverage", [0.49, 0.951, -1.0, 1.0, float("nan")])
def test_a_coverage_that_is_not_known_is_refused(coverage):
    with pytest.raises(DpreproError, match=r"must be from 0\.5 to 0\.95, got"):
        with_intervals().predict_interval(small.rows(9), coverage)


def test_a_classifier_has_none_and_says_why():
    model = small.model()
    assert not hasattr(model, "predict_interval")
    with pytest.raises(AttributeError, match="for regression: predict_proba says how sure"):
        model.predict_interval(small.rows(9))


@pytest.mark.parametrize("model", [small.model("regression"), fitted(n_epochs=1)[0]])
def test_a_model_that_does_not_know_says_which_do(model):
    with pytest.raises(
        DpreproError, match=r"Regressors of dp-ebm-plus .* single epoch, as with n_epochs=1, or"
    ):
        model.predict_interval(small.rows(9))
    assert intervals_in_words(model) == []
    assert 'id="intervals"' not in model_page(model, "a model")


def test_a_fit_knows_them_for_every_level_and_a_file_keeps_them_to_the_bit():
    model, X, y = fitted()
    sizes = model.residual_sizes_
    assert sizes.percents.tolist() == [*range(50, 100)]
    assert (np.diff(sizes.sizes) >= 0).all()
    again = model_from_json(model_to_json(model))
    assert again.residual_sizes_.sizes.tolist() == sizes.sizes.tolist()
    assert again.residual_sizes_.power == sizes.power
    for coverage in (0.5, 0.83456, 0.99):
        ends = again.predict_interval(X, coverage)
        np.testing.assert_array_equal(ends, model.predict_interval(X, coverage))
    lower, upper = model.predict_interval(X).T
    assert 0.85 < np.mean((lower <= y) & (y <= upper)) < 0.97
    assert 2 * 5 < (upper - lower).mean() < 4 * 5  # 3.3 standard deviations, and some noise


def test_a_file_without_them_reads_as_before():
    values = model_to_json(fitted()[0])
    del values["intervals"]
    model = model_from_json(values)
    assert model.residual_sizes_ is None
    assert model_to_json(model) == values


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"percents": [50, 50, 95]}, "percents must ascend"),
        ({"percents": [50, 80]}, "2 percents, but 3 sizes"),
        ({"percents": [0, 50, 80]}, "percents.0"),
        ({"percents": [50, 80, 100]}, "percents.2"),
        ({"percents": [50]}, "percents"),
        ({"sizes": [3, 2, 4]}, "sizes must not fall"),
        ({"sizes": [-1, 2, 4]}, "sizes.0"),
        ({"sizes": [1, 2.5, 4]}, "sizes.1"),
        ({"sizes": [1, 2, 2**30 + 1]}, "sizes.2"),
        ({"power": 5000}, "power"),
        ({"more": 1}, "more"),
    ],
)
def test_a_file_with_broken_ones_is_refused(changes, message):
    with pytest.raises(DpreproError, match=message):
        small.model("regression", intervals={**small.INTERVALS, **changes})


@given(
    st.sampled_from(["about", "power", "percents", "sizes"]),
    st.one_of(
        st.none(), st.integers(), st.floats(), st.text(max_size=5),
        st.lists(st.integers(0, 120) | st.floats(), min_size=3, max_size=3),
    ),
)  # fmt: skip
def test_any_junk_in_them_is_refused_or_gives_a_model_that_works(key, junk):
    try:
        model = small.model("regression", intervals={**small.INTERVALS, key: junk})
    except DpreproError:
        return
    ends = model.predict_interval(small.rows(9), model.residual_sizes_.percents[0] / 100)
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert np.isfinite(ends).all()
    values = model_to_json(model)
    assert model_to_json(model_from_json(values)) == values


def test_a_classifier_with_them_is_refused():
    with pytest.raises(DpreproError, match="intervals are for regression"):
        small.model("binary", intervals=small.INTERVALS)


def test_page_and_statement_say_how_near_targets_are():
    model = model_from_json(model_to_json(fitted()[0]))
    (said,) = intervals_in_words(model)
    assert (
        f"About 90 % of new rows have a target within {model.residual_sizes_.half_width(0.9):.3g}"
        in said
    )
    statement = state(model, b"", publisher())
    for text in (model_page(model, "a model"), as_html(statement), as_markdown(statement)):
        assert said in " ".join(text.split())


def test_sizes_of_zero_and_huge_ones_have_a_grid():
    assert ResidualSizes.at_levels(np.zeros(LEVELS.size)).half_width(0.9) == 0.0
    huge = ResidualSizes.at_levels(np.full(LEVELS.size, 1e300))
    assert huge.half_width(0.9) == pytest.approx(1e300, rel=1e-9)
