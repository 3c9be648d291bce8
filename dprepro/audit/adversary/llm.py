"""DP-SGD on one linear map a class (Harder et al. 2020), with every row in every batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dprepro.audit.adversary.evidence import Answer, Choice
from dprepro.audit.adversary.transcript import Event

GRADIENTS, BATCHES = "gradients", "batches"


def answers(
    events: Sequence[Event],
    X: np.ndarray,
    labels: np.ndarray,
    clip: float,
    multiplier: float,
) -> list[Answer]:
    """Return the answer of every step.

    Of one map a class the softmax over maps is 1, so a row's gradient is (p - [y = k]) (x, 1).

    Parameters
    ----------
    X, labels
        Rows float64 (n, D) and codes (n,); the canary is the last.
    clip, multiplier
        The norm to which a row's gradient is clipped, and the noise in units of it.
    """
    inputs = np.column_stack([X, np.ones(len(X))])
    found = []
    for event in events:
        if event.kind != "GradientQuery" or event.value is None:
            continue
        theta = np.asarray(event.facts["theta"], dtype=np.float64)[0]
        scores = inputs @ theta.T
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        errors = chances - (labels[:, None] == np.arange(len(theta)))
        gradients = errors[:, :, None] * inputs[:, None, :]
        norms = np.sqrt((gradients**2).sum(axis=(1, 2), keepdims=True))
        gradients *= np.minimum(1.0, clip / np.maximum(norms, 1e-300))
        deviation = multiplier * clip
        noise = (event.value[0] - gradients[:-1].sum(axis=0)) / deviation
        found.append(Answer(GRADIENTS, noise.ravel(), gradients[-1].ravel() / deviation))
    return found


def sampled(
    events: Sequence[Event],
    X: np.ndarray,
    labels: np.ndarray,
    clip: float,
    multiplier: float,
    rate: float,
) -> list[Choice]:
    """Return the evidence of every step on Poisson samples of the rows.

    Rows other than the canary have inputs 0, so their gradients are 0 but for the offsets. In all
    other places the canary is the only row that can add anything, which it does with probability
    `rate`. Parameters are those of `answers`.
    """
    alone = np.zeros_like(X[:1])
    found = []
    for answer in answers(events, np.concatenate([alone, X[-1:]]), labels[-2:], clip, multiplier):
        width = X.shape[1] + 1
        inputs = np.arange(answer.noise.size) % width < width - 1
        ratio = Answer(BATCHES, answer.noise[inputs], answer.part[inputs]).log_ratio
        found.append(Choice(BATCHES, float(np.logaddexp(np.log1p(-rate), np.log(rate) + ratio))))
    return found
