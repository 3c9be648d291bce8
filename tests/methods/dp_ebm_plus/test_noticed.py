"""Whatever the estimator does other than the page of DP-EBM+ says is noticed."""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.methods.dp_ebm_plus import algorithm, bins, booster, counts, curator, sums
from dprepro.methods.dp_ebm_plus.booster import Average, Booster, Damping
from dprepro.methods.dp_ebm_plus.classes import SoftmaxLoss
from dprepro.methods.dp_ebm_plus.clipping import EDGES, MAGNITUDES
from dprepro.methods.dp_ebm_plus.losses import (
    LOGISTIC,
    POISSON,
    SQUARED,
    LogisticLoss,
    Softmax,
    SquaredLoss,
)
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT
from dprepro.methods.dp_ebm_plus.strategy import Mix, Strategy
from tests.methods.dp_ebm_plus.test_algorithm import agree, fit, page


def limiting_more(*of):
    *rows, query, changes, kind, weights = of
    return coded_sums(*rows, replace(query, bound=0.9 * query.bound), changes, kind, weights)


def following_no_moves(*of):
    return coded_sums(*of[:4], {}, *of[5:])


def following_all_but_the_last_move(*of):
    return coded_sums(*of[:4], dict(list(of[4].items())[:-1]), *of[5:])


def not_centred(*of):
    """Limit residuals by the norms of centred codes, but sum codes that are not."""
    answer, (intercept, *features) = coded_sums(*of), of[3].codes
    centres = np.concatenate([intercept.centre, *(code.centre for code in features)])
    return replace(answer, numbers=answer.numbers + centres * (answer.numbers[0] // 256))


def without_weights(*of):
    """Limit residuals by the norms of weighted codes, but sum codes that are not."""
    return replace(coded_sums(*of), unit=2.0**-32)


def not_shared(mix, variances):
    """Return the noise of sums as if each were what one number says."""
    return np.stack([np.sqrt(variances), np.zeros(variances.size)])


def without_intercept(code):
    return whole_squares(code) * (code.feature != INTERCEPT) + 1


def norms_of(change):
    """Return a function of a code that gives the squared norms of the code with a change."""
    return lambda code: whole_squares(replace(code, **change(code)))


def cells_alone(exact, query):
    """Answer of a histogram as if its numbers were of one cell each."""
    code = query.code
    mix = 256 * np.eye(code.n_bins, dtype=np.int64)
    return coded_histogram(exact, replace(query, code=replace(code, mix=mix)))


def asked_alone(cls, feature, counts, precision, noise, part):
    return strategy_of(feature, counts, precision, 1e-9, part)


def next_cell(*of):
    return np.minimum(magnitude_cells(*of) + 1, MAGNITUDES - 1).astype(np.uint8)


def clipping_far_more(self, query):
    return residuals(self, replace(query, bound=0.1 * query.bound, charged=query.charged))


def shortened_more(*of):
    *rows, query, changes, classes, weights = of
    return class_sums(*rows, replace(query, bound=0.9 * query.bound), changes, classes, weights)


coded_sums, class_sums, magnitude_cells = (
    curator.coded_sums, curator.class_sums, curator.magnitude_cells,
)  # fmt: skip
coded_histogram, residuals = (
    curator.ExactAnswers._coded_histogram, curator.ExactAnswers._residuals,
)  # fmt: skip
whole_squares, strategy_of = sums._whole_squares, Strategy.of
add = Average.add

ALL = {
    "numbers of one cell each": (curator.ExactAnswers, "_coded_histogram", cells_alone),
    "all epochs alike": (Average, "add", lambda a, v, d, w: add(a, v, d, 1.0)),
    "norms of codes that are not centred": (
        sums, "_whole_squares", norms_of(lambda code: {"centre": 0 * code.centre}),
    ),
    "norms of codes that have no weights": (
        sums, "_whole_squares", norms_of(lambda code: {"weights": np.ones_like(code.weights)}),
    ),
    "norms without the intercept": (sums, "_whole_squares", without_intercept),
    "a bound for codes of norm 1": (booster, "typical_norm", lambda *_: 1.0),
    "bins apart": (Strategy, "of", classmethod(asked_alone)),
    "noise that no bins share": (Mix, "noise", not_shared),
    "numbers taken for sums": (Mix, "sums", lambda _, numbers: numbers),
    "the first pace in all epochs": (Damping, "follow", lambda *_: None),
    "wider bins": (bins, "_SEEN", 2.0),
    "likelier counts": (bins, "_REACHES", (1.0,)),
    "larger effects": (booster, "half_cauchy", lambda *_: np.array([1, 1, 1, 1, 1, 9]) / 14),
    "less for histograms": (algorithm, "HISTOGRAMS_SHARE", 0.05),
}  # fmt: skip
OF_ONE = {
    "clips more": (curator, "coded_sums", limiting_more),
    "sums of codes that have no weights": (curator, "coded_sums", without_weights),
    "sums of codes that are not centred": (curator, "coded_sums", not_centred),
}
OF_LABELS = {
    "ignores moves": (curator, "coded_sums", following_no_moves),
    "ignores one move": (curator, "coded_sums", following_all_but_the_last_move),
    "a lower bound": (LogisticLoss, "bound", lambda *_: 0.5),
    "more for totals": (LogisticLoss, "totals_share", 0.02),
}
OF_SIZES = {
    "clips the intercept's far more": (curator.ExactAnswers, "_residuals", clipping_far_more),
    "sizes in the next cell": (curator, "magnitude_cells", next_cell),
    "more for totals": (SquaredLoss, "totals_share", 0.04),
    "one bound for all": (booster, "best_bound", lambda *_: EDGES[5]),
    "the middle at the mean": (booster, "_OFFSET", 1e-6),
}
OF_COUNTS = {"whole steps": (counts.CountBooster, "_change", Booster._change)}
OF_CLASSES = {
    "shortens more": (curator, "class_sums", shortened_more),
    "a lower bound": (SoftmaxLoss, "bound", lambda *_: 0.7),
}
CHANGES = [
    *((LOGISTIC, *change) for change in (ALL | OF_ONE | OF_LABELS).items()),
    *((SQUARED, *change) for change in (ALL | OF_ONE | OF_SIZES).items()),
    *(
        (POISSON, *change)
        for change in (OF_SIZES | OF_COUNTS).items()
        if change[0] != "the middle at the mean"  # that is another number for counts
    ),
    *((Softmax(3), *change) for change in (ALL | OF_CLASSES).items()),
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
