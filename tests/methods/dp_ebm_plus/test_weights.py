"""Weights of rows: what a row adds is never more than without one, and fits that use them."""

import math
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.estimators.weights import read_weights
from dprepro.methods.dp_ebm_plus import curator
from dprepro.methods.dp_ebm_plus.bins import histogram
from dprepro.methods.dp_ebm_plus.curator import WEIGHTED, ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, POISSON, SQUARED, Softmax
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    ClassCounts,
    ClassResiduals,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Merge,
    Residuals,
    Start,
    Totals,
    totals_sensitivity,
)
from dprepro.methods.dp_ebm_plus.weighing import weigh, weigh_vectors, weighted_counts
from tests.methods.dp_ebm_plus.coded_rows import random_codes
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, FEATURES, RANGE, table

CLASSES = Domain(FEATURES, ("no", "perhaps", "yes"))
COUNTS = Domain(FEATURES, (0.0, 50.0))
KINDS = {
    "labels": (LOGISTIC, DOMAIN, (0.0, 1.0)),
    "numbers": (SQUARED, RANGE, (-5.0, -0.1, 5.0, 1e4)),
    "counts": (POISSON, COUNTS, (0.0, 3.0, 49.9, 1e4)),
    "classes": (Softmax(3), CLASSES, (0.0, 2.0)),
}
WEIGHTS = (0, 1, 77, 255, 256, 257, 2**30, -3)
"""In whole numbers of 1/256; the last three are such as no reader lets through."""

ALL = pytest.mark.parametrize("kind", KINDS)


def queries(kind, rng, exact):
    """Yield what fits ask, with random codes; the bins of all features are told."""
    codes = random_codes(rng, features=3)
    for code in codes[1:]:
        exact.follow(Merge(code.feature, np.zeros(exact_cells(code.feature), int), code.n_bins))
    if kind == "classes":
        exact.follow(Start(to_units(rng.choice([-40.0, 0.0, 3.0], 3))))
        yield ClassCounts(1.0, 1.0)
        yield ClassResiduals(0.7, 1.0, codes, 0.7)
    else:
        powers = KINDS[kind][0].powers
        exact.follow(Start(int(to_units(float(rng.choice([-40.0, -0.2, 0.0, 3.0]))))))
        yield Totals.up_to(powers)
        yield CodedResiduals(0.7, 1.0, codes, 0.7)
    if kind in ("numbers", "counts"):
        yield Magnitudes(1.0, 1.0)
        yield Residuals(0.3, 1.0, INTERCEPT, 0.3)
    for k, feature in enumerate(FEATURES):
        yield CodedHistogram.of(histogram(k, feature, 20.0, 1000.0).code)


def exact_cells(k):
    X, *_ = table(1)
    found = ExactAnswers.of(Rows(X, np.zeros(1)), DOMAIN, LOGISTIC)
    return found.answer(CodedHistogram.of(histogram(k, FEATURES[k], 1.0, 9.0).code)).numbers.size


def of_rows(kind, targets, weights, seed=0):
    X, *_ = table(len(targets), seed)
    loss, domain, _ = KINDS[kind]
    given = None if weights is None else np.array(weights, np.int32)
    return ExactAnswers.of(Rows(X, np.array(targets, float), given), domain, loss)


@ALL
@pytest.mark.parametrize("seed", range(4))
def test_no_row_of_any_weight_moves_an_answer_by_more_than_is_charged(kind, seed):
    largest = {}
    for target, weight in product(KINDS[kind][2], WEIGHTS):
        exact = of_rows(kind, [target], [weight], seed)
        for number, query in enumerate(queries(kind, np.random.default_rng(seed), exact)):
            norm = np.linalg.norm(exact.answer(query).value) / query.charged
            assert norm <= 1 + 1e-12
            if weight in (0, -3):
                assert norm == 0
            largest[number] = max(largest.get(number, 0.0), norm)
    # A search that could find nothing would prove nothing.
    assert max(largest.values()) > 0.99
    assert min(largest.values()) > 0.01


@ALL
def test_rows_of_the_largest_weight_answer_as_rows_without_weights(kind):
    targets = np.resize(KINDS[kind][2], 300)
    plain, weighted = of_rows(kind, targets, None), of_rows(kind, targets, [256] * 300)
    asked = queries(kind, np.random.default_rng(5), plain)
    for query, same in zip(asked, queries(kind, np.random.default_rng(5), weighted), strict=True):
        np.testing.assert_array_equal(plain.answer(query).value, weighted.answer(same).value)


