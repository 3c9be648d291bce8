"""Locally linear maps: a canary whose gradient is clipped throughout, in all batches or in some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, line, table
from dprepro.audit.distinguishers import Ceiling
from dprepro.audit.likelihood_ratio import Answer, Choice, Evidence
from dprepro.audit.pairs import canary_cases
from dprepro.audit.transcript import JOINT, WHOLE, Event, transcript_case
from dprepro.methods.locally_linear.curator import GradientQuery

GRADIENTS, BATCHES = "gradients", "batches"

_CROWD = 20
# With every row in every batch all answers are plain Gaussian, and mu is what is spent. Adam
# starts anew in each epoch, of one step, and gradients are far below its floor of 1e-8. So every
# step is linear in the noisy sum, and the filters end as the sum of all: no linear rule loses
# anything. Steps are so long that where filters started, which nobody knows, is small beside the
# noise. A gradient that is clipped to so little keeps its length until the canary is learnt by
# heart.
_EPOCHS = 8
_PARAMS = {
    "n_maps": 1,
    "n_projected": None,
    "batch_size": _CROWD + 1,
    "epochs": _EPOCHS,
    "decay": 1.0,
    "decay_every": 1,
    "clip_norm": 1e-10,
}
_RATE = 100.0
"""Times epsilon, as the noise falls with it."""
_TRIALS = 30_000
# So many rows that one more or less hardly changes the rate, which is public. Four steps.
_MANY = 200
_SAMPLED_PARAMS = {
    "n_maps": 2,
    "n_projected": 10,
    "batch_size": 60,
    "epochs": 1,
    "learning_rate": 1.0,
    "clip_norm": 1e-4,
}
_SAMPLED_TRIALS = 2000


def clipped_throughout(setting: AuditSetting) -> Case:
    """Return a crowd at x = 0, which moves no filter, and a canary at x = 1 or none."""
    labels = 2 if setting.task == "binary" else 3
    domain = line(setting.task)
    x, y = np.zeros(_CROWD), np.arange(_CROWD) % labels
    params = {**_PARAMS, "learning_rate": _RATE * setting.epsilon}
    pair = MethodPair(setting, domain, table(x, y, (1.0, 1)), table(x, y, None), params)
    return pair.case(
        f"{_CROWD} rows at one end of a feature, one at the other end or none",
        _parameters,
        trials=_TRIALS,
        ceiling=_of_all_sums,
    )


def _of_all_sums(model: Any) -> Ceiling:
    """The canary's gradient has full norm in every sum, and the model says no more than they."""
    return Ceiling(model.ledger_.spent_epsilon(), "what all sums spend")


def sampled(setting: AuditSetting) -> Case:
    """Return the same with samples of three tenths, two maps a class, and projections.

    What shows little: most steps leave the canary out, and projections are unknown.
    """
    labels = 2 if setting.task == "binary" else 3
    domain = line(setting.task)
    x, y = np.zeros(_MANY), np.arange(_MANY) % labels
    pair = MethodPair(
        setting, domain, table(x, y, (1.0, 1)), table(x, y, None), _SAMPLED_PARAMS
    )  # fmt: skip
    return pair.case(
        f"{_MANY} rows at one end of a feature, one at the other end or none; sampled",
        _parameters,
        trials=_SAMPLED_TRIALS,
        name="sampled",
    )


def _parameters(model: Any) -> np.ndarray:
    """Return all filters and offsets, the models' only parameters."""
    return np.concatenate([model.filters_.ravel(), model.offsets_.ravel()]).astype(np.float64)


# --- all sums -------------------------------------------------------------------------------------

_TOLD_ROWS, _CLIP = 21, 1e-2
_MAPS = {
    "n_maps": 1, "n_projected": None, "batch_size": _TOLD_ROWS, "epochs": 8, "decay_every": 8,
    "learning_rate": 0.3, "clip_norm": _CLIP,
}  # fmt: skip
_TOLD_CROWD, _BATCH = 100, 30


def full_batches(setting: AuditSetting) -> Case:
    """Return eight steps on all rows: a crowd, and a row elsewhere whose gradient is clipped."""
    return _told(setting, _TOLD_ROWS - 1, _MAPS, _weigh, "; all sums seen", WHOLE, size=8)


def sampled_batches(setting: AuditSetting) -> Case:
    """Return steps on Poisson samples: a crowd that moves no filter, and a row that does."""
    params = {**_MAPS, "batch_size": _BATCH, "epochs": 2, "decay_every": 2}
    words = "; sampled, all sums seen"
    return _told(setting, _TOLD_CROWD, params, _weigh_samples, words, BATCHES, size=JOINT)


def _told(
    setting: AuditSetting,
    crowd: int,
    params: dict[str, Any],
    weigh: Callable[..., Sequence[Evidence]],
    words: str,
    name: str,
    size: int,
) -> Case:
    labels = 2 if setting.task == "binary" else 3
    domain = line(setting.task)
    x, y = np.append(np.zeros(crowd), 1.0), np.arange(crowd + 1) % labels
    frame = pd.DataFrame({"x": x})
    pair = MethodPair(setting, domain, (frame, y), (frame.iloc[:-1], y[:-1]), params)
    inputs = np.asarray(pair.encoded[0][0], dtype=np.float64)
    told = [(pair, partial(weigh, X=inputs, labels=y))]
    words = f"{crowd} rows at one end of a feature, and one row more at the other or none{words}"
    return transcript_case(setting, told, words, size, name=name)


def _weigh(
    model: Any, events: list[Event], *, X: np.ndarray, labels: np.ndarray
) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return answers(events, X, labels, _CLIP, entry.noise_multiplier)


def _weigh_samples(
    model: Any, events: list[Event], *, X: np.ndarray, labels: np.ndarray
) -> Sequence[Evidence]:
    (entry,) = model.ledger_.entries
    return of_samples(events, X, labels, _CLIP, entry.noise_multiplier, entry.sampling)


# --- adversary: DP-SGD on one linear map a class (Harder et al. 2020), all rows in every batch ----


def answers(
    events: Sequence[Event], X: np.ndarray, labels: np.ndarray, clip: float, multiplier: float
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
        match event:
            case GradientQuery(theta=thetas), answer:
                theta = thetas[0].astype(np.float64)
            case _:
                continue
        scores = inputs @ theta.T
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        errors = chances - (labels[:, None] == np.arange(len(theta)))
        gradients = errors[:, :, None] * inputs[:, None, :]
        norms = np.sqrt((gradients**2).sum(axis=(1, 2), keepdims=True))
        gradients *= np.minimum(1.0, clip / np.maximum(norms, 1e-300))
        deviation = multiplier * clip
        noise = (answer.value[0] - gradients[:-1].sum(axis=0)) / deviation
        found.append(Answer(GRADIENTS, noise.ravel(), gradients[-1].ravel() / deviation))
    return found


def of_samples(
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


CASES = {
    **canary_cases("dp-llm"),
    "dp-llm": clipped_throughout,
    "dp-llm/sampled": sampled,
    f"dp-llm/{WHOLE}": full_batches,
    f"dp-llm/{BATCHES}": sampled_batches,
}
