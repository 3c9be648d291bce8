"""Problems for the kernel of DP-EBM; Algorithm 2, and whole numbers in Python, to compare it to."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dprepro.methods.dp_ebm import algorithm2, kernel, losses
from dprepro.methods.dp_ebm.binning import random_cuts
from dprepro.methods.dp_ebm.losses import BLOCK_ROWS, LARGEST, Loss
from dprepro.privacy.sampling import Bits, ExactSampler
from dprepro.runtime.threads import ALONE, Threads
from tests.privacy.sampling import reference

LIMIT = losses.LIMIT


@dataclass(frozen=True)
class Problem:
    """What `kernel.boost` takes, with targets in the unit of scores, whatever the loss."""

    codes: np.ndarray
    targets: np.ndarray
    cuts: np.ndarray
    normals: np.ndarray
    scale: float
    counts: np.ndarray
    n_bins: np.ndarray
    rate: float = 0.3

    def boost(self, loss: Loss, bound: int | None = None, threads: Threads = ALONE):
        """Return shapes int64 (K, B), factors and leaf sums by the kernel."""
        bound = loss.whole_bound if bound is None else bound
        given = kernel.Boosting(
            self.cuts, self.normals, self.scale, self.counts, self.n_bins, self.rate,
            loss.whole_start, loss.is_logistic, bound, loss.adaptive,
        )  # fmt: skip
        return kernel.boost(self.codes, loss.whole(self.targets), given, threads)

    def shapes(self, loss: Loss):
        """Return the kernel's functions, float64 (K, B)."""
        return np.ldexp(self.boost(loss)[0].astype(float), -loss.score_bits)

    def by_the_paper(self, loss: Loss, factors=1.0):
        """Return Algorithm 2's functions with the same noise."""
        drawn = noise(self.normals, self.scale * np.broadcast_to(factors, len(self.cuts)))
        return algorithm2.boost(
            self.codes, self.targets, self.cuts,
            self.rate * np.ldexp(drawn.astype(float), -loss.part_bits), self.counts, self.n_bins,
            self.rate, loss,
        )  # fmt: skip

    def reordered(self, order):
        codes = np.ascontiguousarray(self.codes[:, order])
        return replace(self, codes=codes, targets=self.targets[order])

    def first(self, steps):
        return replace(self, cuts=self.cuts[:steps], normals=self.normals[:steps])


def problem(n_bins, max_leaves, rows=3000, epochs=5, seed=0, noise=0.5):
    """Return a problem with whole counts; `noise` is the deviation in a step's answer."""
    rng = np.random.default_rng(seed)
    n_bins = np.array(n_bins)
    codes = np.array([rng.integers(0, b, rows) for b in n_bins], dtype=np.uint8)
    counts = np.zeros((n_bins.size, n_bins.max()))
    for k, bins in enumerate(n_bins):
        counts[k, :bins] = np.bincount(codes[k], minlength=bins) + rng.integers(1, 6, bins)
    cuts = random_cuts(rng, n_bins, epochs, max_leaves)
    normals = ExactSampler(Bits(seed)).normals((len(cuts), max_leaves))
    targets = rng.integers(0, 2, rows)
    return Problem(codes, targets, cuts, normals, noise / 0.3 * LARGEST, counts, n_bins)


def noise(normals, scales):
    """Return rounded noise, int64 (T, L), of normal numbers (T, L, ...), by fractions."""
    return np.array(
        [
            [reference.nearest(max(scale, 2.0**-10), tuple(map(int, number))) for number in step]
            for scale, step in zip(scales, normals, strict=True)
        ],
        dtype=np.int64,
    )


def number_that_rounds_to(whole, scale):
    """Return a normal number, uint64 (2 + WORDS,), whose product with a scale rounds to `whole`."""
    k, _, *words = reference.number_at(round(abs(whole) / Fraction(scale) * 2**512))
    return np.array([k, whole > 0, *words], np.uint64)


