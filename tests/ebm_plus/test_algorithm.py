"""DP-EBM+ as it is to be read: the page with a plain curator does what the estimator does."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm_plus import (
    DPEBMPlusClassifier,
    DPEBMPlusRegressor,
    algorithm,
    coding,
    curator,
    residuals,
)
from dprepro.ebm_plus import booster as booster_module
from dprepro.ebm_plus.booster import Booster
from dprepro.ebm_plus.clipping import EDGES
from dprepro.ebm_plus.function import Function
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED, LogisticLoss, SquaredLoss
from dprepro.ebm_plus.pace import Pace
from dprepro.ebm_plus.queries import INTERCEPT, CodedResiduals, Magnitudes, Residuals, Totals
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.mechanisms import NoiseSource
from tests.ebm_plus.plain import PlainCurator
from tests.ebm_plus.test_booster import BOTH

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("money", 0, 1e5),
    CategoricalFeature("c", ("a", "b", "unused"), missing=True),
    NumericFeature("same", 3, 3),
)
BUDGET, EPOCHS, SEED = PrivacyBudget(2.0, 1e-6), 5, 3
ATOL = 2e-6
"""The rows' scores and residuals are multiples of 2^-24; functions are of size 1."""


def problem(loss):
    """Return a table with missing values and categories, targets that leave their range, domain."""
    rng = np.random.default_rng(0)
    rows = 2000
    x, money = rng.random(rows), np.exp(rng.normal(4, 2, rows))
    c = rng.choice(["a", "b"], rows)
    signal = np.sin(6 * x) + (money > 100) + (c == "b") - 1
    X = pd.DataFrame({"x": x, "money": money, "c": c.astype(object), "same": 3.0})
    X.loc[rng.random(rows) < 0.2, "x"] = math.nan
    X.loc[rng.random(rows) < 0.1, "c"] = None
    if loss is LOGISTIC:
        return X, (rng.logistic(size=rows) < 2 * signal).astype(int), Domain(FEATURES, ("0", "1"))
    return X, signal + rng.normal(0, 0.3, rows), Domain(FEATURES, (-1.5, 2.0))


def page(loss, curator_type=PlainCurator):
    """Run the page with a plain curator; return it, and what the page returns."""
    X, y, domain = problem(loss)
    plain = curator_type(X, y, domain, loss, np.random.default_rng(SEED))
    return plain, *algorithm.learn(plain, domain, loss, BUDGET, EPOCHS)


def fit(loss):
    X, y, domain = problem(loss)
    estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
    generator = np.random.default_rng(SEED)

    def add_same(_, exact, scale, unit=1.0):
        return exact * unit + scale * generator.normal(size=exact.shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoiseSource, "add_gaussian", add_same)
        return estimator(*BUDGET, n_epochs=EPOCHS, domain=domain).fit(X, y)


def agree(model, bins, functions, intercept, sizes):
    """Say whether a fitted estimator is what the page made, in the unit of the targets."""
    lower, upper = getattr(model, "range_", (-0.5, 0.5))
    width, middle = upper - lower, (lower + upper) / 2
    pairs = [
        *zip((b.cuts for b in model.bins_), (b.cuts for b in bins), strict=True),
        *zip(model.bin_counts_, (f.counts for f in functions), strict=True),
        *zip(model.shape_functions_, (width * f.values for f in functions), strict=True),
        *zip(model.shape_noise_, (width * f.band for f in functions), strict=True),
        (np.array([model.intercept_]), np.array([middle + width * intercept])),
    ]
    found = getattr(model, "residual_sizes_", None)
    if (found is None) != (sizes is None):
        return False
    if sizes is not None:
        pairs.append((found.sizes, width * sizes))
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=ATOL) for a, b in pairs)


@BOTH
def test_the_estimator_does_what_the_page_says(loss):
    _, found, functions, *rest = page(loss)
    model = fit(loss)
    assert agree(model, found, functions, *rest)
    assert (rest[-1] is None) == (loss is LOGISTIC)
    sizes = [np.abs(values).max() for values in model.shape_functions_]
    assert min(sizes[:3]) > 0.2
    assert sizes[3] == 0
    assert [b.missing_bin for b in found[:2]] == [functions[0].counts.size - 1, -1]


