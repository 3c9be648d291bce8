"""A curator of a table of codes, whose noise the tests choose."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.bins import BinnedFeature
from dprepro.methods.dp_ebm_plus.booster import (
    EFFECT,
    Booster,
    Effect,
    averaging,
    part_of_a_feature,
    question,
)
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.kernel import to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    Code,
    CodedResiduals,
    Magnitudes,
    Merge,
    Residuals,
    Start,
)
from dprepro.privacy.query import Instruction, NoisyAnswer

BOTH = pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=["classification", "regression"])
BINS = 3
CATEGORIES = tuple("abc")


def exact_answers(codes, targets, loss):
    """Return the exact answers of rows with these bins, (K, n), three a feature, and targets (n,).

    Targets are labels 0 and 1, or lie in [-1/2, 1/2].
    """
    features = tuple(CategoricalFeature(f"x{k}", CATEGORIES) for k in range(len(codes)))
    domain = Domain(features, ("0", "1") if loss is LOGISTIC else (-0.5, 0.5))
    frame = pd.DataFrame(
        {
            f.name: pd.Categorical.from_codes(c, CATEGORIES)
            for f, c in zip(features, codes, strict=True)
        }
    )
    exact = ExactAnswers.of(Rows(frame, np.asarray(targets, float)), domain, loss)
    for k in range(len(codes)):
        exact.follow(Merge(k, np.array([0, 1, 2, 0]), BINS))
    return exact


def of_all_rows(loss, bound, share=1.0):
    """Return the query for the sum of all rows' residuals, clipped to +-`bound`."""
    if loss is SQUARED:
        return Residuals(bound, share, INTERCEPT, bound)
    code = Code(INTERCEPT, np.ones(1), np.zeros(1, int))
    return CodedResiduals(bound, share, (code,), bound)


class Events:
    """Keeps what a curator is asked and told, and what it releases."""

    def __init__(self):
        self.events = []

    def asked(self, query, release):
        self.events.append((query, release))

    def told(self, instruction):
        self.events.append(instruction)


def replay(events, *tables):
    """Yield every query, its release, and what each of some `ExactAnswers` says to it."""
    for event in events:
        if isinstance(event, Instruction):
            for table in tables:
                table.follow(event)
        else:
            yield (*event, *(table.answer(event[0]).value for table in tables))


class Stub:
    """Adds `noise(shape)` to exact answers as a curator does, and keeps what it hears.

    Attributes
    ----------
    asked
        Queries, their exact answers, and the releases.
    """

    def __init__(self, exact, noise: Callable[..., np.ndarray] | None, deviation: float) -> None:
        self.exact, self.noise, self.deviation = exact, noise, deviation
        self.asked: list = []

    def answer(self, query):
        exact = self.exact.answer(query).value
        factor = query.charged / math.sqrt(query.share)
        noise = 0.0 if self.noise is None else self.noise(exact.shape)
        release = NoisyAnswer(exact + factor * noise, factor * self.deviation)
        self.asked.append((query, exact, release))
        return release

    def open_totals(self, mu, budget):
        pass

    def tell(self, instruction):
        self.exact.follow(instruction)


def gaussian(deviation, seed=0):
    """Return noise for a `Stub`."""
    generator = np.random.default_rng(seed)
    return lambda shape: generator.normal(0, deviation, shape)


def booster(
    codes, targets, loss, *, counts=None, deviation=1e-3, noise=None, ordered=False, n_epochs=16
):
    """Return a booster of features with three bins each, with its `Stub` as ``curator``."""
    codes, targets = np.asarray(codes), np.asarray(targets, float)
    if counts is None:
        counts = [np.bincount(code, minlength=BINS) + 0.5 for code in codes]
    else:
        counts = [np.asarray(counts, float)] * len(codes)
    rows = float(counts[0].sum()) if len(counts) else float(targets.size)
    centred = targets - (0.5 if loss is LOGISTIC else 0.0)
    sums = rows * np.array([(centred**power).mean() for power in range(1, loss.powers + 1)])
    start = loss.start(rows, 1.0, sums, np.ones(sums.size))
    part, effects = part_of_a_feature(len(codes)), [Effect(k, c) for k, c in enumerate(counts)]
    sizes = deviation * start.residual / math.sqrt(part)
    sizes /= rows * start.slope * EFFECT * start.unit
    bins = [BinnedFeature(None, None, c, BINS if ordered else 0) for c in counts]
    questions = [question(k, found, sizes, part) for k, found in enumerate(bins)]
    learner = Booster(loss, start, effects, questions, deviation, averaging(n_epochs))
    learner.curator = Stub(exact_answers(codes, targets, loss), noise, deviation)
    learner.curator.tell(Start(int(to_units(learner.level.values[0]))))
    return learner


def learn(learner, epochs=None):
    """Let a `booster` ask and learn: in all of its epochs, or in so many of them."""
    for number in range(learner.weights.size if epochs is None else epochs):
        algorithm.epoch(learner.curator, learner, number)


def ask_for_bound(learner):
    """Let a `booster` ask how large residuals are, and choose its bound."""
    learner.choose_bound(learner.curator.answer(Magnitudes(1.0, learner.sizes_share)))