def label_part(margins, bound):
    """Return `residuals.label_part` of margins (n,), int64, by NumPy's float32."""
    one = np.float32
    t = margins.astype(one) * one(math.log2(math.e) * 2.0**-24)
    whole = (t + one(1.5 * 2**23)) - one(1.5 * 2**23)
    r = t - whole
    even, odd = r * r + losses._CENTRE, losses._SLOPE * r
    raised = np.ldexp(even + odd, whole.astype(int))
    quotient = one(LARGEST) * (even - odd) / ((even - odd) + raised)
    assert quotient.dtype == np.float32
    return np.minimum(np.trunc(quotient).astype(np.int64), bound)


def parts(loss, targets, scores, bound):
    """Return what each row adds to sums, int64 (n,)."""
    if loss.is_logistic:
        sign = np.where(targets > 0, 1, -1)
        return sign * label_part(sign * scores, bound)
    return (np.clip(targets - scores, -16 * bound, 16 * bound) + 8) // 16


def boost_whole(given: Problem, loss: Loss):
    """Do what `kernel.boost` does, from the functions alone: no state is kept for a row."""
    targets, start = loss.whole(given.targets).astype(np.int64), loss.whole_start
    shapes = np.zeros(given.counts.shape, np.int64)
    factors, sums = np.ones(len(given.cuts)), np.zeros(given.normals.shape[:2], np.int64)
    functions = [shapes[j, :bins] for j, bins in enumerate(given.n_bins)]
    for step in range(len(given.cuts)):
        k = step % len(functions)
        top = start + sum(int(f.max()) for f in functions)
        bottom = start + sum(int(f.min()) for f in functions)
        bound = loss.whole_bound
        if loss.adaptive:
            bound = min(int(label_part(np.array([-max(top, -bottom)]), LARGEST)[0]) + 1, LARGEST)
            factors[step] = bound / LARGEST
        scores = start + sum(f[codes] for f, codes in zip(functions, given.codes, strict=True))
        assert np.abs(scores).max(initial=0) <= LIMIT
        part = parts(loss, targets, scores, bound)
        leaves = min(given.normals.shape[1], int(given.n_bins[k]))
        borders = [0, *map(int, given.cuts[step, : leaves - 1]), int(given.n_bins[k])]
        drawn = noise(given.normals[step : step + 1], [factors[step] * given.scale])[0]
        own, old = functions[k], functions[k].copy()
        highest = LIMIT - (top - int(old.max()))
        lowest = -LIMIT - (bottom - int(old.min()))
        for leaf, (a, b) in enumerate(pairwise(borders)):
            inside = (given.codes[k] >= a) & (given.codes[k] < b)
            sums[step, leaf] = part[inside].sum() + drawn[leaf]
            count = given.counts[k, a:b].sum()
            value = 16 * given.rate * float(sums[step, leaf]) / count if count > 0 else 0.0
            least, most = lowest - int(old[a:b].min()), highest - int(old[a:b].max())
            own[a:b] += int(np.rint(min(max(value, float(least)), float(most))))
    return shapes, factors, sums


def pass_sums(loss, scores, targets, before, last, rises, now, cuts):
    """Return the sums of one pass, int64 (C + 1,), after scores rose by `rises` at cuts `last`.

    Targets are whole numbers as `Loss.whole` returns them.
    """
    scores, targets = scores.astype(np.int32), targets.astype(np.int32)
    states = np.where(targets > 0, scores, -scores) if loss.is_logistic else targets - scores
    buffers = np.empty(BLOCK_ROWS, np.int32), np.empty(BLOCK_ROWS, np.int64)
    sums, one = np.zeros(cuts.size + 1, np.int64), np.uint8(1)
    kernel.fused_pass(
        states.astype(np.int32), targets, kernel.cut_into_blocks(targets, loss.is_logistic),
        (before, last - one, rises), now, cuts - one, loss.is_logistic,
        np.int32(loss.whole_bound), buffers, sums,
    )  # fmt: skip
    return sums
