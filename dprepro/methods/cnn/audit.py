"""Private networks: dark images of all labels, and a bright one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.case import AuditSetting, Case, MethodPair, line
from dprepro.audit.pairs import scores_of
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.cnn.network import LEAST_SIDE

_ROWS, _TRIALS = 20, 400
_PARAMS = {"epochs": 1, "batch_size": _ROWS}
_NAMES = [f"pixel{k}" for k in range(LEAST_SIDE**2)]


def bright_image(setting: AuditSetting) -> Case:
    """Return a pair of images as small as networks read: all rows are dark, the canary is bright.

    One step on nearly all rows: the canary alone has a gradient for the filters of the first layer.
    """
    labels = line(setting.task).target
    domain = Domain(tuple(NumericFeature(name, 0.0, 1.0) for name in _NAMES), labels)
    dark = pd.DataFrame(np.zeros((_ROWS + 1, len(_NAMES))), columns=_NAMES)
    y = np.append(np.arange(_ROWS) % len(labels), 1)
    bright = dark.copy()
    bright.iloc[-1] = 1.0
    pair = MethodPair(setting, domain, (bright, y), (dark[:-1], y[:-1]), _PARAMS)
    return pair.case(
        f"{_ROWS} dark images of {LEAST_SIDE} x {LEAST_SIDE} pixels, and a bright one or none",
        _Contrast(setting.method, domain),
        trials=_TRIALS,
    )


@dataclass(frozen=True)
class _Contrast:
    """Observes how far the log odds of the canary's label are higher for a bright image."""

    method: str
    domain: Domain

    def __call__(self, model: Any) -> np.ndarray:
        images = pd.DataFrame(np.outer([0.0, 1.0], np.ones(len(_NAMES))), columns=_NAMES)
        scores = scores_of(self.method, self.domain, images, model).reshape(2, -1)
        dark, bright = np.log(scores[:, 1]) - np.log(scores[:, 0])
        return np.array([bright - dark])


CASES = {"dp-cnn": bright_image}
