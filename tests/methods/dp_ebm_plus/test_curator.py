"""The curator of DP-EBM+: what it answers, and that methods which cheat are caught."""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.bins import histogram
from dprepro.methods.dp_ebm_plus.clipping import MAGNITUDES
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers, PlusCurator
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED, LogisticLoss
from dprepro.methods.dp_ebm_plus.queries import (
    Code,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Merge,
    Move,
    Residuals,
    Start,
    Totals,
    totals_sensitivity,
)
from dprepro.privacy.curator_base import listening
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.privacy.query import BudgetError, SensitivityError
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, FEATURES, RANGE, table
from tests.methods.dp_ebm_plus.stub import (
    BOTH,
    Events,
    booster,
    exact_answers,
    learn,
    of_all_rows,
)

MU, BUDGET = 1.0, (epsilon_of(1.0, 1e-6), 1e-6)


def counted(k, noise=9.0):
    """Return the query for the cells of feature k."""
    return CodedHistogram.of(histogram(k, FEATURES[k], noise, 50.0).code)


def curator(loss=LOGISTIC, rows=50, seed=0):
    X, labels, y = table(rows)
    domain, targets = (DOMAIN, labels) if loss is LOGISTIC else (RANGE, y)
    ledger = Ledger(*BUDGET, "add/remove-one")
    return PlusCurator(Private(Rows(X, targets.astype(float))), domain, loss, ledger, seed), ledger


@BOTH
def test_every_answer_is_the_noisy_one_that_listeners_hear(loss):
    """Or a model could be made of others than those that were looked at."""
    heard = Events()
    with listening(heard):
        made, _ = curator(loss)
    made.open_totals(0.1, BUDGET)
    made.open_histograms(0.1, 2, BUDGET)
    made.open_epochs(0.1, 2, BUDGET)
    made.tell(Start(0))
    asked = [Totals.up_to(loss.powers), *(counted(k) for k in range(2))]
    asked += [*([Magnitudes(1.0, 0.5)] if loss is SQUARED else []), of_all_rows(loss, 1.0)]
    X, labels, targets = table(50)
    y, domain = (labels, DOMAIN) if loss is LOGISTIC else (targets, RANGE)
    exact = ExactAnswers.of(Rows(X, y.astype(float)), domain, loss)
    exact.follow(Start(0))
    for query in asked:
        answer = made.answer(query)
        assert heard.events[-1][1] is answer
        assert (answer.value != exact.answer(query).value).mean() > 0.7


FITS = pytest.mark.parametrize(
    ("estimator", "domain", "place"),
    [(DPEBMPlusClassifier, DOMAIN, 1), (DPEBMPlusRegressor, RANGE, 2)],
    ids=["classification", "regression"],
)

# --- cheats -------------------------------------------------------------------------------------


class ReadsLabels(DPEBMPlusClassifier):
    """Takes its first intercept from the labels as they are."""

    def _train(self, rows, domain, loss):
        functions, _, sizes = super()._train(rows, domain, loss)
        return functions, float(rows.open().targets.mean()), sizes


def test_an_estimator_that_reads_rows_beside_the_curator_is_caught():
    X, labels, _ = table(60)
    with pytest.raises(PrivateRowsError, match="may not open private rows"):
        ReadsLabels(domain=DOMAIN).fit(X, labels)


def test_bins_by_exact_counts_are_caught(monkeypatch):
    usual = algorithm.binned
    ask = PlusCurator.answer
    seen = []

    def remembering(self, query):
        seen.append(self)
        return ask(self, query)

    def reading(feature, strategy, answer, rows):
        exact = seen[-1]._exact.open().answer(CodedHistogram.of(strategy.code))
        return usual(feature, strategy, replace(answer, value=exact.value), rows)

    monkeypatch.setattr(PlusCurator, "answer", remembering)
    monkeypatch.setattr(algorithm, "binned", reading)
    X, labels, _ = table(60)
    with pytest.raises(PrivateRowsError, match="may not open private rows"):
        DPEBMPlusClassifier(domain=DOMAIN).fit(X, labels)


@FITS
def test_an_epoch_that_computes_with_the_rows_is_caught(estimator, domain, place, monkeypatch):
    usual = algorithm.epoch

    def reading(curator, booster, *rest):
        usual(curator, booster, *rest)
        booster.level.values = booster.level.values + np.mean(curator._exact)

    monkeypatch.setattr(algorithm, "epoch", reading)
    rows = table(60)
    with pytest.raises((PrivateRowsError, TypeError)):
        estimator(domain=domain).fit(rows[0], rows[place])