@ALL
def test_a_row_of_weight_three_quarters_is_three_rows_of_a_quarter(kind):
    targets = np.resize(KINDS[kind][2], 40)
    X, *_ = table(40)
    loss, domain, _ = KINDS[kind]
    whole = ExactAnswers.of(Rows(X, targets, np.full(40, 192, np.int32)), domain, loss)
    thrice = np.repeat(np.arange(40), 3)
    rows = Rows(X.iloc[thrice], targets[thrice], np.full(120, 64, np.int32))
    parts = ExactAnswers.of(rows, domain, loss)
    asked = queries(kind, np.random.default_rng(6), whole)
    for query, same in zip(asked, queries(kind, np.random.default_rng(6), parts), strict=True):
        np.testing.assert_allclose(
            whole.answer(query).value, parts.answer(same).value, rtol=1e-5, atol=1e-4
        )


def test_products_are_truncated_towards_zero():
    rng = np.random.default_rng(0)
    numbers = rng.integers(-(2**25), 2**25, 5000).astype(np.int32)
    weights = rng.integers(0, 257, 5000).astype(np.int32)
    expected = np.trunc(numbers * (weights / 256)).astype(int)
    vectors = np.stack([numbers, -numbers], axis=1)
    weigh_vectors(vectors, weights)
    weigh(numbers, weights)
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(vectors, np.stack([expected, -expected], axis=1))
    for number, weight in product((-(2**31) + 1, 2**31 - 1), (2**31 - 1, -(2**31))):
        extreme = np.array([number], np.int32)
        weigh(extreme, np.array([weight], np.int32))
        assert extreme[0] == (number if weight > 0 else 0)


def test_weights_above_the_largest_count_once():
    found = weighted_counts(np.array([0, 1, 1]), np.array([300, 256, -5], np.int32), 3)
    np.testing.assert_array_equal(found, [256, 256, 0])


def test_an_exchange_of_weights_moves_totals_by_no_more_than_is_stated():
    for powers in (1, 2):
        stated = totals_sensitivity(powers, weighted=True)
        assert stated.stated == totals_sensitivity(powers).stated
        grid = list(product(np.linspace(0, 1, 9), np.linspace(-0.5, 0.5, 41)))
        parts = np.array([[q, q * t, 4 * q * t * t][: powers + 1] for q, t in grid])
        moved = np.linalg.norm(parts[:, None] - parts, axis=2)
        assert stated.replace_one - 1e-6 <= moved.max() <= stated.replace_one
    assert totals_sensitivity(1).replace_one < totals_sensitivity(1, weighted=True).replace_one


def test_weights_are_shares_of_the_largest_rounded_down():
    found = read_weights([3.0, 1.5, 1e-9, 0.999 * 3, 0.1], 5, 3.0)
    np.testing.assert_array_equal(found, [256, 128, 0, 255, 8])
    assert found.dtype == np.int32
    for largest in (1e-7, 1 / 3, 7.1, 1e9):
        assert read_weights(np.full(3, largest), 3, largest).tolist() == [256] * 3


X, LABELS, TARGETS = table(2000)
FITS = {
    "labels": (DPEBMPlusClassifier, DOMAIN, LABELS),
    "numbers": (DPEBMPlusRegressor, RANGE, TARGETS),
    "counts": (partial(DPEBMPlusRegressor, loss="poisson"), COUNTS, 3 * np.round(TARGETS + 2)),
    "classes": (DPEBMPlusClassifier, CLASSES, LABELS + (X["x"] > 0.8).to_numpy()),
}


def fit(kind, weights=None, rows=slice(None), largest=1.0, epsilon=1.0, **more):
    made, domain, y = FITS[kind]
    model = made(epsilon, domain=domain, n_epochs=8, random_state=1, largest_weight=largest, **more)
    return model.fit(X.iloc[rows], y[rows], weights)


def scores(model):
    return model.intercept_ + model.contributions(X).sum(axis=1)


@ALL
def test_a_fit_to_the_largest_weight_is_a_fit_without_weights(kind):
    """But for the noise in counts, which is rounded to 1/256 of a row and not to whole rows."""
    plain, weighted = fit(kind), fit(kind, np.full(2000, 7.0), largest=7)
    gap = scores(weighted) - scores(plain)
    assert np.sqrt(np.mean(gap**2)) < 0.02 * scores(plain).std()
    assert [entry.releases for entry in plain.ledger_.entries] == [
        entry.releases for entry in weighted.ledger_.entries
    ]
    assert WEIGHTED in weighted.ledger_.assumed_public
    assert WEIGHTED not in plain.ledger_.assumed_public
    assert weighted.ledger_.spent_epsilon() <= 1 + 1e-5


