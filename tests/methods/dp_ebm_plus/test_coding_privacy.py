"""No row adds more to a query about all features than is charged for, whatever codes are asked."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dp_ebm_plus.kernel import NUMBERS, from_units, to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    Code,
    CodedResiduals,
    Merge,
    Move,
    Moves,
    Start,
)
from dprepro.privacy.query import SensitivityError
from dprepro.rows import backends
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
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, table
from tests.methods.dp_ebm_plus.stub import exact_answers
from tests.methods.dp_ebm_plus.test_curator import BUDGET, MU, curator

ONE = Code(INTERCEPT, np.ones(1), np.zeros(1, int))
BOUNDS = (1e-5, 0.03, 0.4, 0.8, 1.3, 6.0)


def squared_norm(answer):
    """Return the square of the L2 norm of an answer: numbers and units are doubles, so exactly."""
    numbers = zip(answer.numbers.tolist(), answer.unit.tolist(), strict=True)
    return sum((number * Fraction(unit)) ** 2 for number, unit in numbers if number)


def parts(rows, query):
    """Yield what each row adds on its own."""
    for row in range(rows.scores.size):
        yield sums_of(rows.part(slice(row, row + 1)), query)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", range(6))
def test_no_row_adds_more_than_the_bound(seed, bound):
    """In whole numbers: no rounding hides what is too much."""
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, features=int(rng.integers(1, 5)))
    rows = random_rows(rng, codes, 40)
    rows.targets[:8] = 2**29  # no label: what reads them is not trusted here
    for part in parts(rows, asked(codes, bound)):
        assert squared_norm(part) <= Fraction(bound) ** 2


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("seed", range(6))
def test_no_row_of_a_regression_adds_more_than_the_bound(seed, bound):
    """Scores lie anywhere within +-64; a residual is 1 from one end of the range to the other."""
    rng = np.random.default_rng(100 + seed)
    codes = random_codes(rng, features=int(rng.integers(1, 5)))
    rows = random_rows(rng, codes, 40)
    rows.targets -= 2**23
    rows.targets[:8] = 2**29  # no target: what reads them is not trusted here
    found = [
        sums_of(rows.part(slice(row, row + 1)), asked(codes, bound), kind=NUMBERS)
        for row in range(40)
    ]
    assert all(squared_norm(part) <= Fraction(bound) ** 2 for part in found)
    # Each adds all that it may.
    residuals = from_units(rows.targets) - from_units(rows.scores).clip(-0.5, 0.5)
    lengths = np.linalg.norm(vectors(asked(codes, bound), rows.bins), axis=1)
    expected = np.minimum(lengths * np.abs(residuals).clip(0, 1), bound)
    norms = np.sqrt([float(squared_norm(part)) for part in found])
    np.testing.assert_allclose(norms, expected, rtol=1e-4, atol=2e-5)
    assert norms.max() > 0.1 * min(bound, 1.0)


@pytest.mark.parametrize("bound", BOUNDS[:5])
@pytest.mark.parametrize("seed", range(6))
def test_a_row_that_contradicts_what_is_predicted_adds_all_of_the_bound(seed, bound):
    """If its code is long enough: a residual is 1 at most."""
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, 40)
    rows.scores[:] = np.where(rows.targets > 0, -1, 1) * to_units(20.0)
    lengths = np.linalg.norm(vectors(asked(codes, bound), rows.bins), axis=1)
    norms = np.sqrt([float(squared_norm(part)) for part in parts(rows, asked(codes, bound))])
    expected = np.minimum(lengths, bound)
    assert (norms > 0.99 * expected - 40 * 2.0**-24).all()
    assert (lengths > bound).any() == (bound < lengths.max())
    np.testing.assert_allclose(norms, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("weights", [(1e-3, 1e-3), (1e-170, 1e-320), (30.0, 1e-3), (1e-9, 30.0)])
@pytest.mark.parametrize("centre", [(0, 0), (256, 0), (255, 1), (128, 128), (256, 256)])
def test_no_weights_or_centres_let_a_row_add_more(weights, centre):
    """Also where squares are lost below the least double, or nearly cancel."""
    codes = (Code(0, np.array(weights), np.array(centre)),)
    for its_bin in range(2):
        for score in EXTREMES:
            for label in (0, 1):
                row = CodedRows(
                    to_units([score]),
                    to_units([label]),
                    {0: np.array([its_bin], np.uint8)},
                )
                for bound in (1e-6, 0.1, 1.0):
                    part = sums_of(row, asked(codes, bound))
                    assert squared_norm(part) <= Fraction(bound) ** 2


def test_no_square_that_is_rounded_down_lets_a_row_add_more():
    """Weights whose squares are above a whole number, which is what float64 makes of them."""
    row = CodedRows(to_units([-60.0]), to_units([1.0]), {0: np.zeros(1, np.uint8)})
    tried = 0
    for whole in range(2, 2000):
        weight = math.sqrt(whole)
        if weight**2 == whole < Fraction(weight) ** 2:
            tried += 1
            for residual in (1_000_001, 2**20 - 1):
                bound = residual * 2.0**-24 * weight
                part = sums_of(row, asked((Code(0, np.array([weight]), np.zeros(1, int)),), bound))
                assert squared_norm(part) <= Fraction(bound) ** 2
    assert tried > 100


@pytest.mark.parametrize("seed", range(5))
def test_a_row_less_moves_the_answer_by_its_own_part(seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, 9)
    query = asked(codes, 0.5)
    whole = sums_of(rows.part(slice(None)), query)
    for gone, part in enumerate(parts(rows, query)):
        less = sums_of(rows.part(np.arange(9) != gone), query)
        np.testing.assert_array_equal(whole.numbers - less.numbers, part.numbers)
        np.testing.assert_array_equal(less.unit, whole.unit)


def test_other_rows_do_not_change_what_a_row_adds():
    """Nor where it stands: among many, in the middle of a block or at its end."""
    rng = np.random.default_rng(3)
    codes = random_codes(rng, features=2)
    rows = random_rows(rng, codes, 2**15 + 40)
    query = asked(codes, 0.2)
    whole = sums_of(rows.part(slice(None)), query).numbers
    for gone in (0, 5, 2**15 - 1, 2**15, 2**15 + 39):
        own = sums_of(rows.part(slice(gone, gone + 1)), query).numbers
        kept = np.arange(rows.scores.size) != gone
        np.testing.assert_array_equal(whole - sums_of(rows.part(kept), query).numbers, own)
        assert own.any()


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, -math.inf, math.nan])
def test_weights_that_are_not_positive_and_finite_are_refused(weight):
    with pytest.raises(SensitivityError, match="positive, finite weight"):
        Code(0, np.array([1.0, weight]), np.zeros(2, int))


@pytest.mark.parametrize("centre", [-1, 257, 2**40])
def test_centres_that_are_not_from_0_to_1_are_refused(centre):
    with pytest.raises(SensitivityError, match="centre from 0 to 1"):
        Code(0, np.ones(2), np.array([0, centre]))


def test_a_centre_for_each_weight_is_needed():
    for size in (0, 1, 3):
        with pytest.raises(SensitivityError, match="weight for each bin, and a centre"):
            Code(0, np.ones(2), np.zeros(size, int))


@pytest.mark.parametrize(
    "weights",
    [
        np.full(2, 2**32),  # its square is 0 in 64 bits
        np.full(2, 16, np.uint8),
        np.full(2, 1.1, np.float32),
        np.full(2, 1.1, np.float16),
        np.ones((2, 1)),
        np.ones(0),
        np.array(1.0),
    ],
    ids=lambda weights: f"{weights.dtype}, {weights.shape}",
)
def test_weights_must_be_doubles_one_for_each_number(weights):
    for mix in (None, np.ones((2, 3), int)):
        with pytest.raises(SensitivityError, match="a code needs a positive, finite weight"):
            Code(0, weights, np.zeros(weights.shape, int), mix)


@pytest.mark.parametrize(
    "mix",
    [
        np.full((2, 3), 1025),
        np.full((2, 3), -1025),
        np.full((2, 3), -(2**63)),  # which has no absolute value
        np.ones((2, 3)),
        np.ones((2, 3), np.int32),
        np.ones((3, 2), int),
        np.ones(2, int),
        np.ones((2, 0), int),
        np.ones((0, 3), int),
    ],
    ids=lambda mix: f"{mix.dtype}, {mix.shape}, {mix.max(initial=0)}",
)
def test_mixes_that_no_bound_would_hold_for_are_refused(mix):
    with pytest.raises(SensitivityError, match="numbers from -4 to 4"):
        Code(0, np.ones(2), np.zeros(2, int), mix)


@pytest.mark.parametrize("centre", [1025, -1025, -(2**63)])
def test_centres_of_mixes_beyond_4_are_refused(centre):
    with pytest.raises(SensitivityError, match="numbers from -4 to 4"):
        Code(0, np.ones(2), np.array([0, centre]), np.zeros((2, 3), int))


def test_a_mix_of_another_number_of_bins_is_refused():
    exact = exact_answers(np.array([[0, 1, 2]]), np.ones(3), LOGISTIC)
    exact.follow(Start(0))
    for bins in (1, 2, 4):
        wrong = Code(0, np.ones(3), np.zeros(3, int), np.zeros((3, bins), int))
        with pytest.raises(SensitivityError, match=f"a code of {bins} bins for feature 0,"):
            exact.answer(asked((ONE, wrong), 1.0))


def test_two_codes_of_a_feature_are_refused():
    """Its rows would have a longer vector than the two of them are taken to be."""
    twice = (ONE, Code(3, np.ones(2), np.zeros(2, int)), Code(3, np.ones(4), np.zeros(4, int)))
    with pytest.raises(SensitivityError, match="a feature has two codes"):
        asked(twice, 1.0)
    assert asked(twice[:2], 1.0).enforced == 1.0


@pytest.mark.parametrize("bins", [1, 2, 4, 256])
def test_codes_of_another_number_of_bins_are_refused(bins):
    """The curator's rows have three; norms would be read beyond the end of their array."""
    exact = exact_answers(np.array([[0, 1, 2]]), np.ones(3), LOGISTIC)
    exact.follow(Start(0))
    wrong = Code(0, np.ones(bins), np.zeros(bins, int))
    with pytest.raises(SensitivityError, match=f"a code of {bins} bins for feature 0, which has 3"):
        exact.answer(asked((ONE, wrong), 1.0))
    if bins > 1:
        with pytest.raises(SensitivityError, match=f"a code of {bins} bins for feature -1,"):
            exact.answer(asked((Code(INTERCEPT, np.ones(bins), np.zeros(bins, int)),), 1.0))
    right = Code(0, np.ones(3), np.zeros(3, int))
    assert exact.answer(asked((ONE, right), 1.0)).value[0] == pytest.approx(1.5)


