"""What a measurement takes of a release: a part of its epsilon, and some of its rows.

Which rows or units are held out is decided by a key or by coins of the operating system, which are
kept nowhere. Fit and measurement are composed one after the other; see `dprepro.release.curator`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dprepro.additive.model import AdditiveModel
from dprepro.data.card import Card
from dprepro.data.dataset import Dataset, bounding_key, kept_rows
from dprepro.estimators.contract import ledger_of
from dprepro.experiment.splits import held_out_rows
from dprepro.methods.entry import Method
from dprepro.privacy.budget import ROW, Division, PrivacyBudget
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.release.curator import Grouping, HeldOut, measure
from dprepro.runtime.errors import DpreproError

HELD_OUT = 0.2
"""The share of rows or units that a measurement holds out."""


@dataclass(frozen=True)
class Measuring:
    """How a release is measured.

    Attributes
    ----------
    of_all, of_fit, own
        The (epsilon, delta) of a unit: of the release, of its fit, and of the measurement by
        itself.
    groupings
        The groups that the card names; of several classes before them the rows of each class.
    target
        For regression the range of the target.
    """

    of_all: PrivacyBudget
    of_fit: PrivacyBudget
    own: PrivacyBudget
    groupings: tuple[Grouping, ...]
    target: tuple[float, float] | None

    @classmethod
    def of(cls, card: Card, method: Method, of_all: PrivacyBudget, share: float) -> Measuring:
        """Return how the release of a card is measured with this share of its epsilon.

        By itself the measurement keeps that share of epsilon. If all noise of the method is
        Gaussian, the fit has what is left of mu: mu^2 adds up, so it loses much less than that
        share. Else epsilon and delta are divided.

        Raises
        ------
        DpreproError
            If the share is out of range, if delta is 0, or if nothing is left for the fit.
        """
        epsilon, delta = of_all
        if not 0 < share < 1:
            raise DpreproError(f"--measure must lie between 0 and 1, such as 0.3, given {share:g}")
        if delta == 0:
            raise DpreproError(
                "--measure needs a delta above 0, as its noise is Gaussian: give --delta, such as "
                "1e-6, or leave --measure out"
            )
        try:
            if method.divides is Division.GAUSSIAN:
                own = PrivacyBudget(share * epsilon, delta)
                left = math.sqrt(mu_of(epsilon, delta) ** 2 - mu_of(*own) ** 2)
                of_fit = PrivacyBudget(epsilon_of(left, delta), delta)
            else:
                own = PrivacyBudget(share * epsilon, share * delta)
                of_fit = PrivacyBudget((1 - share) * epsilon, (1 - share) * delta)
            mu_of(*own)
        except ValueError as error:
            raise DpreproError(f"--measure {share:g} of epsilon {epsilon:g}: {error}") from error
        target = card.public_target if card.task == "regression" else None
        bounds = None if target is None else (float(target[0]), float(target[1]))
        return cls(of_all, of_fit, own, _groupings(card), bounds)

    def complete(self, model: AdditiveModel, held_out: HeldOut) -> None:
        """Give a fitted model its measurement, and its ledger what both spend.

        Raises
        ------
        DpreproError
            If the model has no ledger.
        """
        ledger = ledger_of(model)
        if ledger is None:
            raise DpreproError("the fit left no ledger, so nothing was measured")
        model.measurement_ = measure(
            model, held_out, ledger, self.own, self.groupings, HELD_OUT, self.target
        )
        ledger.epsilon, ledger.delta = self.of_all.plain()

    def in_words(self) -> str:
        """Return what is measured, and what that takes."""
        named = [grouping.feature for grouping in self.groupings if grouping.feature]
        groups = f", also by {', '.join(named)}" if named else ""
        return (
            f"how well the model predicts{groups}, on a fifth of the rows, which do not train it: "
            f"by itself epsilon {self.own.epsilon:.4g}"
        )


def divided(dataset: Dataset, unit: str, rows_per_unit: int) -> tuple[Dataset, HeldOut]:
    """Return the rows that train, and those that are held out: of each unit as many as may count.

    All rows of a unit are on one side. Whether it is held out follows from its name and a secret
    key; without units each row is held out by a coin of its own. So a row or unit that comes or
    goes changes its own side and no other.
    """
    is_held = held_out_rows(dataset.units if unit != ROW else None, len(dataset.y), HELD_OUT)
    training, held = (_part(dataset, np.flatnonzero(side)) for side in (~is_held, is_held))
    if unit != ROW and held.units is not None:
        kept = kept_rows(held.X, held.y, held.units, rows_per_unit, bounding_key())
        held = _part(held, kept)
    return training, HeldOut(held.X, held.y)


def none_of(dataset: Dataset) -> HeldOut:
    """Return held-out rows of which there are none, for a rehearsal."""
    return HeldOut(dataset.X.iloc[:0], dataset.y[:0])


def _part(dataset: Dataset, rows: np.ndarray) -> Dataset:
    units = None if dataset.units is None else dataset.units[rows]
    X = dataset.X.iloc[rows].reset_index(drop=True)
    return replace(dataset, X=X, y=dataset.y[rows], units=units)


def _groupings(card: Card) -> tuple[Grouping, ...]:
    features, target = card.features or {}, card.public_target
    by_class = []
    if card.task == "multiclass" and target is not None:
        by_class = [Grouping(card.target, tuple(map(str, target)), by_class=True)]
    named = (Grouping.of(features[name].named(name), cuts) for name, cuts in card.subgroups.items())
    return (*by_class, *named)