@pytest.mark.parametrize("kind", ["labels", "numbers", "counts"])
def test_whole_weights_are_repeated_rows(kind):
    """But that a table of fewer rows draws functions further towards 0: rows of labels are many."""
    made, domain, _ = FITS[kind]
    X, labels, targets = table(20_000)
    y = {"labels": labels, "numbers": targets, "counts": 3 * np.round(targets + 2)}[kind]
    times = np.random.default_rng(3).integers(1, 5, y.size)
    model = made(1e3, domain=domain, n_epochs=16, random_state=1, largest_weight=4)
    weighted = clone(model).fit(X, y, times)
    again = np.repeat(np.arange(y.size), times)
    repeated = clone(model).fit(X.iloc[again], y[again])
    gap = np.sqrt(np.mean((scores(weighted) - scores(repeated)) ** 2))
    assert gap < 0.1 * scores(repeated).std()
    assert weighted.bin_counts_[0].sum() == pytest.approx(times.sum() / 4, rel=0.01)


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_pairs_are_learned_of_weighted_rows(kind):
    rng = np.random.default_rng(8)
    rows = pd.DataFrame({"x": rng.random(4000), "money": 1e5 * rng.random(4000), "c": "a"})
    sign = np.sign((rows["x"] - 0.5) * (rows["money"] - 5e4)).to_numpy()
    wrong = rng.random(4000) < 0.5
    # Light rows say the opposite.
    sign = np.where(wrong, -sign, sign)
    y = (sign > 0).astype(int) if kind == "labels" else 3 * sign
    made, domain, _ = FITS[kind]
    model = made(20.0, domain=domain, n_epochs=12, pairs=1, random_state=0)
    model.fit(rows, y, np.where(wrong, 0.02, 1.0))
    assert [(term.pair.first, term.pair.second) for term in model.pairs_] == [(0, 1)]
    # The first cell: below the middle of both.
    assert model.pairs_[0].values[0, 0] > 0.3


def test_rows_of_next_to_no_weight_are_hardly_there():
    other = 1 - LABELS
    both = pd.concat([X, X], ignore_index=True)
    weights = np.repeat([1.0, 0.001], 2000)
    model = DPEBMPlusClassifier(8, domain=DOMAIN, n_epochs=8, random_state=1)
    model.fit(both, np.append(LABELS, other), weights)
    assert model.score(X, LABELS) > 0.75
    assert model.bin_counts_[0].sum() == pytest.approx(2000, rel=0.05)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_share_weights_with_rows(n_jobs, monkeypatch):
    monkeypatch.setattr("dprepro.rows.backends.LEAST_ROWS", 500)
    weights = np.random.default_rng(4).uniform(0.01, 1, 2000)
    found = fit("numbers", weights, n_jobs=n_jobs)
    expected = fit("numbers", weights)
    np.testing.assert_array_equal(found.shape_functions_[0], expected.shape_functions_[0])
    assert found.intercept_ == expected.intercept_


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.append(np.ones(1999), 1.5), "largest_weight, 1, and some weight does not"),
        (np.append(np.ones(1999), 0.0), "must lie above 0"),
        (np.append(np.ones(1999), -1.0), "must lie above 0"),
        (np.append(np.ones(1999), np.nan), "sample_weight contains NaN"),
        (np.append(np.ones(1999), np.inf), "sample_weight contains infinity"),
        (np.ones(1999), "one number for each row of X"),
        (np.ones((2000, 1)), "one number for each row of X"),
        (1.0, "one number for each row of X"),
        (["a"] * 2000, "sample_weight holds something that is no number"),
    ],
)
def test_wrong_weights_are_refused_and_no_value_is_shown(weights, message):
    with pytest.raises(ValueError, match=message) as error:
        fit("labels", weights)
    text = str(error.value)
    assert not any(shown in text for shown in ("1.5", "1999", "2000", "-1"))


@pytest.mark.parametrize("largest", [0.0, -1.0, math.nan, "1", None])
def test_a_largest_weight_is_a_positive_number(largest):
    with pytest.raises(ValueError, match="largest_weight"):
        fit("labels", largest=largest)


def test_weights_of_rows_elsewhere_are_refused_by_name(tmp_path):
    path = tmp_path / "rows.parquet"
    X.assign(y=LABELS).to_parquet(path)
    model = DPEBMPlusClassifier(domain=DOMAIN, n_epochs=2)
    with pytest.raises(ValueError, match="rows in memory alone, but X is a table that is read in"):
        model.fit(path, "y", np.ones(2000))
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(ValueError, match="rows in memory alone, but X is a Dask collection"):
        model.fit(dask.from_pandas(X, npartitions=2), dask.from_pandas(pd.Series(LABELS), 2), [1.0])


def test_fault_weights_above_the_largest_let_through_are_found(monkeypatch):
    """What multiplies residuals limits weights itself: else one row shows more than is charged."""
    row = Rows(X.iloc[:1], np.full(1, 5.0), np.array([2**20], np.int32))
    query = Residuals(0.25, 1.0, INTERCEPT, 0.25)

    def part():
        exact = ExactAnswers.of(row, RANGE, SQUARED)
        exact.follow(Start(0))
        return abs(float(exact.answer(query).value[0]))

    assert part() == 0.25
    monkeypatch.setattr(curator, "weigh", lambda numbers, weights: numbers.__imul__(4))
    assert part() == 1.0