@pytest.mark.parametrize("largest", [65.0, 1e3, 1e10, 1e100, 1e160, 1e200, 1e308])
@pytest.mark.parametrize("centre", [(0, 0), (128, 128), (256, 0), (0, 256)])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_norms_that_are_too_large_to_count_are_refused(largest, centre, alone):
    """A row would be taken to pay less than it does."""
    code = Code(0, np.full(2, largest), np.array(centre))
    codes = (code,) if alone else (ONE, code)
    rows = random_rows(np.random.default_rng(0), codes, 4)
    with pytest.raises(SensitivityError, match="add up to less than 2048"):
        sums_of(rows, asked(codes, 1.0))


def test_norms_are_counted_up_to_the_largest_that_can_be():
    """45.25^2 is 2047.6, and 45.26^2 is 2048.5."""
    rows = random_rows(np.random.default_rng(0), (Code(0, np.ones(2), np.zeros(2, int)),), 9)
    codes = [(Code(0, np.full(2, w), np.zeros(2, int)),) for w in (45.25, 45.26)]
    for part in parts(rows, asked(codes[0], 1.0)):
        assert squared_norm(part) <= 1
    with pytest.raises(SensitivityError, match="norms of codes are too large"):
        sums_of(rows, asked(codes[1], 1.0))