@BOTH
def test_the_page_asks_in_the_order_of_its_docstring(loss):
    plain, _, functions, *_ = page(loss)
    totals, *others = plain.queries
    histograms, epochs = others[:4], np.reshape(others[4:], (EPOCHS, -1))
    assert isinstance(totals, Totals)
    assert [histogram.feature for histogram in histograms] == [0, 1, 2, 3]
    for asked in epochs:
        if loss is LOGISTIC:
            (query,) = of_residuals = asked
            assert isinstance(query, CodedResiduals)
            functions_asked = query.codes
        else:
            assert isinstance(asked[0], Magnitudes)
            functions_asked = of_residuals = asked[1:]
            assert all(isinstance(query, Residuals) for query in of_residuals)
        # The last feature has a single bin.
        assert [function.feature for function in functions_asked] == [INTERCEPT, 0, 1, 2]
        assert all(query.charged == query.bound for query in of_residuals)
        assert sum(query.share for query in asked) == pytest.approx(1, rel=1e-12)
    assert functions[3].counts.size == 1


@BOTH
def test_every_row_has_the_score_that_the_functions_say(loss):
    plain, _, functions, intercept, _ = page(loss)
    bins = [plain.bins[k][0] for k in range(len(functions))]
    parts = [function.values[codes] for function, codes in zip(functions, bins, strict=True)]
    np.testing.assert_allclose(plain.scores, intercept + sum(parts), atol=1e-5)


@BOTH
def test_all_mu_is_spent_in_the_parts_that_the_docstring_names(loss):
    opened = []

    class Opening(PlainCurator):
        def open_totals(self, mu, budget):
            opened.append((mu, budget))
            super().open_totals(mu, budget)

        def open_histograms(self, mu, n_features, budget, is_coarse=False):
            opened.append((mu, budget))
            super().open_histograms(mu, n_features, budget, is_coarse)

        def open_epochs(self, mu, n_epochs, budget, **phase):
            opened.append((mu, budget))
            return super().open_epochs(mu, n_epochs, budget, **phase)

    page(loss, Opening)
    shares = np.array([mu for mu, _ in opened]) ** 2 / mu_of(*BUDGET) ** 2
    expected = [0.01, 0.12, 0.87] if loss is LOGISTIC else [0.02, 0.2, 0.78]
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    for mu, budget in opened:
        assert mu_of(*budget) == pytest.approx(mu, rel=1e-6)


@BOTH
def test_an_answer_counts_by_its_share_and_by_the_number_of_its_epoch(loss, monkeypatch):
    weights, boosters = [], []
    remember, learn = Function.remember, Booster.learn

    def learning(booster, *told):
        boosters.append(booster)
        return learn(booster, *told)

    def noting(function, release, expected, weight):
        weights.append(weight)
        remember(function, release, expected, weight)

    monkeypatch.setattr(Function, "remember", noting)
    monkeypatch.setattr(Booster, "learn", learning)
    plain, _, functions, *_ = page(loss)
    numbers = np.arange(1.0, EPOCHS + 1)
    if loss is LOGISTIC:
        # The share of a feature is the mean squared weight that its code gives to a row.
        coded = [query for query in plain.queries if isinstance(query, CodedResiduals)]
        counts = [np.ones(1), *(function.counts for function in functions[:3])]
        shares = [
            np.average(code.weights**2, weights=rows)
            for query in coded
            for code, rows in zip(query.codes, counts, strict=True)
        ]
        assert 0.7 < min(map(sum, np.reshape(shares, (EPOCHS, 4)))) < 1
    else:
        shares = [query.share for query in plain.queries if isinstance(query, Residuals)]
        # Three features are learned; 78 % of mu^2 is for the epochs.
        clear = boosters[0].rows * math.sqrt(0.78 / 3) * mu_of(*BUDGET) / 2600
        assert 0.01 < clear < 1
        numbers *= 1 - clear + clear * (numbers / EPOCHS) ** 2
    np.testing.assert_allclose(weights, np.repeat(numbers, 4) * shares)


# --- whatever differs is noticed ----------------------------------------------------------------


def clipping_more(*of):
    return residual_sums(*of[:6], math.floor(0.9 * of[6]), of[7])


def ignoring_moves(*of):
    return residual_sums(*of[:3], np.zeros_like(of[3]), *of[4:])


def groups_in_full(feature, counts):
    answers = exact_answers(feature, counts)
    in_groups = np.arange(answers.numbers.size) >= counts.size
    return replace(answers, unit=answers.unit * np.where(in_groups, math.sqrt(2), 1.0))


def next_cell(*of):
    return np.roll(magnitude_counts(*of), 1)


def limiting_more(*of):
    *rows, query, changes, logistic = of
    return coded_sums(*rows, replace(query, bound=0.9 * query.bound), changes, logistic)


