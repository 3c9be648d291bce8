"""DP-EBM+ on one page: what is asked of the rows, in which order, and what is made of the answers.

Only the curator sees rows. It adds independent Gaussian noise to every answer. Its answers are

1. totals: the number n of rows and the sum of their centred targets, for regression also the sum of
   the squares. They get 1 % (regression 2 %) of mu^2, which is what the budget (epsilon, delta)
   comes to.
2. histograms: rows per cell of a public grid, for every feature. They get 12 % of mu^2 for
   classification and 20 % for regression.
3. sums of residuals. `n_epochs` epochs share the rest evenly. Row i has the score
   F_i = intercept + sum_k f_k(x_ik) and the residual r_i = y_i - sigmoid(F_i), or y_i - F_i for
   regression, where F_i is clipped to the range of the targets. For classification one query an
   epoch asks about the intercept and all features: the curator sums r_i u_i, where the code u_i
   says in which bins the row lies (`strategy`), and r_i is clipped to +- bound / |u_i|. For
   regression each feature has such a query, one after another, and the intercept one without a
   code; an epoch begins with counts of |r_i| by size, from which the bound follows. Neighbouring
   bins share what is asked for (`autoregressive_strategy`; where rows are few,
   `low_signal.smooth_sums`).

Where the totals say that noise is large for so few rows (`low_signal`), histograms get 2 %, bins
depend on the domain alone, and the functions follow their noisy gradients. Then an epoch of a
regression asks about the intercept, and about all features in one query, for which F_i has the
middle in place of the intercept: the level at which clipped residuals add up to 0
(`low_signal.TrackedIntercept`). A part of the query is about the middle. Either way all of mu^2 is
spent.

With pairs of features, some epochs ask about these, too: `dprepro.methods.dp_ebm_plus.pairs` has
the order.

All else is post-processing of the answers: cells are merged until a bin's count is about its noise,
codes, bounds and the division of an epoch's mu^2 follow from the functions so far, each function is
inferred from the average of its answers by empirical Bayes (`booster`, `smoothing`), and how far
new targets lie from their predictions from all counts of |r_i| (`residual_quantiles`).
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.additive.bins import FeatureBins
from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm_plus.booster import Booster, residual_quantiles
from dprepro.methods.dp_ebm_plus.curator import PlusCurator
from dprepro.methods.dp_ebm_plus.function import Answer, Function
from dprepro.methods.dp_ebm_plus.grid import agreeing_counts, merge_fine, sum_deviations
from dprepro.methods.dp_ebm_plus.kernel import to_units
from dprepro.methods.dp_ebm_plus.losses import Loss
from dprepro.methods.dp_ebm_plus.low_signal import (
    LOW_SIGNAL_SHARE,
    LowSignalBooster,
    is_low_signal,
    likely_counts,
    public_bins,
)
from dprepro.methods.dp_ebm_plus.queries import (
    FACTORS,
    INTERCEPT,
    CodedResiduals,
    Histogram,
    Magnitudes,
    Merge,
    Move,
    Moves,
    Start,
    Totals,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_part
from dprepro.privacy.query import NoisyAnswer
from dprepro.rows.table import report


def learn(
    curator: PlusCurator, domain: Domain, loss: Loss, budget: PrivacyBudget, n_epochs: int | None
) -> tuple[list[FeatureBins], list[Function], float, np.ndarray | None]:
    """Return bins and functions, the intercept, and `residual_quantiles` of a regression.

    All of them are in the unit of the loss. Without a number of epochs, it is that of the loss.
    """
    bins, functions, booster = prepare(curator, domain, loss, budget, n_epochs)
    for number in range(booster.n_epochs):
        epoch(curator, booster, number)
    return results(bins, functions, booster)


def results(
    bins: list[FeatureBins], functions: list[Function], booster: Booster
) -> tuple[list[FeatureBins], list[Function], float, np.ndarray | None]:
    """Return what `learn` does, after the last epoch."""
    booster.set_bands()
    return bins, functions, float(booster.intercept.values[0]), residual_quantiles(booster)


def prepare(
    curator: PlusCurator,
    domain: Domain,
    loss: Loss,
    budget: PrivacyBudget,
    n_epochs: int | None,
    has_pairs: bool = False,
) -> tuple[list[FeatureBins], list[Function], Booster]:
    """Ask 1 and 2, open 3: return each feature's bins and function of zeros, and what learns them.

    `has_pairs` says that pairs may be asked about, which they are not where rows are few.
    """
    n_features = len(domain.features)
    curator.open_totals(*gdp_part(budget, loss.totals_share))
    rows, start, typical, noise = release_totals(curator, loss)

    coarse = is_low_signal(rows, n_features, gdp_part(budget, 1.0)[0], loss.few(typical))
    if n_epochs is None:
        n_epochs = loss.low_signal_epochs if coarse else loss.epochs
    binning_share = LOW_SIGNAL_SHARE if coarse else loss.binning_share
    mu, spent = gdp_part(budget, binning_share)
    curator.open_histograms(mu, n_features, spent, coarse)
    histograms = [curator.answer(Histogram(1.0, 1.0, k)) for k in range(n_features)]
    mu, rest = gdp_part(budget, 1 - loss.totals_share - binning_share)
    if coarse:
        bins, functions = divide(curator, domain, histograms, rows)
    else:
        fewest = loss.fewest_rows(math.sqrt(n_features) / mu, start)
        rule = {"seen": loss.bin_deviations, "fewest": fewest}
        bins, functions = merge(curator, domain, histograms, rows, **rule)
    deviation = curator.open_epochs(mu, n_epochs, rest, has_pairs=has_pairs and not coarse)
    learned = [function for function in functions if function.counts.size > 1]
    kind = LowSignalBooster if coarse else Booster
    booster = kind(learned, loss, rows, start, typical, deviation, n_epochs, noise)
    curator.tell(Start(int(to_units(start))))  # F_i = start for every row
    return bins, functions, booster


def release_totals(curator: PlusCurator, loss: Loss) -> tuple[float, float, float, float]:
    """Return estimates of n, the intercept and the targets' deviation, and the noise in n."""
    answer = curator.answer(Totals.up_to(loss.powers))
    rows = max(answer.value[0], answer.scale, 10.0)
    factors = np.array(FACTORS[1 : answer.value.size])
    start, typical = loss.start(answer.value[1:] / factors, rows, answer.scale / factors)
    return rows, start, typical, float(answer.scale)