def test_the_first_norm_that_cannot_be_counted_is_refused():
    """2^31 would be a negative number of 32 bits."""
    rows = random_rows(np.random.default_rng(0), (Code(0, np.ones(2), np.zeros(2, int)),), 4)
    for least, refused in ((2**31 - 2.5, False), (2**31 - 1.5, True)):
        query = asked((Code(0, np.full(2, math.sqrt(least / 2**20)), np.zeros(2, int)),), 1.0)
        assert np.ceil(query.codes[0].squared_norms() * 2**20 + 1).max() == least + 1.5
        if refused:
            with pytest.raises(SensitivityError, match="norms of codes are too large"):
                sums_of(rows, query)
        else:
            assert sums_of(rows, query).numbers.size == 2


def test_norms_that_add_up_to_too_much_are_refused():
    codes = [Code(k, np.full(2, 25.0), np.zeros(2, int)) for k in range(4)]
    rows = random_rows(np.random.default_rng(0), codes, 50)
    assert sums_of(rows, asked(codes[:3], 1.0)).numbers.any()
    with pytest.raises(SensitivityError, match="norms of codes are too large"):
        sums_of(rows, asked(codes, 1.0))


@pytest.mark.parametrize("centre", [np.array([0.3, 200.7]), np.array([0.0, 256.0])])
def test_centres_that_are_no_whole_numbers_are_refused(centre):
    """Sums would not be whole numbers, and depend on the order of the rows."""
    with pytest.raises(SensitivityError, match=r"in whole numbers of 0\.00390625"):
        Code(2, np.ones(2), centre)


def test_two_moves_of_a_feature_are_refused():
    """One of them would be lost where a pass follows all at once."""
    moves = tuple(Move(k, np.ones(2, np.int32)) for k in (0, INTERCEPT, 0))
    assert len(Moves(moves[:2]).moves) == 2
    with pytest.raises(ValueError, match="two moves are of one feature"):
        Moves(moves)