@FITS
def test_a_booster_that_asks_once_more_is_caught(estimator, domain, place, monkeypatch):
    epoch = algorithm.epoch

    def more(curator, booster, number):
        epoch(curator, booster, number)
        if number == 2:
            epoch(curator, booster, 1)

    monkeypatch.setattr(algorithm, "epoch", more)
    rows = table(60)
    with pytest.raises(BudgetError, match="where the ledger has 3"):
        estimator(n_epochs=3, domain=domain).fit(rows[0], rows[place])


def test_what_no_mechanism_covers_is_not_answered():
    asked, _ = curator()
    with pytest.raises(BudgetError, match="no mechanism for CodedHistogram"):
        asked.answer(counted(0))


@pytest.mark.parametrize("query", [of_all_rows(SQUARED, 0.5), Magnitudes(1.0, 1.0)], ids=repr)
def test_a_query_for_another_loss_is_refused(query):
    """Of labels residuals are asked about by codes alone, and not by size."""
    asked, _ = curator(LOGISTIC)
    asked.open_epochs(MU, 4, BUDGET)
    asked.tell(Start(0))
    with pytest.raises(BudgetError, match=f"no mechanism for {type(query).__name__} is"):
        asked.answer(query)
    assert asked.answer(of_all_rows(LOGISTIC, 0.5)).value.shape == (1,)


def test_of_numbers_an_epoch_is_one_mechanism_for_whatever_is_asked():
    """Shares of it that add up to 1 are answered, and nothing beyond."""
    asked, ledger = curator(SQUARED)
    noise = asked.open_epochs(MU, 1, BUDGET)
    asked.tell(Start(0))
    shared = [(Magnitudes, 0.25), (Residuals, 0.25), (CodedResiduals, 0.5)]
    queries = [
        Magnitudes(1.0, 0.25), of_all_rows(SQUARED, 0.5, 0.25), of_all_rows(LOGISTIC, 0.5, 0.5),
    ]  # fmt: skip
    for query, (kind, share) in zip(queries, shared, strict=True):
        assert type(query) is kind
        assert asked.answer(query).scale == pytest.approx(noise * query.charged / np.sqrt(share))
    assert [(entry.uses, entry.noise_multiplier) for entry in ledger.entries] == [(1, noise)]
    for query in queries:
        with pytest.raises(BudgetError):
            asked.answer(query)


def test_noise_that_forgets_the_number_of_features_or_epochs_is_refused():
    asked, ledger = curator()
    for forgotten in (
        lambda: asked.open_histograms(MU * np.sqrt(3), 3, BUDGET),
        lambda: asked.open_epochs(MU * np.sqrt(16), 16, BUDGET),
    ):
        with pytest.raises(BudgetError, match="root of the uses"):
            forgotten()
    assert ledger.entries == []


@pytest.mark.parametrize(
    ("query", "values"),
    [
        (Totals, (0.5, 1.0, 1)),
        (CodedHistogram, (0.9, 1.0, Code(0, np.ones(2), np.zeros(2, int)))),
        (Magnitudes, (0.9, 1.0)),
        (Residuals, (0.49, 1.0, 0, 0.5)),
        (CodedResiduals, (0.49, 1.0, (Code(0, np.full(2, 1e-9), np.zeros(2, int)),), 0.5)),
    ],
)
def test_a_query_that_is_charged_for_less_than_is_enforced_cannot_be_built(query, values):
    with pytest.raises(SensitivityError, match="charge at least what is enforced"):
        query(*values)


# --- answers ------------------------------------------------------------------------------------


def test_every_number_of_every_answer_has_noise_of_its_own():
    for loss in (LOGISTIC, SQUARED):
        several = [curator(loss, seed=seed)[0] for seed in range(12)]
        for asked in several:
            asked.open_histograms(MU, 1, BUDGET)
        asked, _ = curator(loss)
        twin = exact_answers(np.zeros((1, 4), int), np.zeros(4), loss)
        asked.open_totals(MU, BUDGET)
        asked.open_histograms(MU, 1, BUDGET)
        asked.open_epochs(MU, 2, BUDGET)
        p = loss.powers
        queries = [
            Totals(totals_sensitivity(p).stated, 1.0, p),
            counted(0),
            *[of_all_rows(loss, 0.5, share=0.5)] * 2,
        ]
        noisy = [asked.answer(query).value.ravel() for query in queries]
        assert twin.answer(queries[0]).numbers.shape == noisy[0].shape
        # Of noise in whole counts a part is the same by chance; in sums it hardly ever is.
        sums = np.concatenate([noisy[0][1:], *noisy[2:]])
        assert np.unique(sums - np.round(sums)).size == sums.size
        counts = np.stack([asked.answer(queries[1]).value for asked in several])
        assert (np.ptp(counts, axis=0) > 0).all()


