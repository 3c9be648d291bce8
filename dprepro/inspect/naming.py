"""What the card of a dataset calls target, classes and units of measure, for a model file."""

from __future__ import annotations

from dprepro.additive.model import AdditiveModel
from dprepro.data.card import Card


def take_names(model: AdditiveModel, card: Card) -> None:
    """Give a fitted model the names on the card; nothing is read from rows.

    A card that names the positive label alone gives the negative one as "not" and that name, as
    `Card.public_target` does. Units of measure go to the features of these names: a method may have
    made others of them.
    """
    model.target_name_ = card.target
    if card.task == "binary":
        negative, positive = map(str, card.public_target or ())
        model.labels_ = (negative, positive)
    features = {str(bins.feature.name) for bins in model.bins_}
    model.measured_in_ = {name: unit for name, unit in card.measured_in.items() if name in features}