@pytest.mark.parametrize(("written", "value"), [("weights", -1), ("centre", -1), ("mix", 1025)])
def test_codes_are_checked_again_before_their_answer_is_released(written, value):
    """A weight that is negative by then would have had hardly any noise."""
    asked_of, _ = curator()
    asked_of.tell(Start(0))
    asked_of.open_epochs(MU, 2, BUDGET)
    mix = np.full((1, 1), 256) if written == "mix" else None
    query = asked((Code(INTERCEPT, np.ones(1), np.zeros(1, int), mix),), 0.5)
    query = replace(query, share=0.5)
    asked_of.answer(query)
    getattr(query.codes[0], written)[:] = value
    with pytest.raises((SensitivityError, ValueError), match=r"positive(, finite weight| unit)"):
        asked_of.answer(query)


# --- the curator --------------------------------------------------------------------------------


def test_noise_is_what_is_charged_for_in_every_bin_whatever_its_weight():
    """In the unit of the sums: weights are what makes rare bins precise."""
    asked_of, _ = curator()
    asked_of.tell(Merge(2, np.array([0, 1, 0]), 2))
    asked_of.tell(Start(0))
    asked_of.open_epochs(MU, 4, BUDGET)
    query = CodedResiduals(
        0.7, 0.01, (ONE, Code(2, np.array([8.0, 0.125]), np.array([128, 128]))), 0.7
    )
    answers = [asked_of.answer(query) for _ in range(400)]
    assert answers[0].scale == pytest.approx(0.7 * 2 / MU / math.sqrt(0.01))
    noise = np.std([answer.value for answer in answers], axis=0)
    np.testing.assert_allclose(noise, answers[0].scale, rtol=0.15)
    correlations = np.corrcoef(np.transpose([answer.value for answer in answers]))
    assert np.abs(correlations - np.eye(3)).max() < 0.2


def test_moves_at_once_are_moves_one_after_another():
    """Whether they are followed with the question or before it, and where scores stop, too."""
    bins, labels = np.array([[0, 1, 2, 2], [1, 0, 0, 2]]), np.array([0, 1, 1, 0])
    steps = [
        Move(INTERCEPT, to_units([0.5])),
        Move(0, to_units([1.0, 50.0, -2.0])),
        Move(1, to_units([-30.0, 40.0, 0.25])),
    ]
    expected = to_units([61.5, 0.0, -11.5, 18.75])
    expected[1] = to_units(1e9) - to_units(30.0)
    query = asked((ONE, Code(1, np.ones(3), np.zeros(3, int))), 0.8)
    found = []
    for instructions in ([Moves(tuple(steps))], steps, [*steps[:1], Moves(tuple(steps[1:]))]):
        exact = exact_answers(bins, labels, LOGISTIC)
        exact.follow(Start(int(to_units(20.0))))
        for instruction in instructions:
            exact.follow(instruction)
        # The second time nothing is left to follow.
        found += [exact.answer(query).numbers, exact.answer(query).numbers]
        np.testing.assert_array_equal(exact._columns.scores, expected)
    assert found[0].any()
    for numbers in found[1:]:
        np.testing.assert_array_equal(numbers, found[0])


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(backends, "LEAST_ROWS", 100)
    X, labels, _ = table(700)
    models = [
        DPEBMPlusClassifier(2.0, n_epochs=4, domain=DOMAIN, random_state=0, n_jobs=number).fit(
            X, labels
        )
        for number in (1, 2, 5)
    ]
    for model in models[1:]:
        for one, other in zip(models[0].shape_functions_, model.shape_functions_, strict=True):
            np.testing.assert_array_equal(one, other)


def test_another_code_is_another_question():
    """A fit that was killed goes on with the answers that it had: see `dprepro.rows.answer_log`."""
    codes = [
        Code(0, np.ones(2), np.zeros(2, int)),
        Code(1, np.ones(2), np.zeros(2, int)),
        Code(0, np.array([1.0, 2.0]), np.zeros(2, int)),
        Code(0, np.ones(2), np.array([0, 1])),
        Code(0, np.ones(2), np.zeros(2, int), np.zeros((2, 2), int)),
        Code(0, np.ones(2), np.zeros(2, int), np.eye(2, dtype=int)),
    ]
    questions = [asked((ONE, code), 1.0) for code in codes] + [asked((ONE, codes[0]), 0.5)]
    assert len({digest(question) for question in questions}) == 7
    again = asked((ONE, Code(0, np.ones(2), np.zeros(2, int))), 1.0)
    assert digest(again) == digest(questions[0])