def test_two_moves_in_a_row_both_count():
    codes, targets = np.array([[0, 1, 2], [0, 0, 1]]), np.zeros(3)
    change = to_units([0.25, -0.25, 0.5])
    exact = exact_answers(codes, targets, SQUARED)
    for instruction in (Start(0), Move(0, change), Move(1, change)):
        exact.follow(instruction)
    sums = exact.answer(Residuals(1.0, 1.0, 0, 1.0)).value
    np.testing.assert_array_equal(sums, [-0.5, 0.0, -0.25])
    again = exact.answer(Residuals(1.0, 1.0, 0, 1.0)).value
    np.testing.assert_array_equal(again, sums)


def test_a_start_forgets_what_was_pending():
    exact = exact_answers(np.array([[0, 1, 2]]), np.zeros(3), SQUARED)
    exact.follow(Move(0, to_units(np.ones(3))))
    exact.follow(Start(int(to_units(0.5))))
    sums = exact.answer(of_all_rows(SQUARED, 1.0)).value
    assert sums.item() == -1.5


def numbers_in(value):
    """Return how many numbers, or other objects, there are in a value."""
    if isinstance(value, tuple | list):
        return sum(map(numbers_in, value))
    return np.size(value)


def test_the_booster_never_holds_a_row():
    """All that it keeps is as large whether there are 10 rows or 1,000."""
    sizes = []
    for rows in (10, 1000):
        learner = booster(np.zeros((2, rows), int), np.zeros(rows), LOGISTIC)
        learn(learner, 2)
        learner.curator = None
        arrays = [v for f in [learner.level, *learner.effects] for v in vars(f).values()]
        sizes.append([numbers_in(v) for v in [*vars(learner).values(), *arrays]])
    assert sizes[0] == sizes[1]
    assert sum(sizes[0]) > 20


def test_a_loss_from_elsewhere_does_not_see_the_rows():
    class Spy(LogisticLoss):
        def targets(self, y, domain):
            seen.append(y)
            return super().targets(y, domain)

    seen = []
    with pytest.raises(SensitivityError, match="only LOGISTIC, SQUARED, POISSON and Softmax"):
        curator(Spy())
    assert not seen


def test_bins_beyond_their_number_are_refused():
    """Sums would be written behind the end of their array."""
    exact = exact_answers(np.array([[0, 1, 2]]), np.zeros(3), SQUARED)
    for n_bins in (0, 2):
        with pytest.raises(SensitivityError, match=f"bins up to 2, but {n_bins}"):
            exact.follow(Merge(0, np.array([0, 1, 2, 0]), n_bins))


@BOTH
def test_a_row_moves_the_totals_by_what_is_charged_and_no_more(loss):
    X, labels, _ = table(40)
    y, domain = (labels, DOMAIN) if loss is LOGISTIC else (np.resize(RANGE.target, 40), RANGE)
    query, norms = Totals.up_to(loss.powers), []
    for row in range(40):
        one = Rows(X.iloc[row : row + 1], y[row : row + 1].astype(float))
        norms.append(np.linalg.norm(ExactAnswers.of(one, domain, loss).answer(query).value))
    assert 0.9 * query.charged < max(norms) <= query.charged * (1 + 1e-9)


def test_sizes_follow_the_last_move_and_no_row_counts_twice():
    change, query = to_units([0.25, -0.1, 0.5]), Magnitudes(1.0, 1.0)
    exact = exact_answers(np.array([[0, 1, 2, 2]]), np.zeros(4), SQUARED)
    for instruction in (Start(0), Move(0, change)):
        exact.follow(instruction)
    expected = np.zeros(MAGNITUDES)
    expected[[4, 6, 2]] = 1, 1, 2  # 2^(-(j + 1) / 2) < |r| <= 2^(-j / 2)
    for _ in range(2):
        np.testing.assert_array_equal(exact.answer(query).value, expected)
    for row in range(4):
        alone = exact_answers(np.array([[min(row, 2)]]), np.zeros(1), SQUARED)
        alone.follow(Move(0, change))
        assert alone.answer(query).value.sum() == 1
