"""How far a function that was learned may lie from the one in the rows: post-processing."""

from __future__ import annotations

import numpy as np

from dprepro.methods.dp_ebm_plus.function import Function

_DOUBT, _MOST = 0.75, 0.8
"""So many standard deviations of its noise may a bin's count be too large: with a whole one, bands
were up to a half too wide in root mean square. And the largest relative error that is believed."""


def deviations(function: Function, mean_square: float) -> np.ndarray:
    r"""Return the posterior standard deviation of a regression's function, float64 (B,).

    `Function.deviations` takes a bin's released count n' for its number n of rows. What a bin's
    answers add up to is t = n (mu - a) + n' a, mu being the mean target of its rows and a what the
    function was, on average, when it was asked. So t / n' = a + (n / n') (mu - a): where n' is
    larger than n, the value stays too close to a. With e = (n' - n) / n',

        mu - t / n' = e / (1 - e) (t / n' - a),

    whose mean square is that of e / (1 - e) times (f - a)^2 + s^2, for a posterior mean f and
    variance s^2 of t / n'. For e `_DOUBT` standard deviations of the noise in n', over n', are
    taken, at most `_MOST`. A value follows from the bin's neighbours, too, whose errors are
    independent, so the mean square counts in part: s over the deviation of the bin's own t / n'.

    Parameters
    ----------
    function
        After the last epoch.
    mean_square
        Of residuals.
    """
    (_, asked_at), noise = function.averages()
    own = (function.counts * mean_square + noise) / function.counts**2
    part = np.minimum(function.deviations / np.sqrt(own), 1.0)
    error = np.minimum(_DOUBT * function.uncertainty / function.counts, _MOST)
    square = (function.values - asked_at) ** 2 + function.deviations**2
    return np.sqrt(function.deviations**2 + part * (error / (1 - error)) ** 2 * square)
