"""Under add/remove-one nothing but what was released decides a DP-EBM: not even how many rows.

That two are there is the exception, which the ledger names.

A table and the same table with one row more are fitted with noise that cancels the row: every noisy
histogram and leaf sum is then the same. Whatever still differs was read without being paid for.
"""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm import curator
from dprepro.methods.dp_ebm.binning import histogram
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm.kernel import boost
from dprepro.methods.dp_ebm.losses import LARGEST, LogisticLoss, SquaredLoss
from tests.methods.dp_ebm.lab import noise, number_that_rounds_to, parts
from tests.released import ROWS, published, table

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("z", -5, 5),
    CategoricalFeature("c", ("a", "b", "d")),
)
MAX_BINS = 6
"""12 rows fill bins of 2 rows, 13 do not: whole counts notice a row more."""


def cancelling_histogram(column, feature, max_bins):
    """Take the last row's part out of the counts, as noise would that cancels it."""
    cells, counts = histogram(column, feature, max_bins)
    if len(column) > ROWS:
        counts = counts - histogram(column.iloc[-1:].infer_objects(), feature, max_bins)[1]
    return cells, counts


def cancelling_boost(codes, targets, given, threads, states):
    """Boost all rows, with noise that takes the last row's part out of every leaf sum."""
    loss = LogisticLoss() if given.logistic else SquaredLoss(clip=0.5)
    others = np.ascontiguousarray(codes[:, :-1])
    lowered, score = given.normals.copy(), given.start
    for step, cuts in enumerate(given.cuts):
        k = step % len(codes)
        so_far = replace(given, cuts=given.cuts[: step + 1], normals=given.normals[: step + 1])
        shapes, factors, _ = boost(others, targets[:-1], so_far, threads)
        within = round(factors[step] * LARGEST) if given.adaptive else given.bound
        (part,) = parts(loss, targets[-1:].astype(np.int64), np.array([score]), int(within))
        leaf = (cuts <= codes[k, -1]).sum()
        scale = factors[step] * given.scale
        drawn = noise(given.normals[step : step + 1], np.array([scale]))[0, leaf]
        lowered[step, leaf] = number_that_rounds_to(int(drawn - part), scale)
        score = given.start + sum(
            shape[code] for shape, code in zip(shapes, codes[:, -1], strict=True)
        )
    return boost(codes, targets, replace(given, normals=lowered), threads, states)


def same(one, other):
    """Say whether two models are equal to the last bit."""
    numbers = zip(one["numbers"], other["numbers"], strict=True)
    return (
        one["ledger"] == other["ledger"]
        and one["bins"] == other["bins"]
        and all(np.array_equal(a, b) for a, b in numbers)
    )


def pair(kind, adjacency, seed, monkeypatch):
    """Return what is published of the fits without and with the row whose part is cancelled."""
    X, targets = table()
    estimator = DPEBMClassifier if kind == "labels" else DPEBMRegressor
    domain = Domain(FEATURES, ("0", "1") if kind == "labels" else (-1.0, 4.0))
    model = estimator(
        200.0, composition="joint", sensitivity="sound", adjacency=adjacency, max_bins=MAX_BINS,
        n_epochs=4, learning_rate=0.1, domain=domain, random_state=seed,
    )  # fmt: skip
    without = published(model.fit(X[:-1], targets[kind][:-1]))
    with monkeypatch.context() as patch:
        patch.setattr(curator, "histogram", cancelling_histogram)
        patch.setattr(curator, "boost", cancelling_boost)
        return without, published(model.fit(X, targets[kind]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_with_the_same_answers_a_row_more_gives_the_same_model(kind, seed, monkeypatch):
    assert same(*pair(kind, "add/remove-one", seed, monkeypatch))


@pytest.mark.parametrize(
    ("adjacency", "named"),
    [
        ("add/remove-one", "that there are at least two rows"),
        ("zero-out", "number of rows"),
        ("replace-one", "number of rows"),
    ],
)
def test_what_is_read_of_the_number_of_rows_is_named_as_public(adjacency, named):
    X, targets = table()
    domain = Domain(FEATURES, ("0", "1"))
    model = DPEBMClassifier(adjacency=adjacency, n_epochs=1, domain=domain)
    assumed = model.fit(X[:2], targets["labels"][:2]).ledger_.assumed_public
    assert [text for text in assumed if "rows" in text] == [named]
    with pytest.raises(ValueError, match="too few rows: a minimum of 2"):
        model.fit(X[:1], targets["labels"][:1])


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_an_exact_number_of_rows_would_be_noticed(kind, monkeypatch):
    """Zero-out takes it as public and merges cells by it."""
    pairs = [pair(kind, "zero-out", seed, monkeypatch) for seed in range(5)]
    assert not all(same(*models) for models in pairs)


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_a_row_that_is_not_cancelled_is_noticed(kind, monkeypatch):
    monkeypatch.setitem(globals(), "cancelling_boost", boost)
    assert not same(*pair(kind, "add/remove-one", 0, monkeypatch))
