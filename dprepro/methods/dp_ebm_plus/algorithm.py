"""DP-EBM+ on one page: what is asked of the rows, in which order, and what is made of the answers.

Only the curator sees rows. It adds independent Gaussian noise to every answer. Its answers are

1. totals: the number n of rows and the sum of their centred targets, for regression also the sum of
   the squares. They get 1 % (regression 2 %) of mu^2, which is what (epsilon, delta) comes to.
2. histograms: rows per cell of a public grid, for every feature, and cells of a number as features
   are asked about (`strategy`), from the numbers of rows alone. They get 10 % of mu^2.
3. sums of residuals. The epochs share the rest evenly. Row i has the score F_i = intercept + sum_k
   f_k(x_ik) and the residual r_i = y_i - sigmoid(F_i), or y_i - F_i for regression, F_i clipped to
   the range of the targets. One query an epoch asks about all features and the intercept: the
   curator sums r_i u_i. The code u_i says in which bins the row lies (`strategy`), and r_i is
   clipped to +- bound / |u_i|. The more noise there is, the smaller is the bound (`losses`).

An epoch of a regression begins with counts of |r_i| by size, which say where to clip, and with the
sum of all residuals, which are hardly clipped for it: they lead to the mean, where those of the
features lead to a level below or above, the middle. Features are asked about from the middle. Some
epochs may ask about pairs of features (`pairs`).

All else is post-processing: bins (`bins`), functions and levels (`booster`, `prior`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dprepro.additive.bins import FeatureBins
from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm_plus.bins import binned, histogram
from dprepro.methods.dp_ebm_plus.booster import (
    EFFECT,
    INTERCEPT_PART,
    Booster,
    Effect,
    averaging,
    noise_of_average,
    part_of_a_feature,
    question,
)
from dprepro.methods.dp_ebm_plus.curator import PlusCurator
from dprepro.methods.dp_ebm_plus.kernel import to_units
from dprepro.methods.dp_ebm_plus.losses import Loss, Start
from dprepro.methods.dp_ebm_plus.pairs import PairEffect, Pairs
from dprepro.methods.dp_ebm_plus.queries import (
    FACTORS,
    INTERCEPT,
    CodedHistogram,
    Magnitudes,
    Merge,
    Move,
    Moves,
    Totals,
)
from dprepro.methods.dp_ebm_plus.queries import Start as StartOfScores
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_part
from dprepro.rows.table import report

Learner = TypeVar("Learner", bound=Booster)

HISTOGRAMS_SHARE = 0.1
"""Share of mu^2 that goes to the histograms."""

EPOCHS = 64


def learn(
    curator: PlusCurator,
    domain: Domain,
    loss: Loss,
    budget: PrivacyBudget,
    n_epochs: int,
    most_pairs: int = 0,
    kind: Callable[..., Booster] = Booster,
) -> tuple[list[FeatureBins], list[Effect], float, np.ndarray | None, list[PairEffect]]:
    """Return bins and functions, the intercept, `Booster.residual_quantiles`, and pairs.

    All of them are in the unit of the loss. There are `most_pairs` at most: see `pairs`. `kind`
    makes what learns functions: see `divide`.
    """
    start = totals(curator, loss, budget)
    bins, effects, booster = divide(
        curator, domain, loss, budget, start, n_epochs, kind, has_pairs=most_pairs > 0
    )
    curator.tell(StartOfScores(int(to_units(booster.level.values[0]))))
    pairs = Pairs(booster, domain, most_pairs, n_epochs)
    for number in range(n_epochs):
        pairs.choose(number)
        epoch(curator, booster, number)
        report("boosting", number + 1, n_epochs)
    level, sizes = float(booster.level.values[0]), booster.residual_quantiles()
    return bins, effects, level, sizes, pairs.kept


def totals(curator: PlusCurator, loss: Loss, budget: PrivacyBudget) -> Start:
    """Ask 1, and return what it says."""
    curator.open_totals(*gdp_part(budget, loss.totals_share))
    answer = curator.answer(Totals.up_to(loss.powers))
    rows = max(answer.value[0], answer.scale, 10.0)
    factors = np.array(FACTORS[1 : answer.value.size])
    return loss.start(rows, answer.scale, answer.value[1:] / factors, answer.scale / factors)


def divide(
    curator: PlusCurator,
    domain: Domain,
    loss: Loss,
    budget: PrivacyBudget,
    start: Start,
    n_epochs: int,
    kind: Callable[..., Learner],
    has_pairs: bool = False,
) -> tuple[list[FeatureBins], list[Effect], Learner]:
    """Ask 2 and open 3: return each feature's bins and function of zeros, and what learns them.

    `kind` makes that: see `Booster`.
    """
    n_features = len(domain.features)
    mu, spent = gdp_part(budget, HISTOGRAMS_SHARE)
    ask = curator.open_histograms(mu, n_features, spent)
    histograms = [histogram(k, each, ask, start.rows) for k, each in enumerate(domain.features)]
    answers = [curator.answer(CodedHistogram.of(each.code)) for each in histograms]
    mu, rest = gdp_part(budget, 1 - loss.totals_share - HISTOGRAMS_SHARE)
    deviation = curator.open_epochs(mu, n_epochs, rest, has_pairs=has_pairs)
    # The noise in a bin's sum, if all bins are asked by themselves, in that of a usual effect.
    noise = deviation * start.residual * math.sqrt(n_features + INTERCEPT_PART)
    noise /= start.rows * start.slope * EFFECT * start.unit
    found = [
        binned(*each, start.rows) for each in zip(domain.features, histograms, answers, strict=True)
    ]
    for k, each in enumerate(found):
        curator.tell(Merge(k, each.bin_of_cell, each.bins.n_bins))
    effects = [Effect(k, each.counts) for k, each in enumerate(found)]
    learned = [k for k, effect in enumerate(effects) if effect.counts.size > 1]
    part = part_of_a_feature(len(learned))
    asked = sum(effects[k].counts.size for k in learned)
    ratio = asked * (noise * noise_of_average(averaging(n_epochs))) ** 2
    weights, bound = averaging(n_epochs, ratio), loss.bound(start, ratio)
    noise *= noise_of_average(weights) * bound / start.residual
    start = replace(start, residual=bound)
    questions = [question(k, found[k], noise, part) for k in learned]
    booster = kind(loss, start, [effects[k] for k in learned], questions, deviation, weights)
    return [each.bins for each in found], effects, booster


def epoch(curator: PlusCurator, booster: Booster, number: int) -> None:
    """Ask every query of an epoch. Bound, codes and shares follow from earlier answers alone."""
    if not booster.loss.counts_sizes:
        answer = curator.answer(booster.coded_residuals())
        curator.tell(Moves(tuple(booster.learn(answer, number))))
        return
    booster.choose_bound(curator.answer(Magnitudes(1.0, booster.sizes_share)))
    booster.learn_level(curator.answer(booster.of_level()), number)
    before = booster.level.values
    booster.levels()
    curator.tell(Move(INTERCEPT, to_units(booster.middle.values) - to_units(before)))
    answer = curator.answer(booster.coded_residuals())
    curator.tell(Moves(tuple(booster.learn(answer, number))))
    middle = booster.middle.values
    booster.levels()
    curator.tell(Move(INTERCEPT, to_units(booster.level.values) - to_units(middle)))
