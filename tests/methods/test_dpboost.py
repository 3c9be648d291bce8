"""DPBoost with the options of its authors' code: what configs state is what is fitted."""

import numpy as np
import pytest

from dprepro.data.encode import ENCODINGS
from dprepro.methods.dpboost.variants import of_code
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from tests.methods.test_methods import problem


def fit(name, task="binary", seed=0, epsilon=8.0, **params):
    X, y, domain = problem(task, rows=4000)
    method = get(name)
    X = ENCODINGS[method.encoding](domain).transform(X)
    return method.build(Setting(task, epsilon, 0.0, domain, seed), **params).fit(X, y), X


@pytest.mark.parametrize(("task", "scale"), [("binary", (0.0, 1.0)), ("regression", (-1.0, 1.0))])
def test_by_default_labels_are_0_and_1_and_other_targets_minus_1_to_1(task, scale):
    model, _ = fit("dpboost-2021", task)
    assert model.variant.scale == scale
    assert model.variant.equal_parts
    assert task in model.variant.centred


def test_a_config_can_state_every_option():
    model, _ = fit(
        "dpboost-2021", parts="geometric", scale="-1..1", start="zero", first_gain=True, n_trees=7
    )
    assert model.variant == of_code("geometric", "-1..1", "zero", True)
    assert len(model.trees_) == 7


@pytest.mark.parametrize("name", ["dpboost", "dpboost-2021", "dpboost-2021-indicators"])
def test_unknown_parameters_are_refused(name):
    with pytest.raises(TypeError, match="balance"):
        fit(name, balance=True)


def test_one_hot_has_a_feature_for_each_category():
    model, X = fit("dpboost-2021-indicators")
    names = [bins.feature.name for bins in model.bins_]
    assert names == list(X.columns) == ["x", "c = a", "c = b"]
    assert [bins.n_bins for bins in model.bins_[1:]] == [2, 2]
    codes, _ = fit("dpboost-2021")
    assert [bins.feature.name for bins in codes.bins_] == ["x", "c"]


def test_a_noise_seed_draws_the_same_noise_in_every_split_and_the_ledger_says_so():
    (first, X), (second, _) = (fit("dpboost-2021", seed=s, noise_seed=42) for s in (0, 1))
    assert first.random_state == second.random_state == 42
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    other, _ = fit("dpboost-2021", seed=1)
    assert not np.array_equal(first.decision_function(X), other.decision_function(X))
    assert any("fixed seed" in read for read in first.ledger_.unaccounted)