def following_no_moves(*of):
    return coded_sums(*of[:-2], {}, of[-1])


def following_all_but_the_last_move(*of):
    return coded_sums(*of[:-2], dict(list(of[-2].items())[:-1]), of[-1])


def not_centred(*of):
    """Limit residuals by the norms of centred codes, but sum codes that are not."""
    answer, (intercept, *features) = coded_sums(*of), of[-3].codes
    centres = np.concatenate([intercept.centre, *(code.centre for code in features)])
    return replace(answer, numbers=answer.numbers + centres * (answer.numbers[0] // 256))


def without_weights(*of):
    """Limit residuals by the norms of weighted codes, but sum codes that are not."""
    return replace(coded_sums(*of), unit=2.0**-32)


def without_intercept(code):
    return whole_squares(code) * (code.feature != INTERCEPT) + 1


def norms_of(change):
    """Return a function of a code that gives the squared norms of the code with a change."""
    return lambda code: whole_squares(replace(code, **change(code)))


residual_sums, magnitude_counts = curator.residual_sums, curator.magnitude_counts
exact_answers, coded_sums = curator.exact_answers, curator.coded_sums
remember, whole_squares = Function.remember, coding._whole_squares
likely_code = booster_module.code

BOTHS = {
    "groups that are counted in full": (curator, "exact_answers", groups_in_full),
    "all epochs alike": (Function, "remember", lambda f, r, e, w: remember(f, r, e, 1.0)),
    "even shares": (booster_module, "EVEN_SHARE", 1.0),
}
OF_LABELS = {
    "clips more": (curator, "coded_sums", limiting_more),
    "ignores moves": (curator, "coded_sums", following_no_moves),
    "ignores one move": (curator, "coded_sums", following_all_but_the_last_move),
    "sums of codes that are not centred": (curator, "coded_sums", not_centred),
    "sums of codes that have no weights": (curator, "coded_sums", without_weights),
    "norms of codes that are not centred": (
        coding, "_whole_squares", norms_of(lambda code: {"centre": 0 * code.centre}),
    ),
    "norms of codes that have no weights": (
        coding, "_whole_squares", norms_of(lambda code: {"weights": np.ones_like(code.weights)}),
    ),
    "norms without the intercept": (coding, "_whole_squares", without_intercept),
    "codes that are not centred": (
        booster_module, "code",
        lambda k, counts, *more: replace(
            likely_code(k, counts, *more), centre=np.zeros(counts.size, int)
        ),
    ),
    "rare bins as precisely as others": (Booster, "rare", 0.0),
    "rare bins far more precisely": (Booster, "rare", 1.0),
    "a lower bound": (booster_module, "LARGEST_RESIDUAL", 0.72),
    "a bound for codes of norm 1": (booster_module, "typical_norm", lambda *_: 1.0),
    "the first pace in all epochs": (Pace, "follow", lambda *_: None),
    "whole steps": (Booster, "_stride", lambda *_: 1.0),
    "no strays": (LogisticLoss, "expects_strays", False),
    "more for totals": (LogisticLoss, "totals_share", 0.02),
}  # fmt: skip
OF_NUMBERS = {
    "clips more": (curator, "residual_sums", clipping_more),
    "ignores moves": (curator, "residual_sums", ignoring_moves),
    "sizes in the next cell": (curator, "magnitude_counts", next_cell),
    "more for totals": (SquaredLoss, "totals_share", 0.04),
    "half steps": (SquaredLoss, "strides", (0.5, 0.5)),
    "whole steps": (SquaredLoss, "strides", (1.0, 1.0)),
    "all epochs in a hurry": (Booster, "weight", lambda _, number: (number + 1.0) ** 3),
    "one bound for all": (booster_module, "best_bound", lambda *_: EDGES[5]),
    "fitted rows are new ones": (residuals, "_optimism", lambda *_: 0.0),
}
CHANGES = [
    *((LOGISTIC, *change) for change in (BOTHS | OF_LABELS).items()),
    *((SQUARED, *change) for change in (BOTHS | OF_NUMBERS).items()),
]


@pytest.mark.parametrize(
    ("loss", "change"),
    [
        pytest.param(loss, change, id=f"{type(loss).__name__}: {name}")
        for loss, name, change in CHANGES
    ],
)
def test_a_change_of_one_of_them_is_noticed(loss, change, monkeypatch):
    _, *learned = page(loss)
    with monkeypatch.context() as changed:
        changed.setattr(*change)
        assert not agree(fit(loss), *learned)
