"""Codes: what the curator adds for a row is what an adversary expects by the description alone."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from dprepro.audit.case import categories
from dprepro.audit.likelihood_ratio import Known
from dprepro.audit.transcript import Recorder
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.audit import Adversary
from dprepro.methods.dp_ebm_plus.clipping import MAGNITUDES
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    CENTRE_UNIT,
    INTERCEPT,
    Code,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Merge,
    Move,
    Moves,
    Residuals,
    Start,
)
from dprepro.privacy.query import NoisyAnswer

SIZES = (3, 2)
"""Categories of each feature; every one is a bin."""
NAMES = [tuple("abc"[:size]) for size in SIZES]
DOMAIN = Domain(
    tuple(CategoricalFeature(f"x{k}", names) for k, names in enumerate(NAMES)), ("0", "1")
)
ROWS = [*product(range(SIZES[0]), range(SIZES[1]), range(2))]
"""The bin of each feature, and the label."""
WHOLE = round(1 / CENTRE_UNIT)

UNEVEN = (
    # Nearly all rows share the first bin of each feature. The rarer a bin, the more it weighs.
    Code(INTERCEPT, np.array([0.5]), np.array([0])),
    Code(0, np.array([0.6, 1.7, 2.0]), np.array([236, 16, 4])),
    Code(1, np.array([0.7, 1.5]), np.array([251, 5])),
)
ALIKE = tuple(
    Code(k, np.full(size, 1.2), np.full(size, WHOLE // size)) for k, size in enumerate(SIZES)
)
OF_WEIGHTS = (
    # Not centred: a row's code is as long as its bin weighs.
    Code(INTERCEPT, np.array([0.5]), np.array([0])),
    Code(0, np.array([0.25, 1.0, 4.0]), np.zeros(3, int)),
)
MIXED = (
    # Five numbers of three bins, counted from a mean that lies anywhere between them.
    Code(
        0, np.array([0.4, 0.9, 1.1, 0.7, 0.2]), np.array([120, -30, 80, 0, 500]),
        np.array([[256, 200, 150], [0, -120, 30], [0, 0, 256], [-512, 512, 7], [512, 498, 500]]),
    ),
    Code(1, np.array([0.8]), np.array([10]), np.array([[-300, 20]])),
)  # fmt: skip
CODES = pytest.mark.parametrize(
    "codes", [UNEVEN, ALIKE, OF_WEIGHTS, MIXED], ids=["uneven", "alike", "of weights", "mixed"]
)
BOUNDS = pytest.mark.parametrize("bound", [0.05, 0.3, 1.0])


def query(codes, bound, share=1.0):
    return CodedResiduals(bound, share, codes, bound)


def cells(k, size):
    """Return the query for the rows in each category of feature k, and in the cell after them."""
    return CodedHistogram.of(Code(k, np.ones(size + 1), np.zeros(size + 1, int)))


def instructions(score, changes):
    """Return what gives every category a bin, a first score, and changes of scores, in order."""
    bins = [Merge(k, np.arange(size + 1).clip(max=size - 1), size) for k, size in enumerate(SIZES)]
    return [*bins, Start(round(score * 2**24)), *changes]


def of_curator(rows, told, asked, loss=LOGISTIC):
    frame = pd.DataFrame(
        {
            f"x{k}": categories(np.array([row[k] for row in rows]), names)
            for k, names in enumerate(NAMES)
        }
    )
    domain = DOMAIN if loss is LOGISTIC else Domain(DOMAIN.features, (0.0, 1.0))
    exact = ExactAnswers.of(Rows(frame, np.array([row[2] for row in rows], float)), domain, loss)
    for each in told:
        exact.follow(each)
    return exact.answer(asked).value


def of_adversary(group, rows, canary, told, asked, loss=LOGISTIC):
    """Return what a group of so many equal rows adds, and what the canary adds."""
    heard = Recorder()
    for k, size in enumerate(SIZES):
        heard.asked(cells(k, size), NoisyAnswer(np.zeros(size + 1), 1.0))
    for each in told:
        heard.told(each)
    size = sizes_of(asked)
    heard.asked(asked, NoisyAnswer(np.zeros(size), 1.0))
    middle = 0.0 if loss is LOGISTIC else 0.5
    known = Known(
        cells=np.array([group[:2]]), targets=np.array([group[2] - middle]),
        counts=np.array([rows]), canary=np.array(canary[:2]), target=canary[2] - middle,
    )  # fmt: skip
    adversary = Adversary(known, loss is LOGISTIC, (1.0, 1.0, 1.0))
    answer = adversary.answers(heard.events, [])[-1]
    deviation = asked.charged / np.sqrt(asked.share)
    return -answer.noise * deviation, answer.part * deviation


def sizes_of(asked):
    """Return how many numbers an answer has."""
    if isinstance(asked, CodedResiduals):
        return sum(code.weights.size for code in asked.codes)
    if isinstance(asked, CodedHistogram):
        return asked.code.weights.size
    return MAGNITUDES if isinstance(asked, Magnitudes) else 1


@CODES
@BOUNDS
def test_a_row_adds_what_the_adversary_expects_of_it(codes, bound):
    asked = query(codes, bound, 0.25)
    for row, score in product(ROWS, (-3.0, 0.0, 2.0)):
        told = instructions(score, [])
        _, expected = of_adversary(ROWS[0], 0, row, told, asked)
        np.testing.assert_allclose(of_curator([row], told, asked), expected, atol=3e-6)


SCORES = (-60.0, -2.0, -0.5, 0.2, 0.5, 0.7, 40.0)
"""Of a regression, whose targets lie from -1/2 to 1/2: beyond that scores count as its ends."""


@CODES
@BOUNDS
def test_a_row_of_a_regression_adds_what_the_adversary_expects_of_it(codes, bound):
    for each, row, score in product(codes, ROWS, SCORES):
        asked, told = query((each,), bound, 0.25), instructions(score, [])
        _, expected = of_adversary(ROWS[0], 0, row, told, asked, SQUARED)
        found = of_curator([row], told, asked, SQUARED)
        # A code's squared norm is rounded up by 2^-19 at most: limits are less by half of its part.
        norm = each.squared_norms()[0 if each.feature == INTERCEPT else row[each.feature]]
        np.testing.assert_allclose(found, expected, atol=3e-6 + bound * 2.0**-20 / norm)


@pytest.mark.parametrize(
    "asked",
    [
        Residuals(0.3, 0.25, INTERCEPT, 0.3),
        Residuals(1.0, 1.0, INTERCEPT, 1.0),
        Magnitudes(1.0, 1.0),
    ],
    ids=repr,
)
def test_so_do_rows_whose_residuals_are_summed_or_counted_by_size(asked):
    for row, score in product(ROWS, SCORES):
        told = instructions(score, [])
        _, expected = of_adversary(ROWS[0], 0, row, told, asked, SQUARED)
        np.testing.assert_allclose(of_curator([row], told, asked, SQUARED), expected, atol=3e-6)


@pytest.mark.parametrize(
    "code",
    [
        Code(0, np.array([0.5, 1.5, 1.0, 2.0]), np.array([30, 0, 200, 26])),
        Code(
            0, np.array([0.7, 1.1, 0.4]), np.array([-40, 90, 0]),
            np.array([[256, 200, 100, 0], [0, -512, 256, 30], [0, 0, 256, 7]]),
        ),
    ],
    ids=["alone", "mixed"],
)  # fmt: skip
def test_so_do_cells_that_are_counted(code):
    asked = CodedHistogram.of(code)
    for group, canary in zip(ROWS, ROWS[::-1], strict=True):
        alone, part = of_adversary(group, 5, canary, [], asked)
        found = of_curator([group] * 5 + [canary], [], asked)
        np.testing.assert_allclose(found, alone + part, atol=1e-12)
        assert np.linalg.norm(part) <= asked.charged


@CODES
@BOUNDS
def test_no_row_adds_more_than_the_bound_and_a_surprising_one_nearly_all_of_it(codes, bound):
    """Its residual is 0.9997: it is limited wherever its code is longer than the bound."""
    for row in ROWS:
        told = surprising(row)
        part = np.linalg.norm(of_curator([row], told, query(codes, bound)))
        assert part <= bound
        _, whole = of_adversary(ROWS[0], 0, row, told, query(codes, 100.0))
        assert part == pytest.approx(min(bound, np.linalg.norm(whole)), rel=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_no_row_adds_more_than_the_bound_by_any_code(seed):
    """Also by weights and centres that a fit would not choose: centres need not add up to 1."""
    rng = np.random.default_rng(seed)
    codes = tuple(
        Code(k, np.exp(rng.normal(0, 1.5, size)), rng.integers(0, WHOLE + 1, size))
        for k, size in ((INTERCEPT, 1), *enumerate(SIZES))
    )
    bound = float(np.exp(rng.normal(-2, 1)))
    for row in ROWS:
        part = of_curator([row], surprising(row), query(codes, bound))
        assert np.linalg.norm(part) <= bound


def surprising(row):
    """Return instructions after which the row's residual is nearly 1."""
    return instructions(-8.0 if row[2] else 8.0, [])


@CODES
def test_rows_follow_all_moves_and_add_up(codes):
    """Also if the last moves are followed while the rows are summed."""
    told = instructions(
        0.5,
        [
            Moves((Move(0, to_units(0.1, -2.0, 3.0)), Move(1, to_units(0.7, -0.7)))),
            Moves((Move(INTERCEPT, to_units(-0.3)), Move(0, to_units(-1.0, 1.5, 0.25)))),
        ],
    )
    asked = query(codes, 0.2)
    for group, canary in zip(ROWS, ROWS[::-1], strict=True):
        alone, part = of_adversary(group, 5, canary, told, asked)
        found = of_curator([group] * 5 + [canary], told, asked)
        np.testing.assert_allclose(found, alone + part, atol=2e-5)


def to_units(*changes):
    return np.rint(np.array(changes) * 2**24).astype(np.int32)
