"""Nothing but what was released decides a DP-EBM+: not even how many rows there are.

A table and the same table with one row more are fitted with answers out of which the row's own part
is taken: every noisy answer is then the same. Whatever still differs was read without being paid
for.
"""

import numpy as np
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.ebm_plus import booster as batch_boosting
from dprepro.ebm_plus import estimator as dp_ebm_plus
from dprepro.ebm_plus.booster import BatchBooster
from dprepro.ebm_plus.grid import fine_cells
from dprepro.ebm_plus.groups import exact_answers
from dprepro.ebm_plus.kernel import magnitude_counts, residual_sums
from dprepro.privacy.mechanisms import NoiseSource
from tests.released import ROWS, published, same, table

ATOL = 1e-4

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("z", -5, 1000),
    CategoricalFeature("c", ("a", "b", "d")),
)
TARGETS = {"labels": ("0", "1"), "numbers": (-2.0, 4.0)}
LAST_TARGET = {"labels": 0.5, "numbers": (3.13 - 1) / 6}
"""Of the row more, in the unit that is summed."""


def own_histograms():
    last = table()[0].iloc[-1:]
    return np.concatenate(
        [exact_answers(f, fine_cells(last[f.name].infer_objects(), f)[1]) for f in FEATURES]
    )


def cancelling_source(kind):
    """Return a source whose noise takes the last row out of the totals and the histograms."""

    class CancellingSource(NoiseSource):
        def gaussian(self, shape, *, releases, **parameters):
            noise = super().gaussian(shape, releases=releases, **parameters)
            if releases.startswith("number of rows"):
                return noise - np.power(LAST_TARGET[kind], np.arange(shape[0]))
            return noise - own_histograms() if releases.startswith("rows per cell") else noise

    return CancellingSource


def cancelling_sums(scores, targets, last, change, codes, n_bins, bound, logistic):
    """Sum over all rows, and take out what the last one adds."""
    sums = residual_sums(scores, targets, last, change, codes, n_bins, bound, logistic)
    alone = [part[-1:].copy() for part in (scores, targets, last)]
    return sums - residual_sums(*alone, np.zeros_like(change), codes[-1:], n_bins, bound, logistic)


def cancelling_counts(scores, targets, last, change, n_cells):
    """Count all rows, and take out the last one."""
    counts = magnitude_counts(scores, targets, last, change, n_cells)
    alone = [part[-1:].copy() for part in (scores, targets, last)]
    return counts - magnitude_counts(*alone, np.zeros_like(change), n_cells)


PARTS = ("totals and histograms", "residuals", "magnitudes")


def cancel(patch, kind, parts=PARTS):
    if PARTS[0] in parts:
        patch.setattr(dp_ebm_plus, "NoiseSource", cancelling_source(kind))
    if PARTS[1] in parts:
        patch.setattr(batch_boosting, "residual_sums", cancelling_sums)
    if PARTS[2] in parts:
        patch.setattr(batch_boosting, "magnitude_counts", cancelling_counts)


def pair(kind, seed, monkeypatch, parts=PARTS, rows=ROWS):
    """Return what is published of the fits without and with the row whose part is cancelled."""
    X, targets = table(rows)
    estimator = DPEBMPlusClassifier if kind == "labels" else DPEBMPlusRegressor
    model = estimator(200.0, n_epochs=6, domain=Domain(FEATURES, TARGETS[kind]), random_state=seed)
    without = published(model.fit(X[:-1], targets[kind][:-1]))
    with monkeypatch.context() as patch:
        cancel(patch, kind, parts)
        return without, published(model.fit(X, targets[kind]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_with_the_same_answers_a_row_more_gives_the_same_model(kind, seed, monkeypatch):
    one, other = pair(kind, seed, monkeypatch)
    assert same(one, other, atol=ATOL)
    assert len(one["numbers"][2]) > 3
    assert np.abs(one["numbers"][4]).max() > 0.05


@pytest.mark.parametrize(
    ("kind", "left"), [*(("numbers", part) for part in PARTS), *(("labels", p) for p in PARTS[:2])]
)
def test_a_row_that_is_not_cancelled_is_noticed(kind, left, monkeypatch):
    parts = [part for part in PARTS if part != left]
    assert not all(same(*pair(kind, seed, monkeypatch, parts), atol=ATOL) for seed in range(6))


def exact_in_boosting(monkeypatch):
    def exact(targets, functions, rows, **others):
        return BatchBooster(targets, functions, rows=float(targets.size), **others)

    monkeypatch.setattr(dp_ebm_plus, "BatchBooster", exact)


def exact_in_merging(monkeypatch):
    merge = dp_ebm_plus._DPEBMPlus._merge

    def exact(self, domain, cells, noisy, deviation, rows, *rest):
        return merge(self, domain, cells, noisy, deviation, float(cells[0].size), *rest)

    monkeypatch.setattr(dp_ebm_plus._DPEBMPlus, "_merge", exact)


def exact_in_fewest(monkeypatch):
    merge = dp_ebm_plus._DPEBMPlus._merge

    def exact(self, domain, cells, *rest):
        *rest, fewest = rest
        return merge(self, domain, cells, *rest, fewest * cells[0].size / MANY)

    monkeypatch.setattr(dp_ebm_plus._DPEBMPlus, "_merge", exact)


def exact_in_clipping(monkeypatch):
    set_bound = BatchBooster._set_bound

    def exact(self, noise):
        set_bound(self, noise)
        if self.targets.size > ROWS:
            self.bound *= 0.9

    monkeypatch.setattr(BatchBooster, "_set_bound", exact)


@pytest.mark.parametrize(
    ("kind", "leak"),
    [
        ("labels", exact_in_boosting),
        ("numbers", exact_in_boosting),
        ("labels", exact_in_merging),
        ("numbers", exact_in_merging),
        ("numbers", exact_in_clipping),
    ],
)
def test_an_exact_number_of_rows_would_be_noticed(kind, leak, monkeypatch):
    leak(monkeypatch)
    assert not all(same(*pair(kind, seed, monkeypatch), atol=ATOL) for seed in range(6))


MANY = 150


@pytest.mark.parametrize("leak", [None, exact_in_fewest])
def test_nor_does_the_number_of_rows_decide_how_many_a_bin_holds(leak, monkeypatch):
    """Of few rows a twelfth is fewer than a bin is to hold, and that number hides."""
    if leak:
        leak(monkeypatch)
    agree = [same(*pair("labels", seed, monkeypatch, rows=MANY), atol=ATOL) for seed in range(20)]
    assert all(agree) == (leak is None)
