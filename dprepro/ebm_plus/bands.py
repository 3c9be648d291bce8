"""How far a function that was learned may lie from the one in the rows: post-processing."""

from __future__ import annotations

import numpy as np

from dprepro.ebm_plus.booster import Function

_MOST = 0.8
"""Largest relative error of a bin's count that is believed."""


def deviations(function: Function) -> np.ndarray:
    r"""Return the posterior standard deviation of a regression's function, float64 (B,).

    `Function.deviations` takes a bin's released count n' for its number n of rows. What a bin's
    answers add up to is t = n (mu - a) + n' a, mu being the mean target of its rows and a what the
    function was, on average, when it was asked. So t / n' = a + (n / n') (mu - a): where n' is
    larger than n, the value stays too close to a. With e = (n' - n) / n',

        mu - t / n' = e / (1 - e) (t / n' - a),

    whose mean square is that of e / (1 - e) times (f - a)^2 + s^2, for a posterior mean f and
    variance s^2 of t / n'. For e one standard deviation of the noise in n', over n', is taken, at
    most `_MOST`. Where rows are few for the noise there are no such averages: then nothing is
    added.
    """
    if not function.has_answers:
        return function.deviations
    asked_at = function.averages()[0][2]
    error = np.minimum(function.uncertainty / function.counts, _MOST)
    square = (function.values - asked_at) ** 2 + function.deviations**2
    return np.sqrt(function.deviations**2 + (error / (1 - error)) ** 2 * square)
