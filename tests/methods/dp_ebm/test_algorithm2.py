"""Algorithm 2 as it is to be read: by hand, and against the kernel."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm import algorithm2, curator
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm.losses import LogisticLoss, SquaredLoss
from tests.methods.dp_ebm.lab import noise, problem


def test_two_steps_by_hand():
    """Two bins with a row each, one leaf a bin; targets 1 and 3, learning rate 1/2, counts 2."""
    codes, cuts = np.array([[0, 1]], np.uint8), np.array([[1, 255]] * 2, np.uint8)
    noise = np.array([[0.5, 0.0], [0.0, -0.25]])
    shapes = algorithm2.boost(
        codes, np.array([1.0, 3.0]), cuts, noise, np.full((1, 2), 2.0), np.array([2]), 0.5,
        SquaredLoss(),
    )  # fmt: skip
    # Leaf 1: (0.5 + 0.5) / 2 = 0.5, then 0.5 * 0.5 / 2 = 0.125. Leaf 2: 1.5 / 2 = 0.75, then
    # (0.5 * 2.25 - 0.25) / 2 = 0.4375.
    np.testing.assert_allclose(shapes, [[0.625, 1.1875]], rtol=1e-15)


def test_a_leaf_of_no_rows_adds_nothing_and_one_of_half_a_row_is_divided_by_it():
    """Counts are noisy."""
    codes, cuts = np.array([[0, 1]], np.uint8), np.array([[1, 255]], np.uint8)
    shapes = algorithm2.boost(
        codes, np.array([1.0, 3.0]), cuts, np.zeros((1, 2)), np.array([[0.0, 0.5]]), np.array([2]),
        0.5, SquaredLoss(),
    )  # fmt: skip
    np.testing.assert_array_equal(shapes, [[0.0, 3.0]])


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredLoss(clip=0.5), SquaredLoss()], ids=str)
def test_the_kernel_does_the_same(n_features, loss):
    """The last feature has a bin of missing values behind the others, which no row may be in.

    2e-5 is for residuals and leaf averages that are rounded to grids.
    """
    case = problem([7, 32, 2, 5, 9][:n_features], 3)
    case.codes[-1] = np.minimum(case.codes[-1], case.n_bins[-1] - 2)
    expected = case.by_the_paper(loss)
    np.testing.assert_allclose(case.shapes(loss), expected, atol=2e-5)
    assert np.abs(expected).max() > 0.005


# --- a whole fit --------------------------------------------------------------------------------

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("flat", 2, 2),
    CategoricalFeature("c", ("a", "b", "rare", "rarer")),
)
LABELS = Domain(FEATURES, ("0", "1"))
RANGE = Domain(FEATURES, (-1.0, 2.0))
FITS = {
    "classification": (DPEBMClassifier, LABELS, LogisticLoss(), {}),
    "classification, four leaves": (DPEBMClassifier, LABELS, LogisticLoss(), {"max_leaves": 4}),
    "classification, empty first bin": (
        DPEBMClassifier, LABELS, LogisticLoss(), {"empty_first_bin": True},
    ),
    "regression, published": (DPEBMRegressor, RANGE, SquaredLoss.published(RANGE), {}),
    "regression, sound": (
        DPEBMRegressor, RANGE, SquaredLoss.sound(RANGE), {"sensitivity": "sound"},
    ),
}  # fmt: skip


def table(rows=1500):
    """Return X with missing values and categories that share a bin, labels and targets."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(rows) < 0.2, np.nan, rng.random(rows))
    c = rng.choice(["a", "b", "rare", "rarer"], rows, p=[0.43, 0.43, 0.08, 0.06])
    X = pd.DataFrame({"x": x, "flat": 2.0, "c": c})
    signal = np.where(np.isnan(x), 1.0, np.sin(6 * np.nan_to_num(x))) + (c == "b") - 0.5
    return X, (rng.logistic(size=rows) < 2 * signal).astype(int), np.clip(signal, -1, 2)


class Kernel:
    """Lets the kernel run, and keeps what it is given."""

    def __init__(self, monkeypatch):
        self._boost = curator.boost
        monkeypatch.setattr(curator, "boost", self)

    def __call__(self, *given):
        self.given = given
        shapes, self.factors, sums = self._boost(*given)
        return shapes, self.factors, sums


@pytest.mark.parametrize("name", FITS)
def test_a_fit_with_missing_values_and_categories_is_that_of_the_paper(name, monkeypatch):
    """What `fit` sets is Algorithm 2 on the codes, noise and cuts that it drew, for 20 epochs."""
    estimator, domain, loss, settings = FITS[name]
    X, labels, numbers = table()
    kernel = Kernel(monkeypatch)
    model = estimator(
        20.0, n_epochs=20, learning_rate=0.3, max_bins=8, domain=domain, random_state=0, **settings
    ).fit(X, labels if loss.is_logistic else numbers)
    codes, y, given, *_ = kernel.given
    cuts, normals, scale, counts = given.cuts, given.normals, given.scale, given.counts
    n_bins, rate = given.n_bins, given.rate
    drawn = rate * np.ldexp(noise(normals, scale * kernel.factors).astype(float), -loss.part_bits)
    targets = y if loss.is_logistic else np.ldexp(y.astype(float), -loss.score_bits)
    shapes = algorithm2.boost(codes, targets, cuts, drawn, counts, n_bins, rate, loss)
    assert len(cuts) == 20 * 3
    in_missing_bin = model.bins_[0].encode(X["x"]) == model.bins_[0].missing_bin
    np.testing.assert_array_equal(in_missing_bin, X["x"].isna())
    assert n_bins[2] == 3
    order = loss.row_order(loss.whole(labels if loss.is_logistic else numbers))
    for k, bins in enumerate(model.bins_):
        np.testing.assert_array_equal(bins.encode(X.iloc[:, k])[order], codes[k])
        np.testing.assert_array_equal(model.bin_counts_[k], counts[k, : n_bins[k]])
    exact = sum(shapes[k][codes[k]] for k in range(3))
    expected = loss.offset + loss.unit * (loss.start + exact)
    np.testing.assert_allclose(model._scores(X)[order], expected, atol=1e-4)
    assert np.ptp(exact) > 0.2
