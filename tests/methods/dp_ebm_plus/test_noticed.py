"""Whatever the estimator does other than the page of DP-EBM+ says is noticed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.function import Damping, Function

from dprepro.methods.dp_ebm_plus import booster, curator, strategy
from dprepro.methods.dp_ebm_plus import booster as booster_module
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.clipping import EDGES
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED, LogisticLoss, SquaredLoss
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT
from dprepro.methods.dp_ebm_plus.strategy import AutoregressiveStrategy
from tests.methods.dp_ebm_plus.test_algorithm import agree, fit, page


def clipping_far_more(*of):
    return residual_sums(*of[:6], math.floor(0.1 * of[6]), of[7])


def groups_in_full(feature, counts):
    answers = exact_answers(feature, counts)
    in_groups = np.arange(answers.numbers.size) >= counts.size
    return replace(answers, unit=answers.unit * np.where(in_groups, math.sqrt(2), 1.0))


def next_cell(*of):
    return np.roll(magnitude_counts(*of), 1)


def limiting_more(*of):
    *rows, query, changes, logistic, _ = of
    return coded_sums(*rows, replace(query, bound=0.9 * query.bound), changes, logistic)


def following_no_moves(*of):
    return coded_sums(*of[:-3], {}, of[-2])


def following_all_but_the_last_move(*of):
    return coded_sums(*of[:-3], dict(list(of[-3].items())[:-1]), of[-2])


def not_centred(*of):
    """Limit residuals by the norms of centred codes, but sum codes that are not."""
    answer, (intercept, *features) = coded_sums(*of), of[-4].codes
    centres = np.concatenate([intercept.centre, *(code.centre for code in features)])
    return replace(answer, numbers=answer.numbers + centres * (answer.numbers[0] // 256))


def without_weights(*of):
    """Limit residuals by the norms of weighted codes, but sum codes that are not."""
    return replace(coded_sums(*of), unit=2.0**-32)


def without_mix(code):
    """Return what makes a code one of as many numbers as before, each of a bin alone."""
    return {"mix": None if code.mix is None else 256 * np.eye(code.n_bins, dtype=np.int64)}


def not_shared(decay, variances):
    """Return the noise of sums as if each were what one number says."""
    return np.stack([np.sqrt(variances), np.zeros(variances.size)])


def without_intercept(code):
    return whole_squares(code) * (code.feature != INTERCEPT) + 1


def norms_of(change):
    """Return a function of a code that gives the squared norms of the code with a change."""
    return lambda code: whole_squares(replace(code, **change(code)))


residual_sums, magnitude_counts = curator.residual_sums, curator.magnitude_counts
exact_answers, coded_sums = curator.exact_answers, curator.coded_sums
remember, whole_squares = Function.remember, strategy._whole_squares
likely_code = booster_module.code

BOTHS = {
    "groups that are counted in full": (curator, "exact_answers", groups_in_full),
    "all epochs alike": (Function, "remember", lambda f, r, e, w: remember(f, r, e, 1.0)),
    "even shares": (booster, "EVEN_SHARE", 1.0),
    "clips more": (curator, "coded_sums", limiting_more),
    "ignores moves": (curator, "coded_sums", following_no_moves),
    "sums of codes that have no weights": (curator, "coded_sums", without_weights),
    "norms of codes that are not centred": (
        strategy, "_whole_squares", norms_of(lambda code: {"centre": 0 * code.centre}),
    ),
    "norms of codes that have no weights": (
        strategy, "_whole_squares", norms_of(lambda code: {"weights": np.ones_like(code.weights)}),
    ),
    "norms of codes that have no mix": (strategy, "_whole_squares", norms_of(without_mix)),
    "codes that are not centred": (
        booster_module, "code",
        lambda k, counts, *more: replace(
            likely_code(k, counts, *more), centre=np.zeros(counts.size, int)
        ),
    ),
    "a bound for codes of norm 1": (booster_module, "typical_norm", lambda *_: 1.0),
    "bins apart": (booster_module, "autoregressive_strategy", lambda *_: None),
    "a longer reach": (strategy, "REACH", 0.6),
    "noise that no bins share": (AutoregressiveStrategy, "noise", not_shared),
    "numbers taken for sums": (AutoregressiveStrategy, "sums", lambda _, numbers: numbers),
}  # fmt: skip
OF_LABELS = {
    "ignores one move": (curator, "coded_sums", following_all_but_the_last_move),
    "sums of codes that are not centred": (curator, "coded_sums", not_centred),
    "norms without the intercept": (strategy, "_whole_squares", without_intercept),
    "rare bins as precisely as others": (LogisticLoss, "rare", 0.0),
    "rare bins far more precisely": (LogisticLoss, "rare", 1.0),
    "a lower bound": (booster_module, "LARGEST_RESIDUAL", 0.72),
    "the first pace in all epochs": (Damping, "follow", lambda *_: None),
    "whole steps": (Booster, "_stride", lambda *_: 1.0),
    "no strays": (LogisticLoss, "expects_strays", False),
    "more for totals": (LogisticLoss, "totals_share", 0.02),
}  # fmt: skip
OF_NUMBERS = {
    "clips the intercept's far more": (curator, "residual_sums", clipping_far_more),
    "sizes in the next cell": (curator, "magnitude_counts", next_cell),
    "more for totals": (SquaredLoss, "totals_share", 0.04),
    "half steps": (SquaredLoss, "strides", (0.5, 0.5)),
    "whole steps": (SquaredLoss, "strides", (1.0, 1.0)),
    "all epochs in a hurry": (Booster, "weight", lambda _, number: (number + 1.0) ** 3),
    "one bound for all": (booster_module, "best_bound", lambda *_: EDGES[5]),
    "fitted rows are new ones": (booster, "_optimism", lambda *_: 0.0),
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
