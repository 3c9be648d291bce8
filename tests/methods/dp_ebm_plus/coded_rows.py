"""Rows and codes for tests of coded sums, and codes as vectors: as they are said to be."""

from dataclasses import dataclass

import numpy as np

from dprepro.methods.dp_ebm_plus.kernel import LABELS, to_units
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, Code, CodedResiduals
from dprepro.methods.dp_ebm_plus.sums import coded_sums

EXTREMES = (-1e4, -40.0, -17.0, -16.0, -1.0, 0.0, 0.3, 16.0, 17.0, 60.0, 1e4)
"""Scores up to the largest: from 17 on, float32 probabilities are 0 and 1 but for a few units."""


@dataclass
class CodedRows:
    """Rows in whole numbers; `bins` are uint8 (n,), by feature."""

    scores: np.ndarray
    targets: np.ndarray
    bins: dict

    def part(self, where):
        """Return copies of some of the rows."""
        bins = {feature: np.ascontiguousarray(codes[where]) for feature, codes in self.bins.items()}
        return CodedRows(self.scores[where].copy(), self.targets[where].copy(), bins)


def random_codes(rng, features):
    """Return codes of the intercept and features: of few bins or many, any centres and mixes."""
    codes = [Code(INTERCEPT, rng.uniform(0.3, 1, 1), np.zeros(1, int))]
    for k in range(features):
        n_bins = int(rng.choice([1, 2, 3, 9, 256]))
        weights = np.minimum(np.exp(rng.normal(0, 1, n_bins)), 20.0) / np.sqrt(n_bins)
        centre = np.rint(256 * rng.dirichlet(np.full(n_bins, 0.3))).astype(int)
        if rng.random() < 0.2:
            centre = rng.integers(0, 257, n_bins)
        mix = None
        if rng.random() < 0.4:
            mix = rng.integers(-1024, 1025, (int(rng.choice([1, 2, 9])), n_bins))
            weights = np.exp(rng.normal(0, 1, len(mix))) / np.sqrt(len(mix))
            centre = np.rint(mix.mean(axis=1)).astype(int)
        codes.append(Code(k, weights, centre, mix))
    return tuple(codes)


def random_rows(rng, codes, rows):
    """Return rows in these features' bins, some of them with extreme scores."""
    scores = np.where(rng.random(rows) < 0.3, rng.choice(EXTREMES, rows), rng.normal(0, 2, rows))
    bins = {code.feature: rng.integers(0, code.n_bins, rows).astype(np.uint8) for code in codes}
    return CodedRows(to_units(scores), to_units(rng.integers(0, 2, rows)), bins)


def asked(codes, bound):
    """Return the query for residuals times these codes."""
    return CodedResiduals(bound, 1.0, tuple(codes), bound)


def vectors(query, bins):
    """Return the vector of every row, float64 (n, the numbers of all features)."""
    found = []
    for code in query.codes:
        mix = 256 * np.eye(code.n_bins) if code.mix is None else code.mix
        found.append(code.weights * (mix.T[bins[code.feature]] - code.centre) / 256)
    return np.hstack(found)


def sums_of(rows, query, changes=None, kind=LABELS):
    """Return what the rows add; their scores move."""
    bins = rows.bins.__getitem__
    return coded_sums(rows.scores, rows.targets, bins, query, changes or {}, kind)
