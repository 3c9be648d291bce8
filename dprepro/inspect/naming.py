"""What the card of a dataset says that belongs into a model file: names, and filled values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dprepro.additive.bins import FeatureBins
from dprepro.additive.model import AdditiveModel
from dprepro.data.card import Card, card_names, load_card
from dprepro.data.domain import CategoricalFeature


def take_card(model: AdditiveModel, card: Card) -> None:
    """Give a fitted model what a card says: names, and where missing values go."""
    take_names(model, card)
    take_fills(model, card.fill)


def take_names(model: AdditiveModel, card: Card) -> None:
    """Give a fitted model the names on the card; nothing is read from rows.

    A card that names the positive label alone gives the negative one as "not" and that name, as
    `Card.public_target` does. Units of measure go to the features of these names: a method may have
    made others of them.
    """
    model.target_name_ = card.target_title
    if card.task == "binary":
        negative, positive = map(str, card.public_target or ())
        model.labels_ = (negative, positive)
    features = {str(bins.feature.name) for bins in model.bins_}
    model.measured_in_ = {name: unit for name, unit in card.measured_in.items() if name in features}


def take_missing_names(model: AdditiveModel, dataset: str) -> None:
    """Give a loaded model without names those of the built-in card of its dataset, if there is one.

    Files of early versions hold no names.
    """
    if model.target_name_ is None and dataset in card_names():
        take_names(model, load_card(dataset))


def take_fills(model: AdditiveModel, fills: Mapping[str, str]) -> None:
    """Let missing values of new rows go where the card's ``fill`` put those of the fit.

    The rows of a fit are filled before the model sees them, so that it has no bin for missing
    values. A feature with a bin for nothing else keeps it.
    """
    model.bins_ = [
        _filled(bins, fills[name]) if (name := str(bins.feature.name)) in fills else bins
        for bins in model.bins_
    ]


def _filled(bins: FeatureBins, fill: str) -> FeatureBins:
    feature = bins.feature
    if isinstance(feature, CategoricalFeature):
        if fill not in feature.categories:
            return bins
        return replace(bins, missing_bin=int(bins.groups[feature.categories.index(fill)]))
    if bins.missing_bin > bins.cuts.size:
        return bins
    return replace(bins, missing_bin=int(np.searchsorted(bins.cuts, float(fill), side="right")))
