"""DP-EBM+ written anew from its page and notes, in plain NumPy: what is made of noisy answers.

For two labels or a regression, features of up to 250 bins, no pairs. All matrices are dense.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.linalg import block_diag, cholesky, inv
from scipy.special import erf, expit, gamma, gammainc, softmax

from dprepro.data.domain import Domain, Feature, NumericFeature
from dprepro.privacy.gdp import mu_of

Array: TypeAlias = np.ndarray
Ask: TypeAlias = Callable[[int], np.ndarray]  # for the next answer, of so many numbers
EPOCHS, HISTOGRAMS, SEEN, OWN, EFFECT, UNIT = 64, 0.1, 0.6, 0.5, 0.5, 2.0**-24
RISING, STEEPLY, HALFWAY = 1.5, 2.5, 0.005  # the weights of epochs
OF_SIZES, OF_LEVEL, OFFSET = 0.2, 0.1, 0.4  # parts of a regression's epoch, and its two levels
EFFECTS, UNEVEN = 3.0 ** np.arange(-3, 3), np.array([0.1, 0.3, 1, 3, 10, 30])  # sizes a priori
EDGES = 2 ** (-np.arange(1, 21) / 2)  # lower ends of the cells of |residual|, large ones first
MIDDLES, ENDS = EDGES * 2**0.25, np.array([0, *EDGES[-2::-1], 1])
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)


def grid(low: float, high: float) -> Array:
    """Return the edges of cells: 128 even ones, and 12 a decade where bounds span decades."""
    edges = [low + (high - low) * np.arange(1, 128) / 128]
    if low <= 0 <= high:
        edges += [np.zeros(1), *(end * 10 ** (-np.arange(61) / 12) for end in (low, high))]
    elif (decades := abs(math.log10(high / low))) > 1:
        edges.append(low * (high / low) ** np.linspace(0, 1, math.ceil(12 * decades) + 1))
    found = np.unique(np.concatenate(edges))
    found = found[(found > low) & (found < high)]
    return np.asarray(found[np.diff(found, prepend=-math.inf) > 1e-9 * (high - low)])


def alike(places: Array, reach: float, missing: int) -> Array:
    """Return Q of an Ornstein-Uhlenbeck process, missing values being apart."""
    return block_diag(inv(np.exp(-abs(places[:, None] - places) / reach)), np.eye(missing))


def code(shares: Array, q: Array, noise: float, part: float = 0) -> tuple[Array, Array]:
    """STRATEGY: return what takes an answer to sums in the bins, and squared lengths by bin.

    A row adds `part` to them, if each bin is asked by itself; without it the code is of cells.
    """
    asked = np.diag(np.maximum(shares, 2.0**-10)) + len(shares) * noise**2 * q
    root = cholesky(asked[::-1, ::-1], lower=True)[::-1, ::-1]  # U, with U U' = P + kappa Q
    mix = np.rint(256 * np.diag(root)[:, None] * inv(root)) / 256
    centre = np.rint(256 * mix @ shares)[:, None] / 256 if part else 0
    squares, fresh = (mix - centre).T ** 2, np.diag(root) ** -2
    lengths = squares @ fresh
    fresh *= part * shares @ (1 - shares) / (shares @ lengths) if part else 2**0.25 / lengths.max()
    weights = 2 ** (np.floor(2 * np.log2(fresh)) / 4)
    return root / np.diag(root) / weights, squares @ weights**2


def posterior(t, own, shared, h, kinds, sizes, before, level):  # type: ignore[no-untyped-def]
    """POSTERIOR: return mean and variance of f, for t = h (f + l) + N(0, own + shared shared').

    Of the `level` l nothing is known, if there is one; `before` are log chances of the sizes.
    """
    known = np.linalg.inv(np.diag(own) + shared @ shared.T)
    prior = np.concatenate([kind / sizes[:, None, None] ** 2 for kind in kinds])
    right, found = h * (known @ t), prior + h[:, None] * known * h
    covariances = np.linalg.inv(found)
    means = covariances @ right
    evidence = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(found)[1] + means @ right
    if level:
        tied = h * (known @ h)
        moved, towards = covariances @ tied, right.sum() - means @ tied
        left = tied.sum() - moved @ tied
        means = means - moved * (towards / left)[:, None]
        evidence += towards**2 / left - np.log(left)
    chances = softmax(evidence / 2 + np.tile(before, len(kinds)))
    squares = chances @ (np.diagonal(covariances, axis1=1, axis2=2) + means**2)
    return chances @ means, squares - (chances @ means) ** 2


def joined(counts: Array, seen: float, n: float) -> Array:
    """Return the bin of each cell of a number; cells that are left over join the last bin."""
    bins, rows, cells = np.zeros(len(counts) + 1, int), 0.0, 0
    for cell, count in enumerate(counts):
        rows, cells, bins[cell + 1] = rows + count, cells + 1, bins[cell]
        if rows >= max(min(seen * math.sqrt(cells), n / 24), n / 250):
            rows, cells, bins[cell + 1] = 0.0, 0, bins[cell] + 1
    return np.minimum(bins[:-1], max(bins[-1] - 1, 0))


class Function:
    """A feature's bins, their `cuts` and `counts`, its function `f` and `band`, float64 (B,)."""

    def __init__(self, feature: Feature, noise: float, n: float, ask: Ask) -> None:
        """HISTOGRAMS: `noise` is that in an answer of sensitivity 1."""
        missing, edges, self.intervals = int(feature.missing), np.empty(0), 0
        if isinstance(feature, NumericFeature):
            edges = grid(feature.lower, feature.upper)
            cells = len(edges) + 1
            places = np.arange(cells) / cells
            asked, kinds = alike(places, 0.3, 1), [alike(places, r, 0) for r in (0.01, 0.1, 1)]
        else:
            cells = len(feature.categories)
            asked, kinds = np.eye(cells + 1), [np.eye(cells + missing)]
        back, squares = code(np.full(cells + 1, 1 / (cells + 1)), asked, noise / n)
        scale, even, size = noise * math.sqrt(squares.max()), n / (cells + missing), len(kinds[0])
        off, shared, one = back @ ask(cells + 1) - even, back * scale, np.ones(size)
        given = off[:size], 1e-3 * scale**2 * one, shared[:size], one, kinds, even * UNEVEN
        counts, doubt = posterior(*given, -0.5 * (np.log(UNEVEN) / math.log(3)) ** 2, False)
        bins = np.arange(size)
        if isinstance(feature, NumericFeature):
            bins = joined(even + counts, SEEN * np.diag(shared).min(), n)
            edges, self.intervals = edges[np.diff(bins) > 0], int(bins[-1]) + 1
            if missing:
                bins = np.append(bins, self.intervals)
                trust = 1 / (1 + (shared[-1, -1] / even) ** 2)
                counts = np.append(counts, max(trust * off[-1], -even))
                doubt = np.append(doubt, trust * shared[-1, -1] ** 2)
        counts, doubt = np.bincount(bins, even + counts), np.sqrt(np.bincount(bins, doubt))
        counts = np.maximum(counts, np.minimum(doubt / 2, n / len(counts) / 4) + 1e-6 * n)
        self.counts = np.maximum(np.rint(1024 * n / counts.sum() * counts), 1) / 1024
        self.cuts, self.missing, self.shares = edges, missing, self.counts / self.counts.sum()
        self.f, self.band, self.total = np.zeros((3, len(counts)))  # total: of weighted answers

    def ask_about(self, noise: float, part: float) -> None:
        """Set the code and the priors of f; see `code`."""
        n, missing, self.kinds = self.intervals, self.missing, [np.eye(len(self.counts))]
        if n > 1:
            shares = self.counts[:n] / self.counts[:n].sum()
            places = (np.arange(n) / n + np.cumsum(shares) - shares / 2) / 2
            bends = np.diff(np.eye(n), 2, axis=0)
            curve = 0.05 * (n - 1) ** 3 * bends.T @ bends + 0.3 * np.eye(n)
            self.kinds = [alike(places, r, missing) for r in (1, 0.2)]
            self.kinds.append(block_diag(curve, np.eye(missing)))
        self.back, self.squares = code(self.shares, self.kinds[0], noise, part)


def shares_of_sizes(counts: Array, noise: float, n: float, of_n: float, typical: float) -> Array:
    """Return the shares of rows in the cells of |residual|, (20,), by noisy counts."""
    spreads = np.geomspace(0.001, 0.5, 40)[:, None]
    within = [gammainc(1 / 6, (EDGES / spreads * math.sqrt(gamma(1 / 2) / gamma(1 / 6))) ** 6)]
    for share, ratio in [(share, ratio) for share in (0, 0.1, 0.3, 0.5) for ratio in (2, 4, 10)]:
        z = EDGES / spreads * math.sqrt((1 + share * (ratio**2 - 1)) / 2)
        within.append((1 - share) * erf(z) + share * erf(z / ratio))
    below = np.concatenate(within)[:, :-1]
    expected = n * np.maximum(-np.diff(below, axis=1, prepend=1, append=0), 1e-9)
    before = np.tile(-0.5 * (np.log2(spreads[:, 0] / typical) / 1.5) ** 2, len(within))
    misfits, gaps = np.array([0.05, 0.2, 0.6])[:, None, None], counts - expected
    own = expected + (misfits * expected) ** 2
    square = own + noise**2
    known = (n / of_n) ** 2 + (expected**2 / square).sum(axis=-1)
    more = (expected * gaps / square).sum(axis=-1) / known  # rows there are, as part of n
    misses = (gaps**2 / square + np.log(square)).sum(axis=-1) - more**2 * known + np.log(known)
    mean = np.maximum(1 + more, 0.25)[..., None] * expected
    likely = np.maximum(mean + own / square * (counts - mean), 0)
    chances = softmax(before - misses / 2) / likely.sum(axis=-1)
    return np.asarray((chances[..., None] * likely).sum(axis=(0, 1)))


def clipped(p: Array, c: float) -> Array:
    """Return the label to expect, but for a constant, and its slope, by chances at the nodes."""
    low, high = np.maximum(p - c, 0), np.maximum(1 - p - c, 0)  # what clipping takes away
    gained = p + (high**2 - low**2) / 2 + p * high - (1 - p) * low
    slope = (1 - low - high) * p * (1 - p)
    return np.array([WEIGHTS @ gained, WEIGHTS @ slope]) / WEIGHTS.sum()


def averaging(signal: float) -> tuple[Array, float]:
    """Return the weights of the epochs, and the noise in an average, of 1 in each answer."""
    weights = np.arange(1, EPOCHS + 1) ** (RISING + STEEPLY / (1 + signal / HALFWAY))
    return weights / weights.sum(), float(np.linalg.norm(weights) / weights.sum())


def rounded(values: Array | list[float] | float) -> Array:
    """Return values in whole numbers of what scores of rows are whole numbers of."""
    return np.rint(np.asarray(values) / UNIT) * UNIT


def settled(heard: Array, tie: float) -> Array:
    """Return the intercept and the middle of a regression, by what is heard of each."""
    right = heard[:, 0] / np.maximum(heard[:, 2], 1e-300)
    both = np.diag(right * heard[:, 0] + [0, 16]) + np.array([[1, -1], [-1, 1]]) / tie**2
    return rounded(np.linalg.solve(both, right * heard[:, 1]))


def fit(domain: Domain, epsilon: float, delta: float, ask: Ask) -> tuple[list[Function], float]:
    """Return functions and the intercept, in log odds or in parts of the target's range."""
    labels, mu, k = isinstance(domain.target[0], str), mu_of(epsilon, delta), len(domain.features)
    # 1 TOTALS
    share = 0.01 if labels else 0.02
    of_n = math.sqrt((1.25 if labels else 2.25) / share) / mu
    rows, total, *squares = ask(2 if labels else 3)
    n = max(rows, of_n, 10.0)
    level, slope, unit = total / n / (1 + (4 * of_n / n) ** 2), 1.0, 1.0
    if labels:
        least = max(min(0.5, of_n / n), 1e-4)
        rate = min(max(total / n + 0.5, least), 1 - least)
        level, slope = math.log(rate / (1 - rate)), rate * (1 - rate)
    else:
        variance, noise = squares[0] / 4 / n - level**2, of_n / 4 / n
        low, high = np.clip([variance - 8 * noise, variance + 8 * noise], 1e-5, 0.25)
        v = np.linspace(low, high, 401)
        likely = -0.5 * (np.log2(np.sqrt(v) / 0.2) / 1.5) ** 2 - np.log(v)
        unit = math.sqrt(softmax(likely - 0.5 * ((v - variance) / noise) ** 2) @ v)
    # 2 HISTOGRAMS, and how to ask
    noise, one = math.sqrt(k / HISTOGRAMS) / mu, math.sqrt(EPOCHS / (1 - share - HISTOGRAMS)) / mu
    functions = [Function(feature, noise, n, ask) for feature in domain.features]
    moving = [f for f in functions if len(f.counts) > 1]
    ends = np.cumsum([1, *(len(f.counts) for f in moving)])  # of the parts of an answer
    noise = one * math.sqrt(k + OWN) / (n * slope * EFFECT)  # over a usual effect
    signal = (ends[-1] - 1) * (noise * averaging(math.inf)[1]) ** 2
    (weights, averaged), k = averaging(signal), len(moving)
    bound = float(rounded(1 - signal / (1 + signal) / 2))
    for f in moving:
        f.ask_about(noise * averaged * (bound if labels else 1), 1 / (k + OWN))
    of_one = 2 ** (math.floor(2 * math.log2(OWN / (k + OWN))) / 4)
    length = math.sqrt(of_one**2 + sum(f.shares @ f.squares for f in moving))
    of_level = 0 if labels else max(OF_LEVEL, OWN / (k + OWN + OF_SIZES))
    of_sizes = 0 if labels else OF_SIZES / (k + OWN + OF_SIZES) * (1 - of_level)
    share, pace, within, sampling = 1 - of_level - of_sizes, k**-0.5, 1.0, 1.0
    levels, heard = rounded([level, level]), np.zeros((2, 3))  # of the intercept, and the middle
    steps: list[Array] = []
    before, counts, square, done = 0.0, [], 0.0, 0.0
    likely = np.log(EFFECTS / (1 / (k + OWN) + EFFECTS**2))  # half-Cauchy, in even ratios
    # 3 RESIDUALS
    for epoch, weight in enumerate(weights):
        done += weight
        if not labels:  # where to clip, and the intercept
            counts.append(ask(20))
            parts = np.arange(1, epoch + 2) ** 2 / (np.arange(1, epoch + 2) ** 2).sum()
            noise = one * math.sqrt(parts @ parts / of_sizes)
            sizes = shares_of_sizes(parts @ counts, noise, n, of_n, unit)
            below = np.append(0, np.cumsum(sizes[::-1]))
            usual = float(rounded(np.interp(0.5, below, ENDS) / 0.6745))
            bias = n * sizes @ np.maximum(MIDDLES[:, None] - EDGES, 0)
            noise = one * averaged * length * math.sqrt(k * (k + OWN) / share)
            bound = EDGES[np.argmin(bias**2 / 4 + (4 * noise * EDGES) ** 2)]
            bound = min(max(bound, usual / 2), 0.5)
            within = max(np.interp(bound, ENDS, below), 0.1)
            sampling = min(max(sizes @ MIDDLES**2, bound**2 / 30), bound**2) / within
            noise = one * min(1, max(bound, 3 * usual)) / math.sqrt(of_level) / n
            heard[0] += weight, weight * (levels[0] + ask(1)[0] / n), (weight * noise) ** 2
            levels = settled(heard, OFFSET * usual)
        scale = one * bound * length / math.sqrt(share)
        square += (weight * scale) ** 2
        parts = np.split(ask(ends[-1]), ends[:-1])
        sums = [f.back @ part for f, part in zip(moving, parts[1:], strict=True)]
        if before > 0:  # the pace, by the slope along the last steps
            after = sum(s @ part for s, part in zip(steps, sums, strict=True))
            along = np.concatenate([s @ f.back for s, f in zip(steps, moving, strict=True)]) * scale
            after *= after**2 / (after**2 + along @ along)
            factor = 1 / max(1 - after / before, 1 / 1.5)
            pace = min(max(pace * max(factor, 0.3), 0.5 / k), 1)
        spreads, steps = [f.shares @ f.f**2 for f in moving], []
        for f, part, spread in zip(moving, sums, spreads, strict=True):
            expected, h, a = f.f, np.ones(len(f.f)), levels[0]
            if labels:
                scores = f.f + math.sqrt(sum(spreads) - spread) * NODES[:, None]
                for _ in range(13):  # to where labels are as frequent as the totals say
                    gap, rise = clipped(expit(a + scores), 1) @ f.shares
                    a -= min(max((gap - rate) / max(rise, 1e-12), -3), 3)
                expected, h = clipped(expit(a + scores), bound)
            expected, h = within * f.counts * expected, within * f.counts * h
            f.total += weight * (part + expected)
            gained, shared = f.total / done - expected, f.back * math.sqrt(square) / done
            noise = (shared**2).sum(axis=1)
            own, given = np.maximum(h * sampling, 1e-3 * noise), gained + h * f.f
            sizes = EFFECTS * (1 if labels else usual)
            mean, variance = posterior(given, own, shared, h, f.kinds, sizes, likely, True)
            f.band = np.sqrt(variance)
            steps.append((labels or epoch > 0) * pace * (mean - f.shares @ mean - f.f))
        before = sum(s @ part for s, part in zip(steps, sums, strict=True))
        for f, step in zip(moving, steps, strict=True):
            f.f = rounded(f.f + step)
        answer, noise = parts[0][0] / of_one, scale / of_one
        if not labels:
            answer, noise = levels[1] + answer / n / within, noise / n / within
            heard[1] += weight, weight * answer, (weight * noise) ** 2
            levels = settled(heard, OFFSET * usual)
            continue
        z, a = math.sqrt(sum(f.shares @ f.f**2 for f in moving)) * NODES, levels[0]
        answer += n * clipped(expit(a + z), bound)[0]
        heard[0] += weight, weight * answer, (weight * noise) ** 2
        for _ in range(20):  # to the level that is likeliest
            expected, rise = n * clipped(expit(a + z), bound)
            trust = rise / (heard[0, 2] / done**2 + rise)
            up = trust * (heard[0, 1] / done - expected) - a / 9
            a += min(max(up / (trust * rise + 1 / 9), -2), 2)
        levels = rounded([a, a])
    return functions, float(levels[0])