def merge(
    curator: PlusCurator, domain: Domain, histograms: list[NoisyAnswer], rows: float, **rule: float
) -> tuple[list[FeatureBins], list[Function]]:
    """Return each feature's bins and function of zeros; `rule` is that of `merge_fine`."""
    all_bins, functions = [], []
    for k, (feature, histogram) in enumerate(zip(domain.features, histograms, strict=True)):
        cells, noise = agreeing_counts(feature, histogram.value, histogram.scale)
        bins, counts, bin_of_cell = merge_fine(feature, cells, noise, rows, **rule)
        curator.tell(Merge(k, bin_of_cell, bins.n_bins))
        all_bins.append(bins)
        functions.append(Function.over_bins(k, feature, counts, bin_of_cell, noise))
    return all_bins, functions


def divide(
    curator: PlusCurator, domain: Domain, histograms: list[NoisyAnswer], rows: float
) -> tuple[list[FeatureBins], list[Function]]:
    """Return each feature's public bins and function of zeros; see `public_bins`."""
    all_bins, functions = [], []
    for k, (feature, histogram) in enumerate(zip(domain.features, histograms, strict=True)):
        cells, noise = agreeing_counts(feature, histogram.value, histogram.scale)
        bins, bin_of_cell = public_bins(feature)
        curator.tell(Merge(k, bin_of_cell, bins.n_bins))
        # The cell of missing values is empty, and known to be, where the domain allows none.
        used = slice(None) if feature.missing else slice(-1)
        noisy = np.bincount(bin_of_cell[used], cells[used], bins.n_bins)
        deviations = sum_deviations(feature, bin_of_cell, bins.n_bins, noise)
        counts = likely_counts(noisy, deviations, rows)
        all_bins.append(bins)
        function = Function.over_bins(k, feature, counts, bin_of_cell, noise)
        function.noisy = noisy
        functions.append(function)
    return all_bins, functions


def epoch(curator: PlusCurator, booster: Booster, number: int) -> None:
    """Ask every query of an epoch. Their bound and shares are fixed before residuals are asked."""
    if booster.loss.sizes_weight:
        booster.choose_bound(curator.answer(Magnitudes(1.0, booster.shares.magnitudes)))
    shares = [booster.shares.intercept, *booster.feature_shares()]
    functions = [booster.intercept, *booster.functions]
    steps = [([function], share) for function, share in zip(functions, shares, strict=True)]
    together = booster.together
    if together:
        first = 0 if together[0] is booster.intercept else 1
        steps[first : first + len(together)] = [(together, 0.0)]  # the query knows its share
    for place, (group, share) in enumerate(steps, start=1):
        if group is together:
            step_all(curator, booster, number)
        else:
            step(curator, booster, group[0], share, number)
        report("boosting", number * len(steps) + place, booster.n_epochs * len(steps))


def step_all(curator: PlusCurator, booster: Booster, number: int) -> None:
    """Ask for the residuals of all functions `together`, and move all of them.

    If the booster has a `middle`, rows have it in place of the intercept meanwhile.
    """
    query, middle = booster.coded_residuals(), booster.middle
    if middle is not None:
        curator.tell(Move(INTERCEPT, booster.intercept.change_to(middle)))
    move_all(curator, booster, booster.together, query, number)
    if middle is not None:
        booster.settle_intercept()
        curator.tell(Move(INTERCEPT, middle.change_to(booster.intercept)))


def step(
    curator: PlusCurator, booster: Booster, function: Function, share: float, number: int
) -> None:
    """Ask for a function's residuals, and move it to what all answers so far say."""
    query = booster.residuals_of(function, share)
    if isinstance(query, CodedResiduals):
        move_all(curator, booster, [function], query, number)
        return
    answer = curator.answer(query)
    values = booster.learn(function, Answer(answer.value, answer.scale), share, number)
    curator.tell(Move(function.feature, function.move(values)))


def move_all(
    curator: PlusCurator,
    booster: Booster,
    functions: list[Function],
    query: CodedResiduals,
    number: int,
) -> None:
    """Ask for the residuals of functions in one query, and move all to what answers so far say."""
    values = booster.learn_all(functions, query, curator.answer(query), number)
    curator.tell(
        Moves(tuple(Move(f.feature, f.move(v)) for f, v in zip(functions, values, strict=True)))
    )
