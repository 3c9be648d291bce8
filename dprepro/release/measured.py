"""How well a released model predicts, by its noisy counts: figures of a statement, and their words.

All of it follows from the model file; see `dprepro.additive.measurement`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict

from dprepro.additive.file import LoadedClassifier, LoadedRegressor
from dprepro.additive.measurement import (
    HIDDEN,
    Estimate,
    GroupSums,
    Measurement,
    Sums,
    area_under_curve,
    calibration,
    sums_of,
)

_WIDE = 0.5
"""An interval of the area under the ROC curve that is as wide says nothing."""

_HIDDEN = "hidden by noise"


class StatementPart(BaseModel):
    """A part of a statement: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        json_schema_serialization_defaults_required=True,
    )


class Figure(StatementPart):
    """A value with its interval of 95%, for noise and sampling. None: the noise hides it."""

    value: float | None
    lower: float
    upper: float

    @classmethod
    def of(cls, found: Estimate, scale: float = 1.0) -> Figure:
        """Return an estimate in another unit, with four decimals of it."""
        value, lower, upper = (None if x is None else round(x, 4) * scale for x in found)
        return cls(value=value, lower=lower or 0.0, upper=upper or 0.0)


class BinOfProbabilities(StatementPart):
    """Rows with a predicted probability from `lower` to `upper`; the share of the second class."""

    lower: float
    upper: float
    observed: Figure


class GroupMeasured(StatementPart):
    """A group of held-out rows.

    Attributes
    ----------
    feature, group
        Which rows: those of a feature's group, or all rows, without a feature.
    rows
        Their noisy number.
    share
        Of the second of two classes; else None.
    error
        Classes: the share that was predicted wrongly. Regression: the root mean squared error.
    difference
        Two classes: the share of the second class less the mean predicted probability.
        Regression: the mean of target minus prediction. None for several classes.
    """

    feature: str | None
    group: str
    rows: int
    share: Figure | None
    error: Figure
    difference: Figure | None


class Measured(StatementPart):
    """How well the model predicts rows that did not train it.

    Attributes
    ----------
    held_out
        The share of rows or units that was held out.
    area
        Under the ROC curve, for two classes.
    bins
        Calibration, for two classes.
    bound
        Regression: at what residuals were clipped.
    groups
        All rows first; of several classes then the rows of each class.
    smallest
        In a group of fewer held-out rows the noise hides all.
    """

    held_out: float
    area: Figure | None
    bins: list[BinOfProbabilities]
    bound: float | None
    groups: list[GroupMeasured]
    smallest: int

    @property
    def of_classes(self) -> bool:
        """Whether the model has several classes: of these there is no area and no bound."""
        return self.area is None and self.bound is None

    @property
    def of_features(self) -> list[GroupMeasured]:
        """The groups that the card names: those of a feature's values."""
        groups = [group for group in self.groups if group.feature is not None]
        target = groups[0].feature if self.of_classes and groups else None
        return [group for group in groups if group.feature != target]


def measured_of(model: LoadedClassifier | LoadedRegressor) -> Measured | None:
    """Return what the noisy counts in a model file say; None if it has none."""
    found = model.measurement_
    if found is None:
        return None
    area, bins = None, []
    if found.scores is not None:
        area = Figure.of(area_under_curve(found.scores))
        bins = [
            BinOfProbabilities(
                lower=round(each.lower, 4), upper=round(each.upper, 4),
                observed=Figure.of(each.observed),
            )
            for each in calibration(found.scores)
        ]  # fmt: skip
    groups = [each for sums in found.sums for each in _groups(found, sums)]
    smallest = max(sums_of(found, sums)[0].smallest for sums in found.sums)
    return Measured(
        held_out=found.held_out, area=area, bins=bins, bound=found.bound, groups=groups,
        smallest=math.ceil(smallest),
    )  # fmt: skip


def _groups(found: Measurement, sums: GroupSums) -> list[GroupMeasured]:
    error: Callable[[Sums], Estimate] = lambda s: s.share(-1)  # noqa: E731
    difference: Callable[[Sums], Estimate] | None = Sums.difference
    if found.task == "regression":
        error, difference = Sums.root_mean_square, Sums.mean_residual
    elif found.task == "multiclass":
        difference = None
    scale = found.bound or 1.0
    return [
        GroupMeasured(
            feature=sums.feature, group=name, rows=max(0, round(of_group.rows)),
            share=Figure.of(of_group.share(0)) if found.task == "binary" else None,
            error=Figure.of(error(of_group), scale),
            difference=None if difference is None else Figure.of(difference(of_group), scale),
        )
        for name, of_group in zip(sums.groups, sums_of(found, sums), strict=True)
    ]  # fmt: skip


def in_short(measured: Measured | None) -> str:
    """Return in a line how well the model predicts."""
    if measured is None:
        return "nothing was measured: that would have spent privacy"
    (whole,) = (group for group in measured.groups if group.feature is None)
    area = measured.area
    if area is not None and area.value is not None and area.upper - area.lower < _WIDE:
        return (
            f"area under the ROC curve {with_interval(area)}, on rows that did not train it; 0.5 "
            "is what chance gives, and 1 is the best"
        )
    if whole.error.value is None or area is not None:
        return "it was measured, and the noise hides it"
    if measured.of_classes:
        return (
            f"the likeliest class is wrong for {_in_percent(whole.error)} of rows that did not "
            "train it"
        )
    return (
        f"root mean squared error {with_interval(whole.error)}, on rows that did not train it; a "
        f"residual beyond {measured.bound:.4g} counts as that"
    )


