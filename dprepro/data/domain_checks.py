"""Values of rows that their card rules out: missing ones, and those outside of bounds."""

from __future__ import annotations

import numpy as np

from dprepro.data.card import Card
from dprepro.data.dataset import Dataset
from dprepro.data.domain import NumericFeature, numbers_of
from dprepro.errors import DpreproError


def undeclared(dataset: Dataset) -> list[str]:
    """Return the features with missing values that the card does not allow; none without a domain.

    This reads the rows: say it to their holder only.
    """
    features = dataset.domain.features if dataset.domain else ()
    return [f.name for f in features if not f.missing and dataset.X[f.name].isna().any()]


def in_words(names: list[str]) -> str:
    """Say which features lack values that the card promises, and what to do."""
    return (
        f"values are missing in {', '.join(names)}, and the card does not allow it: add "
        f"`missing: true` to the feature, as in {names[0]}: {{..., missing: true}}, or name a "
        "value under `fill`"
    )


def outside_bounds(dataset: Dataset, card: Card) -> list[str]:
    """Return a message for each feature, and for the target, with values outside public bounds.

    This reads the rows: say it to their holder only. No value is quoted and no row is counted.
    """
    found = []
    for feature in dataset.domain.features if dataset.domain else ():
        if isinstance(feature, NumericFeature):
            values, bounds = numbers_of(dataset.X[feature.name]), (feature.lower, feature.upper)
            if _any_outside(values, bounds):
                found.append(_outside(f"feature {feature.name!r}", bounds))
    if card.task == "regression" and card.target_bounds is not None:
        lower, upper = map(float, card.public_target or ())
        if _any_outside(dataset.y, (lower, upper)):
            found.append(_outside(f"target {card.target!r}", card.target_bounds))
    return found


def _any_outside(values: np.ndarray, bounds: tuple[float, float]) -> bool:
    lower, upper = bounds
    with np.errstate(invalid="ignore"):
        return bool(np.any((values < lower) | (values > upper)))


def _outside(what: str, bounds: tuple[float, float]) -> str:
    lower, upper = bounds
    return (
        f"{what} has a value outside its public bounds [{lower:g}, {upper:g}]: correct the "
        "rows, or the card if its bounds were wrong all along, or let the fit clip such "
        "values to the bounds with --clip. Choose bounds by what can be known without "
        "these rows"
    )


def refuse_undeclared(dataset: Dataset) -> None:
    """Refuse rows with missing values that the card does not allow.

    Raises
    ------
    DpreproError
        The message names the features, and quotes and counts no rows.
    """
    names = undeclared(dataset)
    if names:
        raise DpreproError(f"{dataset.name}: {in_words(names)}")
