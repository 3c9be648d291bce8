"""A small model file as a release has it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from dprepro.additive.file import model_from_json, model_to_json
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.release.statement import AuditRecord, Loaded, Publisher

NAME = "a|b *_<i>`x`"
"""A category that is text of Markdown and of HTML."""

_KINDS = {
    "binary": DPEBMPlusClassifier,
    "multiclass": DPEBMPlusClassifier,
    "regression": DPEBMPlusRegressor,
}


@lru_cache
def model(task: str = "binary", seed: int | None = None) -> Loaded:
    """Return a model as `load_model` gives it."""
    labels = ("no", "perhaps", "yes") if task == "multiclass" else ("no", "yes")
    target = (0.0, 4.0) if task == "regression" else labels
    features = (NumericFeature("age", 0, 120, True), CategoricalFeature("ward", ("x", NAME)))
    kind = _KINDS[task]
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "age": rng.uniform(0, 120, 40),
            "ward": pd.Categorical.from_codes([0, 1] * 20, ["x", NAME]),
        }
    )
    y = rng.uniform(0, 4, 40) if task == "regression" else np.arange(40) % len(labels)
    fitted = kind(1.0, 1e-5, domain=Domain(features, target), random_state=seed).fit(X, y)
    fitted.target_name_, fitted.measured_in_ = "y", {"age": "years"}
    if task != "regression":
        fitted.labels_ = labels
    return model_from_json(model_to_json(fitted))


def publisher(**fields: object) -> Publisher:
    """Return what the publisher of the model says."""
    audit = AuditRecord(
        subject="dp-ebm-plus", epsilon=1, delta=1e-6, lower_bound=0.44, confidence=0.95,
        trials=8000, verdict="within",
    )  # fmt: skip
    values = {
        "date": "2026-11-22", "dataset": "patients", "title": "Patients", "method": "dp-ebm-plus",
        "method_version": 10, "reference": "ours", "dprepro": "0.2.0", "commit": "abc",
        "is_modified": False, "accountant_version": "0.6.0", "clips": False, "delta_by_rule": True,
        "compared": ["the number of rows in the file"], "earlier_releases": 1,
        "together": {"epsilon": 1.4, "delta": 2e-5, "unit": "row", "relation": "add/remove-one"},
        "limit": {"epsilon": 1.5, "delta": 3e-5}, "domain_note": "known from the form",
        "audits": [audit],
    }  # fmt: skip
    return Publisher.model_validate({**values, **fields})
