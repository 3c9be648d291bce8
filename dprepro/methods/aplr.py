"""APLR, automatic piecewise linear regression: an optional extra."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Setting, not_private


def _build(setting: Setting, **params: Any) -> Estimator:
    # Imported here, so that the method can be listed, and skipped with a reason, without it.
    from aplr import APLRClassifier, APLRRegressor

    from dprepro.estimators.targets import scaled_targets

    class Classifier(APLRClassifier):
        """APLR with the labels that it was given; the library turns them into texts."""

        def fit(self, X: Any, y: Any) -> Classifier:
            super().fit(X, y)
            self.classes_ = np.unique(y)
            return self

        def predict(self, X: Any) -> np.ndarray:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    estimator = scaled_targets(APLRRegressor) if setting.task == "regression" else Classifier
    seed = 0 if setting.seed is None else setting.seed % 2**31
    return estimator(random_state=seed, n_jobs=1, **params)


METHODS = [
    not_private(
        name="aplr",
        title="APLR",
        tasks=frozenset({"binary", "regression"}),
        cite=("vonottenbreit2024",),
        reference="von Ottenbreit, De Bin 2024: package aplr, as in interpret-core",
        build=_build,
        encoding="one-hot",
        requires="aplr",
        defaults={"m": 3000, "v": 0.5, "num_first_steps_with_linear_effects_only": 0},
    )
]
