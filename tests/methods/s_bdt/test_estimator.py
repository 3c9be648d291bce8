"""S-BDT: it learns, its model is additive, and its ledger says what is and is not covered."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.methods.s_bdt.curator import HALVED, SETTINGS
from dprepro.methods.s_bdt.estimator import SBDTClassifier, SBDTRegressor
from dprepro.methods.s_bdt.losses import UNIT
from dprepro.privacy.subsampling import renyi_multiplier

FEATURES = (NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b")))
LABELS = Domain(FEATURES, ("0", "1"))
RANGE = Domain(FEATURES, (0.0, 20.0))
QUICK = {"n_trees": 20, "max_depth": 3, "sampling": 1.0, "delta": 1e-6, "random_state": 0}


def rows(task="binary", n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(n), "c": rng.choice(["a", "b"], n)})
    signal = X["x"].to_numpy() + 0.5 * (X["c"] == "b").to_numpy()
    return X, (signal > 0.75).astype(int) if task == "binary" else 10 * signal


def build(task="binary", **params):
    kind, domain = (SBDTClassifier, LABELS) if task == "binary" else (SBDTRegressor, RANGE)
    return kind(**{**QUICK, "domain": domain, **params})


def test_with_a_generous_budget_it_learns():
    settings = {"epsilon": 50.0, "n_trees": 100, "learning_rate": 0.3}
    assert build(**settings).fit(*rows()).score(*rows(seed=1)) > 0.9
    numbers = build("regression", residual_bound=1.0, **settings).fit(*rows("regression"))
    assert numbers.score(*rows("regression", seed=1)) > 0.9


def test_the_first_score_is_near_the_mean():
    model = build("regression", epsilon=50.0, initial_share=0.1, initial_bound=1.0, n_trees=1)
    X, y = rows("regression")
    start = model.fit(X, y).intercept_
    assert 10 + 10 * start == pytest.approx(y.mean(), abs=0.05)
    assert build("regression", n_trees=1).fit(X, y).intercept_ == 0


def test_trees_split_one_feature_each_in_turn():
    model = build(n_trees=1, epsilon=50.0).fit(*rows())
    assert np.ptp(model.shapes_[0]) > 0
    assert not model.shapes_[1].any()
    shapes = build(n_trees=2, epsilon=50.0).fit(*rows()).shapes_
    assert all(np.ptp(shape) > 0 for shape in shapes)
    for shape in shapes:
        assert (np.rint(shape / UNIT) * UNIT == shape).all()


def test_a_leaf_is_at_most_its_bound_times_the_rate():
    model = build(n_trees=2, leaf_bound=0.25, ridge=0.0, epsilon=0.1).fit(*rows(n=100))
    largest = max(np.abs(shape).max() for shape in model.shapes_)
    assert largest == pytest.approx(0.025, abs=UNIT)


@pytest.mark.parametrize("sampling", [1.0, 0.5])
def test_the_sound_variant_spends_its_budget_and_holds(sampling):
    ledger = build(sampling=sampling, random_state=None).fit(*rows()).ledger_
    assert ledger.holds
    assert 0.995 < ledger.spent_epsilon() <= 1
    assert not ledger.floating_point


def test_the_first_score_has_its_share_of_the_budget():
    model = build("regression", initial_share=0.2, random_state=None).fit(*rows("regression"))
    initial, trees = model.ledger_.entries
    assert initial.pure_epsilon == pytest.approx(0.2)
    assert model.ledger_.holds
    assert trees.sampling == 1


def test_as_published_curvatures_have_half_the_noise_and_the_ledger_counts_it():
    published = {"as_published": True, "random_state": None}
    little = build(denominator_share=0.04, **published).fit(*rows()).ledger_
    (entry,) = little.entries
    counted = renyi_multiplier(1.0, 1e-6, rate=1.0, steps=20)
    assert entry.noise_multiplier == pytest.approx(counted / math.sqrt(1.12))
    assert little.within_budget
    assert (little.gaps, little.unaccounted) == ([], [SETTINGS])
    much = build(denominator_share=0.5, **published).fit(*rows()).ledger_
    assert much.spent_epsilon() > 1.3
    assert (much.gaps, much.unaccounted) == ([HALVED], [SETTINGS])
    assert not little.holds
    assert not much.holds


def test_as_published_numbers_of_rows_have_all_their_noise():
    ledger = build("regression", as_published=True, denominator_share=0.5).fit(
        *rows("regression")
    ).ledger_  # fmt: skip
    counted = renyi_multiplier(1.0, 1e-6, rate=1.0, steps=20)
    assert ledger.entries[0].noise_multiplier == pytest.approx(counted)
    assert ledger.within_budget


def test_settings_chosen_on_the_rows_are_named():
    ledger = build(settings_read_rows=True, random_state=None).fit(*rows()).ledger_
    assert ledger.unaccounted == [SETTINGS]
    assert not ledger.holds


@pytest.mark.parametrize(("name", "lists"), [("s-bdt", [SETTINGS]), ("s-bdt-sound", [])])
def test_the_methods_are_the_two_variants(name, lists):
    setting = Setting("binary", 1.0, 1e-6, LABELS, None)
    model = (
        get(name).build(setting, n_trees=4, sampling=1.0, denominator_share=0.04).fit(*rows(n=200))
    )
    assert model.ledger_.unaccounted == lists
    assert model.as_published == (name == "s-bdt")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_trees": 0}, "n_trees must be an integer"),
        ({"max_depth": 13}, "max_depth must be an integer from 1 to 12"),
        ({"sampling": 0}, "sampling must be a number above 0"),
        ({"denominator_share": 1}, "denominator_share must lie strictly between 0 and 1"),
        ({"residual_bound": 0}, "residual_bound must be a number above 0 and at most 100"),
        ({"leaf_bound": 101}, "leaf_bound must be a number above 0 and at most 100"),
        ({"learning_rate": 2}, "learning_rate must be a number above 0 and at most 1"),
        ({"border": -1}, "border must be a finite number of at least 0"),
        ({"initial_share": 0.1}, "initial_share is for numbers"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        build(**wrong).fit(*rows(n=50))
    with pytest.raises(ValueError, match=message):
        build(**wrong).check_parameters()
