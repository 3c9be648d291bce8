"""The curators of DP-EBM+ in plain float64 NumPy: no kernel, no precision lost, to be read."""

import math

import numpy as np
import pandas as pd
from scipy.special import expit

from dprepro.additive.bins import Pair
from dprepro.data.domain import NumericFeature
from dprepro.methods.dp_ebm_plus.grid import grid_edges
from dprepro.methods.dp_ebm_plus.kernel import UNIT
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    CodedResiduals,
    Histogram,
    Magnitudes,
    Merge,
    Move,
    Moves,
    PairResiduals,
    Residuals,
    Start,
    Totals,
)
from dprepro.privacy.query import NoisyAnswer


def public_cells(column, feature):
    """Return each row's cell, and how many cells there are; the last is for missing values."""
    missing = column.isna().to_numpy()
    if isinstance(feature, NumericFeature):
        edges = grid_edges(feature)
        cells, last = np.searchsorted(edges, column.to_numpy(), side="right"), edges.size + 1
    else:
        cells, last = pd.Index(feature.categories).get_indexer(column), len(feature.categories)
    return np.where(missing, last, cells), last + 1


class PlainCurator:
    """Answers as `PlusCurator` does, with noise drawn from a generator that is given."""

    def __init__(self, X, y, domain, loss, generator):
        self.features, self.loss, self.generator = domain.features, loss, generator
        sorted_rows = [public_cells(X[feature.name], feature) for feature in domain.features]
        self.cells, self.n_cells = zip(*sorted_rows, strict=True)
        lower, upper = (0.0, 1.0) if loss is LOGISTIC else domain.target
        self.centred = (np.clip(y, lower, upper) - (lower + upper) / 2) / (upper - lower)
        self.targets = self.centred + 0.5 if loss is LOGISTIC else self.centred
        self.bins = {INTERCEPT: (np.zeros(len(y), int), 1)}
        self.queries = []

    # --- phases: `noise` is the standard deviation for sensitivity 1 and share 1 ------------------

    def open_totals(self, mu, budget):
        self.noise = 1 / mu

    def open_histograms(self, mu, n_features, budget, is_low_signal=False):
        self.noise, self.is_low_signal = math.sqrt(n_features) / mu, is_low_signal

    def open_epochs(self, mu, n_epochs, budget, *, has_pairs=False):
        self.noise = math.sqrt(n_epochs) / mu
        return self.noise

    def answer(self, query):
        self.queries.append(query)
        exact = self.exact(query)
        scale = self.noise * query.charged / math.sqrt(query.share)
        return NoisyAnswer(exact + scale * self.generator.normal(size=exact.shape), scale)

    def tell(self, instruction):
        if isinstance(instruction, Start):
            self.scores = np.full(self.targets.size, instruction.score * UNIT)
        elif isinstance(instruction, Merge):
            k = instruction.feature
            self.bins[k] = instruction.bin_of_cell[self.cells[k]], instruction.n_bins
        elif isinstance(instruction, Moves):
            for move in instruction.moves:
                self.tell(move)
        else:
            self.scores += UNIT * instruction.change[self.bins[instruction.feature][0]]

    # --- exact answers --------------------------------------------------------------------------

    def exact(self, query):
        return {
            Totals: self.totals, Histogram: self.histogram, Magnitudes: self.magnitudes,
            Residuals: self.residual_sums, CodedResiduals: self.coded_sums,
        }[type(query)](query)  # fmt: skip

    def totals(self, query):
        squares = [4 * (self.centred**2).sum()] if query.powers == 2 else []
        return np.array([self.centred.size, self.centred.sum(), *squares])

    def histogram(self, query):
        counts = np.bincount(self.cells[query.feature], minlength=self.n_cells[query.feature])
        if not isinstance(self.features[query.feature], NumericFeature):
            return counts * 1.0
        cells, missing = counts[:-1], counts[-1:]
        groups = [cells[first : first + 16].sum() for first in range(0, cells.size, 16)]
        return np.concatenate([cells / math.sqrt(2), missing, np.array(groups) / math.sqrt(2)])

    def magnitudes(self, query):
        cells = np.floor(-2 * np.log2(np.maximum(np.abs(self.residuals()), UNIT)))
        return np.bincount(np.clip(cells, 0, 19).astype(int), minlength=20) * 1.0

    def residual_sums(self, query):
        assert self.loss is SQUARED
        codes, n_bins = self.bins[query.feature]
        return np.bincount(codes, np.clip(self.residuals(), -query.bound, query.bound), n_bins)

    def coded_sums(self, query):
        vectors = []
        for code in query.codes:
            codes, n_bins = self.bins[code.feature]
            mix = np.eye(n_bins) if code.mix is None else code.mix / 256
            vectors.append(code.weights * (mix.T[codes] - code.centre / 256))
        u = np.hstack(vectors)
        limits = query.bound / np.linalg.norm(u, axis=1)
        return np.clip(self.residuals(), -limits, limits) @ u

    def residuals(self):
        if self.loss is LOGISTIC:
            return self.targets - expit(self.scores)
        return self.targets - np.clip(self.scores, -0.5, 0.5)


class PlainPairs(PlainCurator):
    """Also answers about pairs."""

    def open_epochs(self, mu, n_epochs, budget, *, has_pairs=False):
        assert has_pairs != self.is_low_signal
        return super().open_epochs(mu, n_epochs, budget)

    def exact(self, query):
        if not isinstance(query, PairResiduals):
            return super().exact(query)
        codes, n_cells = self.cells_of(query.pair), query.pair.n_cells
        r = np.clip(self.residuals(), -query.bound, query.bound)
        curvatures = np.abs(r) * (1 - np.abs(r))
        masses = curvatures if self.loss is LOGISTIC else np.full(r.size, query.bound / 2)
        return np.stack([np.bincount(codes, part, n_cells) for part in (r, masses)])

    def cells_of(self, pair):
        first, second = self.bins[pair.first][0], self.bins[pair.second][0]
        width = int(pair.second_groups.max()) + 1
        return pair.first_groups[first].astype(int) * width + pair.second_groups[second]

    def tell(self, instruction):
        if isinstance(instruction, Move) and isinstance(instruction.feature, Pair):
            self.scores += UNIT * instruction.change[self.cells_of(instruction.feature)]
        else:
            super().tell(instruction)
