"""The curator of DP-EBM+ in plain float64 NumPy: no kernel, no precision lost, to be read."""

import math

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from dprepro.additive.bins import Pair
from dprepro.data.domain import NumericFeature
from dprepro.methods.dp_ebm_plus.grid import grid_edges
from dprepro.methods.dp_ebm_plus.kernel import UNIT
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, POISSON, SQUARED, Softmax
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    ClassCounts,
    ClassResiduals,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Merge,
    Moves,
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


def vectors(code, bins):
    """Return a code's vector of each of these bins, float64 (n, numbers)."""
    mix = np.eye(code.centre.size) if code.mix is None else code.mix / 256
    return code.weights * (mix.T[bins] - code.centre / 256)


class PlainCurator:
    """Answers as `PlusCurator` does, with noise drawn from a generator that is given."""

    def __init__(self, X, y, domain, loss, generator):
        self.features, self.loss, self.generator = domain.features, loss, generator
        sorted_rows = [public_cells(X[feature.name], feature) for feature in domain.features]
        self.cells, self.n_cells = zip(*sorted_rows, strict=True)
        self.bins = {INTERCEPT: np.zeros(len(y), int)}
        self.queries = []
        if isinstance(loss, Softmax):
            self.targets = np.eye(loss.n_classes)[y]
            return
        lower, upper = (0.0, 1.0) if loss is LOGISTIC else domain.target
        self.centred = (np.clip(y, lower, upper) - (lower + upper) / 2) / (upper - lower)
        self.targets = self.centred if loss is SQUARED else self.centred + 0.5

    # --- phases: `noise` is the standard deviation for sensitivity 1 and share 1 ------------------

    def open_totals(self, mu, budget):
        self.noise = 1 / mu

    def open_histograms(self, mu, n_features, budget):
        self.noise = math.sqrt(n_features) / mu
        return self.noise

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
            start = np.asarray(instruction.score) * UNIT
            self.scores = np.full(self.targets.shape, start)
        elif isinstance(instruction, Merge):
            k = instruction.feature
            self.bins[k] = instruction.bin_of_cell[self.cells[k]]
        elif isinstance(instruction, Moves):
            for move in instruction.moves:
                self.tell(move)
        else:
            self.scores += UNIT * instruction.change[self.bins_in(instruction.feature)]

    def bins_in(self, feature):
        """Return the bin of each row in a feature, or its cell in a pair."""
        if not isinstance(feature, Pair):
            return self.bins[feature]
        first = feature.first_groups[self.bins[feature.first]].astype(int)
        second = feature.second_groups[self.bins[feature.second]]
        return first * (int(feature.second_groups.max()) + 1) + second

    # --- exact answers --------------------------------------------------------------------------

    def exact(self, query):
        return {
            Totals: self.totals, CodedHistogram: self.histogram, Magnitudes: self.magnitudes,
            Residuals: self.residual_sums, CodedResiduals: self.coded_sums,
            ClassCounts: lambda _: self.targets.sum(axis=0), ClassResiduals: self.class_sums,
        }[type(query)](query)  # fmt: skip

    def totals(self, query):
        squares = [4 * (self.centred**2).sum()] if query.powers == 2 else []
        return np.array([self.centred.size, self.centred.sum(), *squares])

    def histogram(self, query):
        return vectors(query.code, self.cells[query.code.feature]).sum(axis=0)

    def magnitudes(self, query):
        cells = np.floor(-2 * np.log2(np.maximum(np.abs(self.residuals()), UNIT)))
        return np.bincount(np.clip(cells, 0, 19).astype(int), minlength=20) * 1.0

    def residual_sums(self, query):
        assert query.feature == INTERCEPT
        return np.array([np.clip(self.residuals(), -query.bound, query.bound).sum()])

    def codes_of(self, query):
        """Return the code of each row, and its length."""
        u = np.hstack([vectors(code, self.bins_in(code.feature)) for code in query.codes])
        return u, np.linalg.norm(u, axis=1)

    def coded_sums(self, query):
        u, lengths = self.codes_of(query)
        limits = query.bound / lengths
        return np.clip(self.residuals(), -limits, limits) @ u

    def class_sums(self, query):
        u, lengths = self.codes_of(query)
        residuals = self.targets - softmax(self.scores, axis=1)
        limits = np.minimum(query.bound / lengths / np.linalg.norm(residuals, axis=1), 1)
        return u.T @ (residuals * limits[:, None])

    def residuals(self):
        if self.loss is LOGISTIC:
            return self.targets - expit(self.scores)
        if self.loss is POISSON:
            return self.targets - np.exp(np.minimum(self.scores, 0))
        return self.targets - np.clip(self.scores, -0.5, 0.5)
