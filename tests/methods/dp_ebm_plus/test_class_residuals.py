"""Several classes: no row adds more to a query than is charged for, and sums are what is said."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import softmax

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.bins import histogram
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers, PlusCurator
from dprepro.methods.dp_ebm_plus.kernel import HALVES, UNIT, from_units, power_of_two, to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, Softmax
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    ClassCounts,
    ClassResiduals,
    Code,
    CodedHistogram,
    Merge,
    Move,
    Moves,
    Start,
    Totals,
)
from dprepro.methods.dp_ebm_plus.sums import _BLOCK_OF_VECTORS, class_sums, limited_vectors
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.rows.answer_log import digest
from tests.methods.dp_ebm_plus.coded_rows import (
    EXTREMES,
    CodedRows,
    asked,
    random_codes,
    random_rows,
    sums_of,
    vectors,
)
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, FEATURES, table
from tests.methods.dp_ebm_plus.stub import exact_answers

BOUNDS = (1e-5, 0.03, 0.4, 1.1, 2.0, 9.0)
MU, BUDGET = 1.0, (epsilon_of(1.0, 1e-6), 1e-6)
CLASSES = Domain(FEATURES, ("no", "perhaps", "yes"))


def of_classes(codes, bound):
    return ClassResiduals(bound, 1.0, tuple(codes), bound)


def class_rows(rng, codes, rows, classes):
    """Return rows with a score for each class, some of them extreme."""
    found = random_rows(rng, codes, rows)
    scores = rng.normal(0, 2, (rows, classes))
    extreme = rng.random(rows) < 0.4
    scores[extreme] = rng.choice(EXTREMES, (int(extreme.sum()), classes))
    targets = rng.integers(0, classes, rows).astype(np.int32)
    return CodedRows(to_units(scores), targets, found.bins)


def added(rows, query, changes=None):
    bins, classes = rows.bins.__getitem__, rows.scores.shape[1]
    return class_sums(rows.scores, rows.targets, bins, query, changes or {}, classes)


def squared_norm(answer):
    """Return the square of the L2 norm of an answer: numbers and units are doubles, so exactly."""
    numbers, units = np.broadcast_arrays(answer.numbers, answer.unit)
    pairs = zip(numbers.ravel().tolist(), units.ravel().tolist(), strict=True)
    return sum((number * Fraction(unit)) ** 2 for number, unit in pairs if number)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("seed", range(3))
def test_no_row_adds_more_than_the_bound_and_each_all_that_it_may(seed, classes, bound):
    """In whole numbers: no rounding hides what is too much."""
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, features=int(rng.integers(1, 5)))
    rows = class_rows(rng, codes, 40, classes)
    rows.targets[:4] = 2**29  # no class: what reads them is not trusted here
    query = of_classes(codes, bound)
    parts = [added(rows.part(slice(row, row + 1)), query) for row in range(40)]
    assert all(squared_norm(part) <= Fraction(bound) ** 2 for part in parts)
    residuals = np.eye(classes + 1)[np.minimum(rows.targets, classes), :classes]
    residuals = residuals - softmax(from_units(rows.scores), axis=1)
    lengths = np.linalg.norm(vectors(query, rows.bins), axis=1)
    expected = np.minimum(lengths * np.linalg.norm(residuals, axis=1), bound)
    norms = np.sqrt([float(squared_norm(part)) for part in parts])
    np.testing.assert_allclose(norms, expected, rtol=2e-4, atol=3e-5)


def test_no_scores_let_a_residual_be_longer_than_its_limit():
    """All combinations of extreme scores, classes and limits, with few numbers and with many."""
    triples = np.array(list(product(EXTREMES, repeat=3)))
    scores = np.repeat(to_units(triples), 4, axis=0)
    targets = np.tile(np.array([0, 1, 2, 2**29], np.int32), len(triples))
    found = np.empty_like(scores)
    for norm, bound in product((1, 3, 2**20, 2**31 - 1), (1.0, 2.0**20 + 0.5, 7e9, 2.0**35, 1e12)):
        norms = np.full(targets.size, norm, np.int32)
        limited_vectors(scores, targets, norms, bound, found)
        squares = (found.astype(np.int64) ** 2).sum(axis=1)
        assert int(squares.max()) * norm <= Fraction(bound) ** 2
        assert squares.max() <= 2 * 2**48


def test_no_limit_whatever_lets_a_residual_be_longer():
    """Where each number is a whole one after it is shortened, rounding up would be too much."""
    scores = to_units([[40.0, -40.0, -40.0, -40.0]])
    found, one = np.empty_like(scores), np.ones(1, np.int32)
    for limit in range(1, 3000):
        limited_vectors(scores, np.ones(1, np.int32), one, float(limit), found)
        assert (found.astype(np.int64) ** 2).sum() <= limit**2
        assert found[0, 1] > 0.7 * limit - 2


def test_probabilities_are_those_of_the_softmax():
    rng = np.random.default_rng(1)
    scores = to_units(rng.normal(0, 4, (4000, 6)))
    scores[:400] *= 9
    targets = rng.integers(0, 6, 4000).astype(np.int32)
    found = np.empty_like(scores)
    limited_vectors(scores, targets, np.ones(4000, np.int32), 1e12, found)
    expected = np.eye(6)[targets] - softmax(from_units(scores), axis=1)
    # Truncated to whole numbers of the unit.
    np.testing.assert_allclose(from_units(found), expected, atol=1.02 * UNIT)
    gaps = from_units(found).sum(axis=1)
    assert ((gaps >= 0) & (gaps <= 6 * UNIT)).all()


def test_powers_of_two_are_exact_to_nine_digits():
    exponents = np.append(-np.geomspace(1e-9, HALVES.size - 1.6, 2000), 0.0)
    found = [power_of_two.py_func(x) for x in exponents]
    np.testing.assert_allclose(found, 2.0**exponents, rtol=1e-9)
    assert power_of_two.py_func(-64.0) == power_of_two.py_func(-1e9) == 0.0


def test_of_two_classes_the_residuals_are_those_of_two_labels():
    """The same number twice, with both signs: so the bound is the root of 2 times as large."""
    rng = np.random.default_rng(2)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, 500)
    rows.scores[:] = np.clip(rows.scores, to_units(-15.0), to_units(15.0))
    scores = np.stack([np.zeros_like(rows.scores), rows.scores], axis=1)
    both = CodedRows(scores, (rows.targets > 0).astype(np.int32), rows.bins)
    one = sums_of(rows, asked(codes, 0.5)).value
    two = added(both, of_classes(codes, 0.5 * math.sqrt(2))).value
    np.testing.assert_allclose(two, np.stack([-one, one], axis=1), atol=1e-3)


def test_a_row_less_moves_the_answer_by_its_own_part():
    rng = np.random.default_rng(3)
    codes = random_codes(rng, features=2)
    rows = class_rows(rng, codes, 2 * _BLOCK_OF_VECTORS + 40, 3)
    query = of_classes(codes, 0.2)
    whole = added(rows.part(slice(None)), query)
    for gone in (0, 5, _BLOCK_OF_VECTORS - 1, _BLOCK_OF_VECTORS, 2 * _BLOCK_OF_VECTORS + 39):
        own = added(rows.part(slice(gone, gone + 1)), query).numbers
        less = added(rows.part(np.arange(rows.targets.size) != gone), query)
        np.testing.assert_array_equal(whole.numbers - less.numbers, own)
        np.testing.assert_array_equal(less.unit, whole.unit)
        assert own.any()


@pytest.mark.parametrize("rows", [1, 500, _BLOCK_OF_VECTORS, 2 * _BLOCK_OF_VECTORS + 77])
def test_sums_are_what_numpy_says(rows):
    rng = np.random.default_rng(rows)
    codes = random_codes(rng, features=3)
    found = class_rows(rng, codes, rows, 4)
    changes = {c.feature: to_units(rng.normal(size=(c.n_bins, 4))) for c in codes[1:]}
    scores = found.scores.astype(np.int64)
    for feature, change in changes.items():
        scores = np.clip(scores + change[found.bins[feature]], 1 - 2**30, 2**30 - 1)
    query = of_classes(codes, 0.7)
    u = vectors(query, found.bins)
    residuals = np.eye(4)[found.targets] - softmax(from_units(scores), axis=1)
    limits = 0.7 / np.linalg.norm(u, axis=1)
    residuals *= np.minimum(limits / np.linalg.norm(residuals, axis=1).clip(1e-12), 1)[:, None]
    answer = added(found, query, changes)
    assert answer.numbers.dtype == np.int64
    assert answer.numbers.shape == (sum(code.weights.size for code in codes), 4)
    lengths = np.linalg.norm(u, axis=1)
    rounded = (0.7 * len(codes) * 2.0**-20 / lengths**2).sum()
    np.testing.assert_allclose(answer.value, u.T @ residuals, atol=1e-5 * rows + rounded)
    np.testing.assert_array_equal(found.scores, scores)


@pytest.mark.parametrize("pieces", [2, 17])
def test_sums_do_not_depend_on_where_rows_lie(pieces):
    rng = np.random.default_rng(pieces)
    codes = random_codes(rng, features=3)
    rows = class_rows(rng, codes, _BLOCK_OF_VECTORS + 1234, 5)
    changes = {c.feature: to_units(rng.normal(size=(c.n_bins, 5))) for c in codes}
    query = of_classes(codes, 0.6)
    whole = added(rows.part(slice(None)), query, changes)
    together = np.zeros_like(whole.numbers)
    for piece in np.array_split(rng.permutation(rows.targets.size), pieces):
        together += added(rows.part(piece), query, changes).numbers
    np.testing.assert_array_equal(together, whole.numbers)


# --- the curator --------------------------------------------------------------------------------


def training(rows=50):
    X, labels, _ = table(rows)
    return Rows(X, (labels + (X["x"] > 0.8)).to_numpy().astype(float))


def curator(rows=50, seed=0):
    ledger = Ledger(*BUDGET, "add/remove-one")
    return PlusCurator(Private(training(rows)), CLASSES, Softmax(3), ledger, seed), ledger


ONE = Code(INTERCEPT, np.ones(1), np.zeros(1, int))
OF_C = Code(2, np.array([8.0, 0.125]), np.array([128, 128]))


def test_the_ledger_has_counts_and_passes_and_their_noise_is_what_is_charged_for():
    found, ledger = curator()
    found.open_totals(0.1, BUDGET)
    found.open_epochs(MU, 4, BUDGET)
    found.tell(Merge(2, np.array([0, 1, 0]), 2))
    found.tell(Start(np.zeros(3, np.int32)))
    counts = found.answer(ClassCounts(1.0, 1.0))
    assert counts.scale == pytest.approx(10)
    query = ClassResiduals(0.7, 0.01, (ONE, OF_C), 0.7)
    answers = [found.answer(query) for _ in range(400)]
    assert answers[0].scale == pytest.approx(0.7 * 2 / MU / math.sqrt(0.01))
    values = np.array([answer.value for answer in answers])
    assert values.shape == (400, 3, 3)
    np.testing.assert_allclose(values.std(axis=0), answers[0].scale, rtol=0.15)
    correlations = np.corrcoef(values.reshape(400, 9).T)
    assert np.abs(correlations - np.eye(9)).max() < 0.2
    with pytest.raises(BudgetError, match="the ledger has 4"):
        found.answer(query)
    assert [(entry.sensitivity, entry.uses) for entry in ledger.entries] == [(1.0, 1), (1.0, 4)]
    assert "of each class" in ledger.entries[0].releases
    # 0.1-GDP and 1-GDP together: what the ledger adds up is the accountant's, not the curator's.
    assert ledger.spent_epsilon() == pytest.approx(epsilon_of(math.hypot(0.1, MU), 1e-6), rel=1e-3)


def test_counts_are_of_rows_by_class():
    rows = training()
    exact = ExactAnswers.of(rows, CLASSES, Softmax(3))
    expected = np.bincount(rows.targets.astype(int), minlength=3)
    np.testing.assert_array_equal(exact.answer(ClassCounts(1.0, 1.0)).numbers, expected)
    assert expected.min() > 0


def test_queries_of_other_losses_are_refused():
    found, _ = curator()
    found.open_totals(0.1, BUDGET)
    found.open_histograms(0.1, 3, BUDGET)
    found.open_epochs(MU, 4, BUDGET)
    assert (
        found.answer(CodedHistogram.of(histogram(0, FEATURES[0], 9.0, 50.0).code)).value.size > 10
    )
    exact = ExactAnswers.of(training(), CLASSES, Softmax(3))
    exact.follow(Start(np.zeros(3, np.int32)))
    for query in (Totals.up_to(1), asked((ONE,), 1.0)):
        with pytest.raises(BudgetError, match="no mechanism for"):
            found.answer(query)
        with pytest.raises(SensitivityError, match="answer ClassCounts and ClassResiduals"):
            exact.answer(query)


def test_classes_are_refused_where_rows_have_one_score():
    exact = exact_answers(np.array([[0, 1, 2]]), np.array([0, 1, 1]), LOGISTIC)
    exact.follow(Start(0))
    for query in (ClassCounts(1.0, 1.0), of_classes((ONE,), 1.0)):
        with pytest.raises(SensitivityError, match="rows have one score"):
            exact.answer(query)
    with pytest.raises(SensitivityError, match="only LOGISTIC, SQUARED, POISSON and Softmax may"):
        PlusCurator(Private(training()), DOMAIN, object(), Ledger(*BUDGET, "add/remove-one"), 0)


def test_a_code_of_another_number_of_bins_is_refused():
    exact = ExactAnswers.of(training(), CLASSES, Softmax(3))
    exact.follow(Start(np.zeros(3, np.int32)))
    exact.follow(Merge(2, np.array([0, 1, 2]), 3))
    with pytest.raises(SensitivityError, match="a code of 2 bins for feature 2, which has 3"):
        exact.answer(of_classes((ONE, OF_C), 1.0))


def test_moves_at_once_are_moves_one_after_another():
    rng = np.random.default_rng(0)
    steps = [
        Move(INTERCEPT, to_units(rng.normal(size=(1, 3)))),
        Move(2, to_units(rng.normal(size=(2, 3)))),
    ]
    found = []
    for instructions in ([Moves(tuple(steps))], steps):
        exact = ExactAnswers.of(training(), CLASSES, Softmax(3))
        exact.follow(Merge(2, np.array([0, 1, 0]), 2))
        exact.follow(Start(to_units([1.0, 0.0, -60.0])))
        for instruction in instructions:
            exact.follow(instruction)
        # The second time nothing is left to follow.
        found += [exact.answer(of_classes((ONE, OF_C), 0.8)).numbers for _ in range(2)]
    assert found[0].any()
    for numbers in found[1:]:
        np.testing.assert_array_equal(numbers, found[0])


def test_a_code_is_checked_again_before_its_answer_is_released():
    found, _ = curator()
    found.tell(Start(np.zeros(3, np.int32)))
    found.open_epochs(MU, 2, BUDGET)
    query = ClassResiduals(0.5, 0.5, (Code(INTERCEPT, np.ones(1), np.zeros(1, int)),), 0.5)
    found.answer(query)
    query.codes[0].weights[:] = -1.0
    with pytest.raises((SensitivityError, ValueError), match=r"positive(, finite weight| unit)"):
        found.answer(query)


def test_of_classes_and_of_labels_are_different_questions():
    assert digest(of_classes((ONE,), 1.0)) != digest(asked((ONE,), 1.0))


def test_targets_beyond_the_classes_are_the_last_one():
    codes = Softmax(3).targets(np.array([-1.0, 0.0, 2.0, 7.0]), CLASSES)
    np.testing.assert_array_equal(codes, [0, 0, 2, 2])
    assert codes.dtype == np.int32
