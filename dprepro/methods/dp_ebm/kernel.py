"""Boosting, step by step, with given cuts and noise: whole numbers from end to end.

Layout: bin codes are uint8 and lie feature by feature; a row's state is one int32, see `losses`. No
loop has a table look-up, so that LLVM vectorises it. A pass applies one step's update and sums the
next step's residuals, in short loops over blocks that stay in the first-level cache, 10 bytes a
row. Sums are exact: any order of the rows, and any partition of them, gives the same. What follows
from the sums of a step, noise and the function that is released, needs no rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dprepro.methods.dp_ebm.losses import (
    BLOCK_ROWS,
    COARSER,
    LARGEST,
    LIMIT,
    label_part,
    largest_label_part,
    target_part,
)
from dprepro.privacy.sampling.exact_noise import MANTISSA_BITS, SMALLEST_SCALE, rounded_normal
from dprepro.runtime.atomics import LINE, publish, wait_for_all
from dprepro.runtime.kernels import kernel
from dprepro.runtime.threads import ALONE, Threads

NEVER = np.uint8(255)
"""Padding for unused cuts; what lies above it gets an increment of 0."""

_NONE = np.int32(0)


@kernel("(int64[::1], uint64[:, ::1], float64, int64, int64[::1])")
def release_sums(sums, normals, scale, n_leaves, released):  # type: ignore[no-untyped-def]
    """Write noisy leaf sums to `released`: Algorithm 2, lines 16 and 17.

    Row leaf of `normals` times `scale`, rounded, is the noise; all in units of the sums.
    """
    mantissa, exponent = math.frexp(max(scale, SMALLEST_SCALE))
    whole = np.uint64(mantissa * 2.0**MANTISSA_BITS)
    for leaf in range(n_leaves):
        inner = sums[leaf + 1] if leaf + 1 < n_leaves else 0
        noise = rounded_normal(normals[leaf], whole, MANTISSA_BITS - exponent)
        released[leaf] = sums[leaf] - inner + noise


@kernel(
    "(int64[::1], uint8[::1], int64[::1], float64[::1], int64, float64, int64, int64, int32[::1])"
)
def add_to_shape(  # type: ignore[no-untyped-def]
    shape, cuts, released, counts, n_leaves, rate, lowest, highest, rises
):
    """Add leaf averages to the bins of a function (lines 18 to 22); write what scores rise by.

    Averages are rounded, and cut where a bin would leave [`lowest`, `highest`].
    """
    rises[:] = 0
    last: Any = 0
    for leaf in range(n_leaves):
        start = cuts[leaf - 1] if leaf > 0 else 0
        stop = cuts[leaf] if leaf + 1 < n_leaves else counts.size
        if start >= stop:
            continue
        bins, count = shape[start:stop], counts[start:stop].sum()
        value = rate * np.float64(released[leaf]) / count if count > 0 else 0.0
        least, most = np.float64(lowest - bins.min()), np.float64(highest - bins.max())
        whole = np.int64(np.rint(min(max(value, least), most)))
        bins += whole
        # Modulo 2^32: what they add up to for a row is within int32.
        rises[leaf] = np.int32(whole - last)
        last = whole


# error_model="numpy": the default checks each division for zero, which stops vectorisation.
_exact: Any = {"error_model": "numpy"}


@kernel("(int32[::1], boolean)")
def cut_into_blocks(targets, logistic):  # type: ignore[no-untyped-def]
    """Return where blocks start, and where the last ends, int64 (blocks + 1,).

    A block holds at most `BLOCK_ROWS` rows, and rows of one label.
    """
    starts = np.zeros(targets.size + 2, np.int64)
    found = 0
    for i in range(1, targets.size):
        changes = logistic and (targets[i] > 0) != (targets[i - 1] > 0)
        if changes or i - starts[found] == BLOCK_ROWS:
            found += 1
            starts[found] = i
    if targets.size == 0:
        return starts[:1]
    starts[found + 1] = targets.size
    return starts[: found + 2]


@kernel("(int32[::1], boolean, int64, int32[::1])")
def start_states(targets, logistic, start, states):  # type: ignore[no-untyped-def]
    """Write the state of each row at the score `start`."""
    for i in range(targets.size):
        if logistic:
            states[i] = start if targets[i] > 0 else -start
        else:
            states[i] = targets[i] - start


@kernel()
def _wide(below):  # type: ignore[no-untyped-def]
    """Return cuts as int32. Codes become as wide once, before they are compared with all cuts.

    Compared as bytes, they would have the result of each comparison made wide: four for one.
    """
    return below.astype(np.int32)


@kernel(**_exact)
def _label_block(states, last_codes, last, rises, codes, below, bound):  # type: ignore[no-untyped-def]
    """Do what `_add_update`, `_write_parts` and `_add_sums` do, for labels and two cuts.

    One loop instead of three saves a quarter of the time. Returns the sums of all parts, and of
    those above either cut. The cuts are int32: see `_wide`.
    """
    last_a, last_b, below_a, below_b = last[0], last[1], below[0], below[1]
    # numba adds int32 as int64: without the casts half as many fit into a register.
    low, middle = rises[0], np.int32(rises[0] + rises[1])
    high = np.int32(middle + rises[2])
    total, sum_a, sum_b = _NONE, _NONE, _NONE
    for i in range(states.shape[0]):
        before, now = np.int32(last_codes[i]), np.int32(codes[i])
        # Cuts ascend.
        rise = middle if before > last_a else low
        state = np.int32(states[i] + (high if before > last_b else rise))
        states[i] = state
        part = label_part(state, bound)
        total = np.int32(total + part)
        sum_a = np.int32(sum_a + (part if now > below_a else _NONE))
        sum_b = np.int32(sum_b + (part if now > below_b else _NONE))
    return total, sum_a, sum_b


@kernel(**_exact)
def _add_update(states, codes, below, increments):  # type: ignore[no-untyped-def]
    """Add increments[0] to every state and increments[j + 1] to those whose code is above below[j].

    Sums are modulo 2^32; what they come to is within int32.
    """
    for j in range(0, below.shape[0], 2):
        below_a, below_b = below[j], below[j + 1]
        add_a, add_b = increments[j + 1], increments[j + 2]
        base = increments[0] if j == 0 else _NONE
        for i in range(states.shape[0]):
            code, state = np.int32(codes[i]), np.int32(states[i] + base)
            state = np.int32(state + (add_a if code > below_a else _NONE))
            states[i] = np.int32(state + (add_b if code > below_b else _NONE))


@kernel("(int32[::1], boolean, int32, int32[::1])", **_exact)
def _write_parts(states, logistic, bound, parts):  # type: ignore[no-untyped-def]
    if logistic:
        for i in range(states.shape[0]):
            parts[i] = label_part(states[i], bound)
    else:
        for i in range(states.shape[0]):
            parts[i] = target_part(states[i], bound)


@kernel(**_exact)
def _add_sums(parts, codes, below, sign, sums):  # type: ignore[no-untyped-def]
    """Add to sums[0] all parts, to sums[j + 1] those of rows whose code is above below[j].

    Parts are int32, or int64 where as many as a block could overflow.
    """
    number = parts.dtype.type
    none = number(0)
    for j in range(0, below.shape[0], 2):
        below_a, below_b = below[j], below[j + 1]
        total, sum_a, sum_b = none, none, none
        for i in range(codes.shape[0]):
            code, part = np.int32(codes[i]), parts[i]
            total = number(total + part)
            sum_a = number(sum_a + (part if code > below_a else none))
            sum_b = number(sum_b + (part if code > below_b else none))
        if j == 0:
            sums[0] += sign * np.int64(total)
        sums[j + 1] += sign * np.int64(sum_a)
        sums[j + 2] += sign * np.int64(sum_b)


@kernel(
    "(int32[::1], int32[::1], int64[::1], Tuple((uint8[::1], uint8[::1], int32[::1])), "
    "uint8[::1], uint8[::1], boolean, int32, Tuple((int32[::1], int64[::1])), int64[::1])",
    **_exact,
)
def fused_pass(  # type: ignore[no-untyped-def]
    states, targets, blocks, update, codes, below, logistic, bound, buffers, sums
):
    """Apply the last step's update and sum the parts per cut of this step's feature.

    `update` has the codes of the last step's feature, its cuts less one, and what scores rise by.
    """
    last_codes, last_below, rises = update[0], _wide(update[1]), update[2]
    below, falls = _wide(below), -rises
    narrow, wide = buffers
    sums[:] = 0
    for k in range(blocks.size - 1):
        start, stop = blocks[k], blocks[k + 1]
        size, now = stop - start, codes[start:stop]
        block = states[start:stop]
        favours = logistic and targets[start] > 0
        rise, before = rises if favours else falls, last_codes[start:stop]
        sign = -1 if logistic and not favours else 1
        if logistic and below.size == 2:
            found = _label_block(block, before, last_below, rise, now, below, bound)
            sums[0] += sign * np.int64(found[0])
            sums[1] += sign * np.int64(found[1])
            sums[2] += sign * np.int64(found[2])
            continue
        _add_update(block, before, last_below, rise)
        if bound <= LARGEST:
            _write_parts(block, logistic, bound, narrow[:size])
            _add_sums(narrow[:size], now, below, sign, sums)
        else:
            _write_parts(block, logistic, bound, wide[:size])
            _add_sums(wide[:size], now, below, sign, sums)


@kernel(
    "(int32[::1], int32[::1], int64[::1], uint8[::1], uint8[::1], int32[::1], boolean)", **_exact
)
def move_states(states, targets, blocks, codes, below, rises, logistic):  # type: ignore[no-untyped-def]
    """Apply an update as `fused_pass` does, and sum nothing."""
    below, falls = _wide(below), -rises
    for k in range(blocks.size - 1):
        start, stop = blocks[k], blocks[k + 1]
        rise = rises if logistic and targets[start] > 0 else falls
        _add_update(states[start:stop], codes[start:stop], below, rise)


@kernel(
    "(uint8[:, ::1], int32[::1], int32[::1], int64[::1], uint8[:, ::1], uint64[:, :, ::1], "
    "float64, float64[:, ::1], int64[::1], float64, int64, boolean, int32, boolean, "
    "int64[:, ::1], int64, int64[::1], int64[:, :, ::1])"
)
def _boost_blocks(  # type: ignore[no-untyped-def]
    codes, targets, states, blocks, cuts, normals, scale, counts, n_bins, rate, start, logistic,
    bound, adaptive, before, thread, counters, shared,
):  # fmt: skip
    """Do what `boost` does, as one of several threads, each of which has blocks of its own.

    In each step a thread passes over the rows of its blocks, publishes their sums, and waits for
    those of all others. What follows from the sums, noise and functions, every thread computes for
    itself: waiting for one that does would take longer. `shared` holds the sums of two steps,
    int64 (2, threads, ..): a thread that is still reading those of one step has not published the
    next, so that no other can be two steps ahead.
    """
    n_features, n_sums = codes.shape[0], cuts.shape[1] + 1
    shapes = before.copy()
    noise_factors, leaf_sums = np.ones(cuts.shape[0]), np.zeros(normals.shape[:2], np.int64)
    sums, rises = np.zeros(n_sums, np.int64), np.zeros(n_sums, np.int32)
    buffers = np.empty(BLOCK_ROWS, np.int32), np.empty(BLOCK_ROWS, np.int64)
    highest, lowest = np.zeros(n_features, np.int64), np.zeros(n_features, np.int64)
    for k in range(n_features):
        highest[k], lowest[k] = shapes[k, : n_bins[k]].max(), shapes[k, : n_bins[k]].min()
    below = cuts - np.uint8(1)
    for step in range(cuts.shape[0]):
        k = step % n_features
        # Row 0 and no rise stand for "no update yet" in the first step.
        previous = (step - 1) % n_features if step > 0 else 0
        top, bottom = start + highest.sum(), start + lowest.sum()
        if adaptive:
            bound = np.int32(largest_label_part(max(top, -bottom)))
            noise_factors[step] = bound / LARGEST
        update = (codes[previous], below[max(step - 1, 0)], rises)
        fused_pass(
            states, targets, blocks, update, codes[k], below[step], logistic, bound, buffers, sums
        )
        found = shared[step % 2]
        for s in range(n_sums):
            found[thread, s] = sums[s]
        publish(counters, thread, step + 1)
        wait_for_all(counters, step + 1)
        sums[:] = 0
        for other in range(found.shape[0]):
            sums += found[other, :n_sums]
        n_leaves = min(normals.shape[1], n_bins[k])
        release_sums(sums, normals[step], noise_factors[step] * scale, n_leaves, leaf_sums[step])
        shape = shapes[k, : n_bins[k]]
        add_to_shape(
            shape, cuts[step], leaf_sums[step], counts[k, : n_bins[k]], n_leaves,
            rate * (1 << COARSER), lowest[k] - bottom - LIMIT, highest[k] - top + LIMIT, rises,
        )  # fmt: skip
        highest[k], lowest[k] = shape.max(), shape.min()
    if cuts.shape[0] > 0:
        k = (cuts.shape[0] - 1) % n_features
        move_states(states, targets, blocks, codes[k], below[-1], rises, logistic)
    return shapes, noise_factors, leaf_sums


@dataclass(frozen=True, eq=False)
class Boosting:
    """What boosting is given besides the rows: T steps over K features, with cuts and noise.

    Scores, targets and functions are whole numbers in units of 2^-g, sums in units of
    2^-(g - `COARSER`); see `Loss.score_bits` for g.

    Attributes
    ----------
    cuts : uint8 (T, C)
        For step t on feature t mod K, the ascending first bins of leaves 2, 3, ..., all above 0; C
        is even, at least 2, and unused places hold `NEVER`.
    normals : uint64 (T, L, 2 + WORDS)
        Noise of the L leaf sums: standard normal numbers, see `ExactSampler.normals`.
    scale : float
        Standard deviation of the noise in units of the sums, below `LARGEST_SCALE`; less than
        `SMALLEST_SCALE` counts as that.
    counts : float64 (K, B)
        Noisy bin counts, the denominators.
    n_bins : int64 (K,)
        Bins of each feature; a step uses min(L, n_bins) leaves.
    rate : float
        eta.
    start : int
        The score from which all rows start, within +-`LIMIT`.
    logistic : bool
        See `losses`.
    bound : int
        What a row adds to a leaf sum is clipped to it: `LARGEST` for labels.
    adaptive : bool
        For labels: bound what a row adds in each step by `largest_label_part` of the functions so
        far, and scale the noise by the same. The functions are released, so the factor is public,
        and noise over sensitivity stays what it was.
    before : int64 (K, B) or None
        The functions after the steps before these; None at the first.
    done, planned : int
        How many steps were before these, and how many there are in all: for who follows progress.
    """

    cuts: np.ndarray
    normals: np.ndarray
    scale: float
    counts: np.ndarray
    n_bins: np.ndarray
    rate: float
    start: int
    logistic: bool
    bound: int
    adaptive: bool
    before: np.ndarray | None = None
    done: int = 0
    planned: int | None = None

    @property
    def functions(self) -> np.ndarray:
        """The functions to go on from, int64 (K, B): 0 at the first step."""
        return np.zeros(self.counts.shape, np.int64) if self.before is None else self.before


class Outcome(NamedTuple):
    """What boosting comes to.

    Attributes
    ----------
    shapes : int64 (K, B)
        The function of every feature, one value a bin. No score that it gives exceeds `LIMIT`.
    noise_factors : float64 (T,)
        What the noise of each step was multiplied by: 1 unless `adaptive`.
    leaf_sums : int64 (T, L)
        The noisy leaf sums; 0 in places of leaves that a step does not have.
    """

    shapes: np.ndarray
    noise_factors: np.ndarray
    leaf_sums: np.ndarray


def boost(
    codes: np.ndarray,
    targets: np.ndarray,
    given: Boosting,
    threads: Threads = ALONE,
    states: np.ndarray | None = None,
) -> Outcome:
    """Boost feature by feature (Algorithm 2, lines 11 to 28).

    It can be done part by part, so that memory does not follow the number of steps: each part goes
    on from the functions and the states of the one before. The bits are those of all steps at once.

    Parameters
    ----------
    codes : uint8 (K, n)
        Bin of every row, feature by feature; values below ``n_bins[k]``.
    targets : int32 (n,)
        0 or 1 if `logistic`, else targets within +-`LIMIT`. Labels that ascend are the fastest.
    given
        All else.
    threads
        They share the rows. The result is the same for any number of them.
    states : int32 (n,) or None
        State of every row, to go on from; written at the first step, and moved on. None keeps none.
    """
    if states is None:
        states = np.empty(targets.size, np.int32)
    if given.before is None:
        start_states(targets, given.logistic, given.start, states)
    blocks = cut_into_blocks(targets, given.logistic)
    ends = np.linspace(0, blocks.size - 1, threads.number + 1).astype(int)
    counters = np.zeros(LINE * threads.number, np.int64)
    lines = -(-(given.cuts.shape[1] + 1) // LINE)
    shared = np.zeros((2, threads.number, LINE * lines), np.int64)

    def run(thread: int) -> Outcome:
        return Outcome(
            *_boost_blocks(
                codes, targets, states, blocks[ends[thread] : ends[thread + 1] + 1], given.cuts,
                given.normals, given.scale, given.counts, given.n_bins, given.rate, given.start,
                given.logistic, np.int32(given.bound), given.adaptive, given.functions, thread,
                counters, shared,
            )
        )  # fmt: skip

    return threads.together(run, give_up=lambda: counters.fill(given.cuts.shape[0]))[0]
