"""What is said about the noise in a shape function, against noise drawn many times."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.shapes import noise_variance, shapes_of
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm import curator
from dprepro.methods.dp_ebm.binning import random_cuts
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm.kernel import boost
from dprepro.methods.dp_ebm.losses import SCORE_BITS
from dprepro.privacy.sampling import Bits, ExactSampler

DOMAIN = Domain(
    (NumericFeature("x", 0, 10, missing=True), CategoricalFeature("c", ("a", "b", "z"))),
    ("0", "1"),
)


def table(rows=4000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.exponential(2, rows), "c": rng.choice(["a", "b", "z"], rows)})
    X.loc[rng.random(rows) < 0.2, "x"] = np.nan
    y = (rng.random(rows) < 1 / (1 + np.exp(X["x"].fillna(5) - 2))).astype(int).to_numpy()
    return X, y


def centred(values, counts):
    return values - (values @ counts / counts.sum())[:, None]


@pytest.mark.parametrize("empty_first_bin", [False, True])
@pytest.mark.parametrize(("n_bins", "max_leaves"), [(1, 3), (2, 3), (7, 1), (7, 2), (12, 4)])
def test_without_feedback_the_formula_is_the_spread_of_noise_over_counts(
    n_bins, max_leaves, empty_first_bin
):
    """Noise drawn afresh for every step and leaf, divided by the leaf's count, centred."""
    rng = np.random.default_rng(1)
    counts, scales = rng.uniform(5, 50, n_bins), rng.uniform(0.5, 2, 40)
    cuts = random_cuts(rng, np.array([n_bins]), 40, max_leaves, empty_first_bin)
    cuts = cuts[:, : max_leaves - 1]
    drawn = np.zeros((20_000, n_bins))
    for step in range(40):
        leaf = (cuts[step] <= np.arange(n_bins)[:, None]).sum(axis=1)
        weights = np.bincount(leaf, counts)
        drawn += (rng.normal(0, scales[step], (20_000, weights.size)) / weights)[:, leaf]
    stated = np.sqrt(np.maximum(noise_variance(cuts, scales, counts, np.zeros(n_bins)), 0))
    np.testing.assert_allclose(stated, centred(drawn, counts).std(axis=0), rtol=0.03, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"composition": "joint", "sensitivity": "sound"}])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_refits_with_the_same_bins_spread_by_no_more_and_not_much_less(task, settings, monkeypatch):
    seen = []
    monkeypatch.setattr(curator, "boost", lambda *given: seen.append(given) or boost(*given))
    X, y = table()
    if task == "binary":
        model = DPEBMClassifier(1.0, domain=DOMAIN, random_state=0, **settings).fit(X, y)
    else:
        domain = Domain(DOMAIN.features, (0.0, 1.0))
        model = DPEBMRegressor(1.0, domain=domain, random_state=0, **settings).fit(X, 0.9 * y)
    codes, targets, given, *_ = seen[0]
    sampler, shape = ExactSampler(Bits(1)), given.normals.shape[:2]
    drawn = (replace(given, normals=sampler.normals(shape)) for _ in range(300))
    refits = np.ldexp(
        [boost(codes, targets, anew).shapes.astype(float) for anew in drawn], -SCORE_BITS
    )
    for k, bins in enumerate(given.n_bins):
        spread = centred(refits[:, k, :bins], given.counts[k, :bins]).std(axis=0)
        ratio = spread / model.shape_noise_[k]
        assert ratio.min() > 0.3
        assert np.median(ratio) <= 1.05
        assert ratio.max() < 1.25


def test_noise_is_in_the_unit_of_the_target_and_shrinks_with_the_budget():
    X, y = table(500)
    wide = Domain(DOMAIN.features, (0.0, 1000.0))
    one = DPEBMRegressor(1.0, domain=Domain(DOMAIN.features, (0.0, 1.0)), random_state=0).fit(X, y)
    thousand = DPEBMRegressor(1.0, domain=wide, random_state=0).fit(X, 1000 * y)
    for a, b in zip(one.shape_noise_, thousand.shape_noise_, strict=True):
        np.testing.assert_allclose(1000 * a, b)
    rich = DPEBMRegressor(8.0, domain=wide, random_state=0).fit(X, 1000 * y)
    assert rich.shape_noise_[1].mean() < thousand.shape_noise_[1].mean()


def test_shapes_give_edges_densities_and_a_bin_for_missing_values():
    X, y = table()
    model = DPEBMClassifier(4.0, domain=DOMAIN, random_state=0).fit(X, y)
    age, letter = shapes_of(model)
    assert (age.name, age.edges[0], age.edges[-1]) == ("x", 0, 10)
    assert age.labels[-1] == "(missing)"
    assert age.edges.size == age.values.size == len(age.labels)
    filled = age.densities[:-1] @ np.diff(age.edges) + age.densities[-1]
    assert filled == pytest.approx(1.0)
    assert letter.edges is None
    assert letter.densities.sum() == pytest.approx(1.0)
    assert not age.is_edited
    np.testing.assert_array_equal(age.released, model.shape_functions_[0])


def test_without_privacy_no_noise_is_claimed():
    X, y = table(300)
    model = EBMClassifier(outer_bags=1, n_epochs=20, random_state=0).fit(X, y)
    assert [shape.noise for shape in shapes_of(model)] == [None, None]


@pytest.mark.parametrize("n_bins", [1, 2, 32])
def test_noise_is_added_up_part_by_part_with_the_same_bits(n_bins):
    rng, steps = np.random.default_rng(5), 5000
    counts = rng.uniform(1, 9, n_bins)
    cuts = np.sort(rng.integers(1, 40, (steps, 2)), axis=1).astype(np.uint8)
    scales = rng.uniform(1, 2, steps)
    found = np.zeros(n_bins)
    for part in np.split(np.arange(steps), [1, 1000, 4096]):
        found = noise_variance(cuts[part], scales[part], counts, found)
    at_once = noise_variance(cuts, scales, counts, np.zeros(n_bins))
    np.testing.assert_array_equal(found, at_once)
