"""What a model predicts, what its noise bands mean, and its prediction intervals, in words."""

from __future__ import annotations

import math

from dprepro.additive.model import AdditiveModel
from dprepro.estimators.contract import classes_of

_BAND = (
    "A band is two standard deviations of the noise alone, by the formula of the method. It is not "
    "the range in which the effect in the data lies."
)
_SHRUNK = (
    "Where noise is large compared with the rows, a function is drawn towards 0, and no band "
    "contains that: a function near 0 does not show that its feature has no effect."
)


def bands_in_words(model: AdditiveModel) -> list[str]:
    """Return sentences about what the bands of a model hold; none if its noise is not known."""
    return [] if model.shape_noise_ is None else [_BAND, _SHRUNK]


def link_in_words(model: AdditiveModel) -> list[str]:
    """Return a sentence about how the sum of a model of counts becomes a count; none of others."""
    if not model.has_log_link:
        return []
    return [
        f"The prediction is the exponential of the sum, so each function multiplies it: where a "
        f"function adds 0.3 to the {measure_of(model)}, the prediction is {math.exp(0.3):.2f} "
        "times as large."
    ]


def measure_of(model: AdditiveModel) -> str:
    """Return what the sum of the functions is measured in, e.g. ``log odds of >50K``."""
    if model.several_classes:
        return "log odds of a class over the geometric mean of all"
    if classes_of(model) is not None:
        return f"log odds of {outcome_of(model)}"
    if model.has_log_link:
        return f"logarithm of {outcome_of(model)}"
    unit = model.measured_in_.get(model.target_name_ or "")
    return outcome_of(model) + (f" ({unit})" if unit else "")


def unit_of(model: AdditiveModel) -> str:
    """Return the unit of what a function adds: log odds, or that of the target, or its name."""
    if classes_of(model) is not None:
        return "log odds"
    if model.has_log_link:
        return f"logarithm of {outcome_of(model)}"
    return model.measured_in_.get(model.target_name_ or "") or outcome_of(model)


def outcome_of(model: AdditiveModel) -> str:
    """Return what is predicted: the second of two classes, or the target."""
    classes = classes_of(model)
    if classes is None or model.several_classes:
        return model.target_name_ or "the target"
    return model.labels_[1] if model.labels_ is not None else f"class {classes[1]}"


def intervals_in_words(model: AdditiveModel, coverage: float = 0.9) -> list[str]:
    """Return a sentence about the prediction intervals of a model; none if it has none."""
    sizes = model.residual_sizes_
    if sizes is None or not sizes.percents[0] <= 100 * coverage <= sizes.percents[-1]:
        return []
    return [
        f"About {100 * coverage:g} % of new rows have a target within "
        f"{sizes.half_width(coverage):.3g} of the prediction of the model as it was released. That "
        "is an average over all rows: for some kinds of rows it is fewer, for others more."
    ]
