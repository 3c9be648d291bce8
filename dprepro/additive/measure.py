"""What a model predicts, and what its functions are measured in, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dprepro.estimators.contract import classes_of

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel


def measure_of(model: AdditiveModel) -> str:
    """Return what the sum of the functions is measured in, e.g. ``log odds of >50K``."""
    if classes_of(model) is not None:
        return f"log odds of {outcome_of(model)}"
    unit = model.measured_in_.get(model.target_name_ or "")
    return outcome_of(model) + (f" ({unit})" if unit else "")


def outcome_of(model: AdditiveModel) -> str:
    """Return what is predicted: the second class, or the target."""
    classes = classes_of(model)
    if classes is None:
        return model.target_name_ or "the target"
    return model.labels_[1] if model.labels_ is not None else f"class {classes[1]}"