def in_words(measured: Measured, label: str = "") -> list[str]:
    """Return how the figures came about, and what they do not say.

    `label` is the second of two classes.
    """
    share = measured.held_out
    said = [
        f"About {share:.0%} of the rows were held out by chance, all rows of one unit together, "
        "and did not train the model. They were counted with noise, which spends a part of the "
        "epsilon above. An interval, in brackets, has 95% for noise and sampling together."
    ]
    if measured.area is not None:
        said.append(
            f"Area under the ROC curve: {with_interval(measured.area)}. Of two rows with nearly "
            "the same score it counts half, and so is a little too small."
        )
        said.append(_calibration_in_words(measured.bins))
        said.append(
            "A row is predicted wrongly if the label that the model finds likelier is not its own. "
            f"A model that never predicts {label} is wrong as often as {label} occurs: compare "
            "both columns."
        )
    elif measured.of_classes:
        said.append(
            "A row is predicted wrongly if the class that the model finds likeliest is not its "
            "own. It counts in the line of its own class, too. How near probabilities are to "
            "shares was not measured."
        )
    else:
        said.append(
            f"A residual beyond {measured.bound:.4g} counts as {measured.bound:.4g}, since one row "
            "must not move a sum further. Errors and intervals are of residuals so limited. If a "
            "few are far beyond, the error without the limit is larger, and may lie above the "
            "interval."
        )
    if any(group.feature is not None for group in measured.groups):
        said.append(
            "Noise hides small groups. Nothing can be said of a group of fewer than "
            f"{measured.smallest:,} held-out rows, about {measured.smallest / share:,.0f} of those "
            "that are used, however badly the model serves it. Numbers of rows are noisy, too, by "
            f"up to about {HIDDEN * measured.smallest:,.0f}, so they do not add up."
        )
        said += _served_worse(measured)
    if not measured.of_features:
        said.append("Whom the model serves worse was not measured: the card names no `subgroups`.")
    return said


def _served_worse(measured: Measured) -> list[str]:
    """Return which groups have a larger error than all rows, beyond both intervals."""
    (whole,) = (group for group in measured.groups if group.feature is None)
    known = [g for g in measured.groups if g.feature is not None and g.error.value is not None]
    worse = [f"{g.feature} {g.group}" for g in known if g.error.lower > whole.error.upper]
    hidden = [
        f"{g.feature} {g.group}"
        for g in measured.groups
        if g.feature is not None and g.error.value is None
    ]
    said = [f"Hidden by noise: {', '.join(hidden)}."] if hidden else []
    if worse:
        said.append(
            f"Larger errors than for all rows, beyond both intervals: {', '.join(worse)}. Of "
            f"{len(known)} groups, chance alone shows this for hardly any."
        )
    elif known:
        said.append("No group has a larger error than all rows, beyond both intervals.")
    return said


def _calibration_in_words(bins: list[BinOfProbabilities]) -> str:
    known = [b for b in bins if b.observed.value is not None]
    off = [b for b in known if b.observed.lower > b.upper or b.observed.upper < b.lower]
    said = (
        f"Of {len(bins)} bins of predicted probabilities {len(known)} have enough rows to compare "
        "with what happened"
    )
    if not known:
        return f"{said}."
    if not off:
        return f"{said}: the interval of the observed share meets the prediction in all of them."
    return (
        f"{said}: the interval of the observed share misses the prediction in {len(off)} of them; "
        "by chance one in twenty does."
    )


def heads(measured: Measured, label: str = "") -> tuple[str, ...]:
    """Return the heads of the table of groups."""
    if measured.of_classes:
        return ("Rows", "About how many", "Predicted wrongly")
    if measured.area is None:
        return (
            "Rows",
            "About how many",
            "Root mean squared error",
            "Mean of target minus prediction",
        )
    return (
        "Rows",
        "About how many",
        f"Share of {label}",
        "Predicted wrongly",
        "Observed less predicted",
    )


def table(measured: Measured) -> list[tuple[str, ...]]:
    """Return the rows of that table; of classes, shares are in percent."""
    shown = _in_percent if measured.bound is None else with_interval
    return [
        (
            group.group if group.feature is None else f"{group.feature}: {group.group}",
            f"{group.rows:,}",
            *(
                shown(figure)
                for figure in (group.share, group.error, group.difference)
                if figure is not None
            ),
        )
        for group in measured.groups
    ]


def _in_percent(figure: Figure) -> str:
    if figure.value is None:
        return _HIDDEN
    value, lower, upper = (100 * x for x in (figure.value, figure.lower, figure.upper))
    return f"{value:.1f}% ({lower:.1f} to {upper:.1f})"


def with_interval(figure: Figure) -> str:
    """Return a value with its interval, to three digits."""
    if figure.value is None:
        return _HIDDEN
    return f"{figure.value:.3g} ({figure.lower:.3g} to {figure.upper:.3g})"
