"""What margins and Rademacher complexity prove of the accuracy of a vote of 1-Rules."""

from __future__ import annotations

import math

import numpy as np

from dprepro.methods.lazybb.queries import Literals

FAILURE = 0.05
"""Probability, over the draw of the rows and of random signs, that the bound does not hold."""

_DRAWS = 100


def complexity(literals: Literals) -> float:
    """Return the empirical Rademacher complexity of 1-Rules on these rows, a Monte Carlo estimate.

    E max_h 1/n sum_i sigma_i h(x_i) over uniform signs sigma, where h is a column (as -1, 1), a
    constant or the opposite of one: the mean over 100 draws, always the same.
    """
    signs = np.random.default_rng(0).choice([-1, 1], (literals.rows, _DRAWS))
    total = signs.sum(axis=0)
    columns = np.abs(2 * literals.sums(signs) - total)
    best = np.maximum(columns.max(axis=0), np.abs(total))
    return float(best.mean()) / literals.rows


def accuracy_bound(literals: Literals, margins: np.ndarray, rounds: int) -> float:
    """Return the best accuracy on unseen rows that the margins of a vote prove; at least 0.

    With probability 1 - delta over n independent training rows and m draws of signs, for every vote
    of 1-Rules and each of the `rounds` levels theta = 1 / rounds, 2 / rounds, ..., 1,

        accuracy >= 1 - mean_i phi(margin_i / theta) - (2 / theta) R - 3 sqrt(ln(4 rounds / delta)
        / (2 n)),    phi(z) = min(1, max(0, 1 - z)),
        R = complexity + sqrt(2 ln(2 / delta) / (m n))

    (Koltchinskii, Panchenko 2002, with the constants of Mohri, Rostamizadeh, Talwalkar,
    "Foundations of Machine Learning", section 5.4; a union bound makes it hold for all levels at
    once). The second term of R is what the mean over m draws may miss, by McDiarmid's inequality: a
    sign moves it by 2 / (m n).

    It is a proof where columns and `rounds` were fixed before the rows were seen. With a domain
    that was observed, or rounds tuned on the same rows, it is an estimate. Asadi et al. 2022 print
    estimates (Table 11) without the formula, the levels or delta.

    Parameters
    ----------
    margins
        The mean vote times the label of each training row, float64 (n,) in [-1, 1]. The result
        reads them exactly: it is not private.
    """
    slack = 3 * math.sqrt(math.log(4 * rounds / FAILURE) / (2 * literals.rows))
    missed = math.sqrt(2 * math.log(2 / FAILURE) / (_DRAWS * literals.rows))
    richness = complexity(literals) + missed
    levels = np.arange(1, rounds + 1) / rounds
    losses = np.array([np.clip(1 - margins / level, 0, 1).mean() for level in levels])
    return float(max(0.0, np.max(1 - losses - 2 * richness / levels - slack)))
