"""All noisy answers of DP-EBM+: they hold all of mu, and a fault in any of them shows."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.additive.bins import Pair
from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.audit.case import MethodPair
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm, booster, curator, pairs, queries, sums
from dprepro.methods.dp_ebm_plus.audit import overheard
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.queries import (
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Residuals,
    Totals,
)
from dprepro.privacy.curator_base import GaussianMechanism
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.query import BudgetError, SensitivityError

pytestmark = pytest.mark.audits

NAME, STRONG = "dp-ebm-plus/answers", 8.0
NUMBER = NumericFeature("b", 0.0, 1000.0)
TASKS = pytest.mark.parametrize("task", ["binary", "regression"])


def verdict(task, trials, case=None):
    return audit(case or find_case(NAME, task, epsilon=STRONG), trials, seed=1).verdict


def two_features(task, **params):
    """The same pair with a number beside the category, and two epochs."""
    pair = find_case(NAME, task, epsilon=STRONG).fit.pair
    tables = [
        (X.assign(b=np.where(X["a"] == "many", NUMBER.upper, NUMBER.lower)), y)
        for X, y in (pair.present, pair.absent)
    ]
    domain = Domain((*pair.domain.features, NUMBER), pair.domain.target)
    pair = MethodPair(pair.setting, domain, *tables, {"n_epochs": 2, **params})
    return overheard(pair, "answers", "two features", 40)


def spoil(monkeypatch, *kinds, where=..., factor=0.0):
    """Scale the noise of some numbers of some queries' answers, behind the ledger's back.

    `where` are their places, or says them of a query.
    """
    answer = GaussianMechanism.answer

    def spoiled(self, exact, query, unit=1.0):
        release = answer(self, exact, query, unit)
        if not isinstance(query, kinds):
            return release
        places = where(query) if callable(where) else where
        value, silent = release.value.copy(), exact * unit
        value[places] = silent[places] + factor * (value[places] - silent[places])
        return replace(release, value=value)

    monkeypatch.setattr(GaussianMechanism, "answer", spoiled)


@TASKS
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0, 100.0])
def test_the_parts_of_the_canary_come_to_all_of_mu_and_no_more(task, epsilon):
    fit = find_case(NAME, task, epsilon=epsilon).fit
    found = np.sqrt([fit(seed % 2 == 0, seed).mu_squared for seed in range(20)])
    assert (found <= mu_of(epsilon, 1e-6) * (1 + 1e-5)).all()
    # A label's residual is near 1, as few rows have that label: it always reaches its limit. The
    # canary's target is a bound of the range, and its residual that of the middle: at 0.3 and 1
    # the intercept is hardly clipped, and the canary has a part of its share alone.
    least = 0.995 if task == "binary" else {0.3: 0.9, 1.0: 0.9}.get(epsilon, 0.97)
    assert found.mean() > least * mu_of(epsilon, 1e-6)


@TASKS
@pytest.mark.parametrize(("epsilon", "runs", "near"), [(1.0, 120, 0.15), (STRONG, 60, 0.3)])
def test_the_evidence_is_that_of_gaussian_noise_about_all_parts(task, epsilon, runs, near):
    """The same noise in both worlds: what differs is the canary alone, the shift in full.

    Its deviation is that of the parts: noise of whole counts that is 0 must not add to it.
    """
    fit = find_case(NAME, task, epsilon=epsilon).fit
    worlds = [[fit(present, seed) for seed in range(runs)] for present in (True, False)]
    present, absent = ([outcome.evidence for outcome in world] for world in worlds)
    square = np.mean([[outcome.mu_squared for outcome in world] for world in worlds])
    assert np.mean(np.subtract(present, absent)) == pytest.approx(square, rel=0.1)
    spread = np.std([np.subtract(present, square / 2), np.add(absent, square / 2)])
    assert spread == pytest.approx(math.sqrt(square), rel=near)
    assert 0.9 < math.sqrt(square) / mu_of(epsilon, 1e-6) < 1 + 1e-5


@TASKS
def test_listening_changes_nothing(task):
    pair = find_case(NAME, task).fit.pair
    heard = []
    train = MethodPair.fit

    def kept(self, present, seed):
        heard.append(train(self, present, seed))
        return heard[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MethodPair, "fit", kept)
        pair.fit(True, 3)
    alone = train(pair, True, 3)
    assert heard[0].intercept_ == alone.intercept_
    for one, other in zip(heard[0].shape_functions_, alone.shape_functions_, strict=True):
        np.testing.assert_array_equal(one, other)


@TASKS
def test_sound_answers_pass_with_a_bound_near_the_truth(task):
    """Of three audits: where one bound lies depends on a few runs in the tail.

    One bound of 95 % may be above the truth by chance. What refutes holds with 99.99 %.
    """
    results = [audit(find_case(NAME, task, epsilon=STRONG), 600, seed=seed) for seed in range(3)]
    spent = results[0].spent_epsilon
    assert 0.5 * spent < np.median([result.lower_bound for result in results]) < spent
    assert not any(result.verdict.is_refuted for result in results)


@TASKS
def test_half_the_noise_of_the_epochs(task, monkeypatch):
    spoil(monkeypatch, CodedResiduals, Residuals, Magnitudes, factor=0.5)
    assert verdict(task, 1200) is AuditVerdict.EXCEEDED


@TASKS
@pytest.mark.parametrize("query", [Totals, CodedHistogram])
def test_no_noise_in_totals_or_histograms(task, query, monkeypatch):
    spoil(monkeypatch, query)
    assert verdict(task, 600) is AuditVerdict.EXCEEDED


@TASKS
def test_the_cell_of_the_canary_counted_without_noise(task, monkeypatch):
    spoil(monkeypatch, CodedHistogram, where=-2)
    assert verdict(task, 600, two_features(task)) is AuditVerdict.EXCEEDED


def test_cells_counted_for_half_the_price(monkeypatch):
    """A histogram is charged for its longest code: for half of it the parts exceed all of mu."""
    longest = queries._longest
    monkeypatch.setattr(queries, "_longest", lambda code: longest(code) / 2)
    fit = two_features("binary").fit
    assert np.sqrt(fit(True, 0).mu_squared) > 1.02 * mu_of(STRONG, 1e-6)


@TASKS
def test_the_exact_number_of_rows_beside_the_noisy_one(task, monkeypatch):
    spoil(monkeypatch, Totals, where=0)
    assert verdict(task, 1000) is AuditVerdict.EXCEEDED


@TASKS
def test_one_answer_of_one_epoch_without_noise(task, monkeypatch):
    epoch = algorithm.epoch

    def quiet(curator, booster, number):
        with pytest.MonkeyPatch.context() as patched:
            if number == 1:
                spoil(patched, CodedResiduals, where=-1)
            epoch(curator, booster, number)

    monkeypatch.setattr(algorithm, "epoch", quiet)
    assert verdict(task, 1200, two_features(task)) is AuditVerdict.EXCEEDED


def test_an_epoch_whose_shares_exceed_one_is_refused(monkeypatch):
    ask = Booster.coded_residuals
    monkeypatch.setattr(Booster, "coded_residuals", lambda self: replace(ask(self), share=1.0))
    with pytest.raises(BudgetError, match="uses where the ledger has 2"):
        two_features("regression").fit(True, 0)


def test_a_query_of_its_own_for_every_code_is_refused(monkeypatch):
    """Or each would get the noise of one that asks about all features."""

    def one_by_one(curator, booster, number):
        query = booster.coded_residuals()
        for code in query.codes:
            curator.answer(replace(query, codes=(code,)))

    monkeypatch.setattr(algorithm, "epoch", one_by_one)
    with pytest.raises(BudgetError, match="uses where the ledger has 2"):
        two_features("binary").fit(True, 0)


def halve_the_charge(monkeypatch):
    """Let every query for residuals charge half of its bound."""
    for name in ("of_level", "coded_residuals"):
        ask = getattr(Booster, name)

        def cheap(self, *of, ask=ask):
            query = ask(self, *of)
            return replace(query, charged=query.charged / 2)

        monkeypatch.setattr(Booster, name, cheap)


@TASKS
def test_a_query_charged_for_half_of_what_is_enforced_is_refused(task, monkeypatch):
    halve_the_charge(monkeypatch)
    with pytest.raises(SensitivityError, match="charge at least what is enforced"):
        find_case(NAME, task, epsilon=STRONG).fit(True, 0)


@TASKS
def test_a_sensitivity_of_half_the_truth(task, monkeypatch):
    halve_the_charge(monkeypatch)
    for query in (Residuals, CodedResiduals):
        monkeypatch.setattr(query, "enforced", property(lambda q: q.bound / 2))
    assert verdict(task, 400 if task == "binary" else 1200) is AuditVerdict.EXCEEDED


def test_a_row_limited_by_its_code_of_one_feature_alone(monkeypatch):
    """A row pays for its codes of all features together: this one is rare in the other feature."""
    squares = sums._whole_squares
    monkeypatch.setattr(
        sums,
        "_whole_squares",
        lambda code: squares(code) if code.feature == 0 else np.ones_like(squares(code)),
    )
    case = find_case("dp-ebm-plus/rare", "binary", epsilon=STRONG)
    assert np.sqrt(case.fit(True, 0).mu_squared) > 1.3 * mu_of(STRONG, 1e-6)
    assert verdict("binary", 800, case) is AuditVerdict.EXCEEDED


def unclipped(monkeypatch, name):
    """Let residuals in one kind of query be clipped nowhere."""
    exact = getattr(curator.ExactAnswers, name)
    monkeypatch.setattr(
        curator.ExactAnswers, name, lambda self, q: exact(self, replace(q, bound=9.0, charged=9.0))
    )


def test_residuals_of_features_that_are_not_clipped(monkeypatch):
    unclipped(monkeypatch, "_coded_residuals")
    assert verdict("regression", 800) is AuditVerdict.EXCEEDED


def test_residuals_of_the_intercept_that_are_not_clipped(monkeypatch):
    """Its bound is one that few rows exceed: the canary does if it is no larger than elsewhere."""
    monkeypatch.setattr(booster, "_UNCLIPPED", 0.0)
    unclipped(monkeypatch, "_residuals")
    assert verdict("regression", 800) is AuditVerdict.EXCEEDED


# --- pairs of features ----------------------------------------------------------------------------


@pytest.fixture
def paired(monkeypatch):
    """Return the case in which the pair of both features is asked about, kept and learned."""
    monkeypatch.setattr(pairs, "LEAST_CELLS", 0.0)
    monkeypatch.setattr(pairs, "MARGIN", -np.inf)
    return lambda task: two_features(task, n_epochs=4, pairs=1)


@TASKS
def test_with_pairs_all_answers_say_what_mu_allows_and_no_more(task, paired):
    """The evidence for the canary is N(m^2/2, m^2) with it and N(-m^2/2, m^2) without it."""
    case, runs = paired(task), 150
    standing = []
    for present in (True, False):
        for seed in range(runs):
            outcome = case.fit(present, seed)
            assert len(outcome.model.pairs_) == 1
            mu_squared = outcome.mu_squared
            assert mu_squared <= mu_of(STRONG, outcome.ledger_.delta) ** 2 * (1 + 1e-9)
            middle = mu_squared / 2 if present else -mu_squared / 2
            standing.append((outcome.evidence - middle) / np.sqrt(mu_squared))
    assert abs(np.mean(standing)) < 4 / np.sqrt(2 * runs)
    assert abs(np.std(standing) - 1) < 4 / np.sqrt(4 * runs)


def of_pairs(query):
    """Return whether each number of a query is of a pair, bool."""
    return np.repeat(
        [isinstance(code.feature, Pair) for code in query.codes],
        [code.weights.size for code in query.codes],
    )


@TASKS
def test_sums_of_pairs_without_noise_are_seen(task, paired, monkeypatch):
    spoil(monkeypatch, CodedResiduals, where=of_pairs)
    # Three epochs ask about the pair: the canary moves two numbers in each. Whole counts add one
    # or two whose noise happens to be 0.
    assert np.mean([paired(task).fit(True, seed).bare for seed in range(10)]) > 5
