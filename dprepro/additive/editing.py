"""Change the functions of a fitted model by hand: post-processing, which costs no privacy.

It is free as long as whoever edits goes by the model and by what is public, not by private rows.
Every edit is kept in the model's ``edits_`` and named in its ledger, and can be undone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dprepro.additive.bins import BETWEEN, MISSING, FeatureBins
from dprepro.additive.model import AdditiveModel
from dprepro.additive.units import on_grid
from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.estimators.contract import ledger_of
from dprepro.runtime.arguments import name_of, real, shown, text
from dprepro.runtime.errors import DpreproError, nearest

Action = Literal["set", "interpolate", "level", "monotone"]
DIRECTIONS = ("increasing", "decreasing")


@dataclass(frozen=True)
class Edit:
    """One change of the function of a feature, or of a pair of features.

    Attributes
    ----------
    feature, action
        What was changed, and by which function of this module. A pair has the name that
        `dprepro.additive.bins.pair_name` gives it.
    detail
        The rest in words.
    before, after
        The whole function, one value for each bin; or for each cell of a pair, row by row.
    """

    feature: str
    action: Action
    detail: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.feature}: {self.action} {self.detail}"


def set_value(model: AdditiveModel, feature: str, at: float | str, value: float) -> Edit | None:
    """Give one bin a new value, in the unit of the function (log odds, or the target's).

    Raises DpreproError if there is no such feature or bin, or the value is not finite.

    Parameters
    ----------
    feature
        A feature, or a pair of them as "first & second".
    at
        A number or a category that lies in the bin, or the bin's label. All that lies in the same
        bin changes with it. For a cell of a pair both, as "39 & clerk".

    Returns
    -------
    Edit or None
        What was changed; None where there was nothing to change.
    """
    if not math.isfinite(value := real("value", value)):
        raise DpreproError(f"feature {feature!r}: a value must be a finite number, got {value}")
    if (p := pair_position(model, feature)) is not None:
        return _set_cell(model, p, feature, str(at), value)
    k = _position_to_edit(model, feature)
    b = _bin_at(model.bins_[k], at)
    after = model.shape_functions_[k].copy()
    after[b] = value
    return _apply(model, k, "set", f"{model.bins_[k].labels[b]} to {value:g}", after)


def _set_cell(model: AdditiveModel, p: int, name: str, at: str, value: float) -> Edit | None:
    term = model.pairs_[p]
    pair = term.pair
    # A category may hold the mark between both, too.
    parts = at.split(BETWEEN)
    for cut in range(1, len(parts)):
        sides = BETWEEN.join(parts[:cut]), BETWEEN.join(parts[cut:])
        try:
            first, second = (
                _bin_at(model.bins_[k], side)
                for k, side in zip((pair.first, pair.second), sides, strict=True)
            )
        except DpreproError:
            if cut == len(parts) - 1:
                raise
            continue
        cell = pair.first_groups[first], pair.second_groups[second]
        after = term.values.copy()
        after[cell] = value
        return _apply_to_pair(model, p, name, "set", f"{at} to {value:g}", after)
    raise DpreproError(
        f"pair {name!r}: a cell is named by a number or category of either feature, such as "
        f"'39{BETWEEN}clerk', got {at!r}"
    )


def _apply_to_pair(
    model: AdditiveModel, p: int, name: str, action: Action, detail: str, after: np.ndarray
) -> Edit | None:
    term, after = model.pairs_[p], on_grid(after, model.powers_.functions)
    if np.array_equal(term.values, after):
        return None
    before, now = (tuple(values.ravel().tolist()) for values in (term.values, after))
    edit = Edit(name, action, detail, before, now)
    _give_pair(model, p, after)
    model.edits_.append(edit)
    note_edits(model)
    return edit


def _give_pair(model: AdditiveModel, p: int, values: np.ndarray) -> None:
    changed = replace(model.pairs_[p], values=values)
    model.pairs_ = (*model.pairs_[:p], changed, *model.pairs_[p + 1 :])


def pair_position(model: AdditiveModel, name: str) -> int | None:
    """Return the position of a pair among the model's pairs, or None if it has none so called."""
    names = model.term_names[len(model.bins_) :]
    return names.index(name) if name in names else None


def interpolate(model: AdditiveModel, feature: str, start: float, stop: float) -> Edit | None:
    """Replace the bins that overlap (start, stop) by a line between their outer neighbours.

    The line runs through the middles of bins; at an end of the feature it is level. Returns and
    raises as `set_value`; only numeric features have a line.
    """
    k = _position_to_edit(model, feature)
    start, stop = real("start", start), real("stop", stop)
    edges = _edges(model.bins_[k], "interpolated")
    touched = _touched(feature, edges, start, stop)
    if touched.all():
        raise DpreproError(
            f"feature {feature!r}: every bin overlaps ({start:g}, {stop:g}), so nothing is left "
            "to interpolate between; choose a shorter range"
        )
    middles = (edges[:-1] + edges[1:]) / 2
    after = model.shape_functions_[k].copy()
    line = after[: middles.size]
    line[touched] = np.interp(middles[touched], middles[~touched], line[~touched])
    return _apply(model, k, "interpolate", f"from {start:g} to {stop:g}", after)


def level(model: AdditiveModel, feature: str, start: float, stop: float) -> Edit | None:
    """Give the bins that overlap (start, stop) one value: their mean, weighted by the bin counts.

    So the mean of the function over the rows stays. Returns and raises as `set_value`; only numeric
    features have ranges.
    """
    k = _position_to_edit(model, feature)
    start, stop = real("start", start), real("stop", stop)
    edges = _edges(model.bins_[k], "levelled")
    touched = _touched(feature, edges, start, stop)
    after = model.shape_functions_[k].copy()
    flat, counts = after[: touched.size], model.bin_counts_[k][: touched.size][touched]
    flat[touched] = np.average(flat[touched], weights=counts if counts.sum() > 0 else None)
    return _apply(model, k, "level", f"from {start:g} to {stop:g}", after)


def make_monotone(model: AdditiveModel, feature: str, direction: str) -> Edit | None:
    """Make a numeric feature's function rise or fall: the nearest such function.

    Isotonic regression (pool adjacent violators) minimises the squared differences weighted by
    the bin counts, which are noisy where the model is private (Nori et al. 2021, section 5.2). The
    weighted mean stays. A bin of missing values is left alone.

    Parameters
    ----------
    direction : {"increasing", "decreasing"}
        Returns and raises as `set_value`.
    """
    if direction not in DIRECTIONS:
        raise DpreproError(
            f"feature {feature!r}: a direction is {' or '.join(DIRECTIONS)}, got {direction!r}"
            f"{nearest(str(direction), DIRECTIONS)}"
        )
    k = _position_to_edit(model, feature)
    ordered = _edges(model.bins_[k], "made monotone").size - 1
    counts = model.bin_counts_[k][:ordered]
    after = model.shape_functions_[k].copy()
    rising = direction == "increasing"
    # What is monotone is its own nearest one, which regression meets up to rounding only.
    if ((np.diff(after[:ordered]) if rising else -np.diff(after[:ordered])) < 0).any():
        # A bin without rows has no say, but needs a weight.
        weights = np.maximum(counts, 1e-9 * max(counts.sum(), 1.0))
        from sklearn.isotonic import isotonic_regression  # takes long; only this edit needs it

        after[:ordered] = isotonic_regression(
            after[:ordered], sample_weight=weights, increasing=rising
        )
    return _apply(model, k, "monotone", f"{direction}, nearest under the bin counts", after)


def make_all_monotone(model: AdditiveModel, directions: Mapping[str, str] | None) -> None:
    """Apply `make_monotone` to every feature named in `directions`."""
    for feature, direction in (directions or {}).items():
        make_monotone(model, feature, direction)


def directions(name: str, given: object) -> dict[str, str] | None:
    """Return what names of features are mapped to, `DIRECTIONS`; None for None. A kind."""
    if given is None:
        return None
    allowed = f"{name} must map features to {' or '.join(DIRECTIONS)}, or be None, got "
    if not isinstance(given, Mapping):
        raise ValueError(allowed + shown(given))
    for feature, direction in given.items():
        if not isinstance(direction, str) or direction not in DIRECTIONS:
            raise ValueError(f"{allowed}{shown(direction)} for {shown(feature)}")
    return {name_of(f"a feature in {name}", f): text(name, to) for f, to in given.items()}


def undo(model: AdditiveModel) -> Edit:
    """Take back the last edit, to the bit, and return it; `DpreproError` if there is none."""
    if not model.edits_:
        raise DpreproError("there is no edit to undo")
    edit = model.edits_.pop()
    if (p := pair_position(model, edit.feature)) is not None:
        _give_pair(model, p, np.array(edit.before).reshape(model.pairs_[p].values.shape))
    else:
        model.shape_functions_[position_of(model, edit.feature)] = np.array(edit.before)
    note_edits(model)
    return edit


def note_edits(model: AdditiveModel) -> None:
    """Name the model's edits in its ledger, if it has one: they cost nothing."""
    ledger = ledger_of(model)
    if ledger is not None:
        ledger.post_processing = [str(edit) for edit in model.edits_]


def _position_to_edit(model: AdditiveModel, feature: str) -> int:
    """Return the position of a feature. Raises DpreproError also for several classes."""
    model.require_one_score("an edit")
    return position_of(model, feature)


def position_of(model: AdditiveModel, feature: str) -> int:
    """Return the position of a feature; `DpreproError` if the model has none of that name."""
    names = [bins.feature.name for bins in model.bins_]
    if pair_position(model, feature) is not None:
        raise DpreproError(
            f"{feature!r} is a pair of features: only single cells of it can be set, with --at "
            f"'X{BETWEEN}Y' --value"
        )
    if feature not in names:
        raise DpreproError(
            f"the model has no feature {feature!r}{nearest(feature, names) or '.'} "
            f"It has: {', '.join(model.term_names)}"
        )
    return names.index(feature)


def _apply(
    model: AdditiveModel, k: int, action: Action, detail: str, after: np.ndarray
) -> Edit | None:
    before, after = model.shape_functions_[k], on_grid(after, model.powers_.functions)
    if np.array_equal(before, after):
        return None
    name = model.bins_[k].feature.name
    edit = Edit(name, action, detail, tuple(before.tolist()), tuple(after.tolist()))
    model.shape_functions_[k] = after
    model.edits_.append(edit)
    note_edits(model)
    return edit


def _edges(bins: FeatureBins, done: str) -> np.ndarray:
    """Return the borders of a numeric feature's bins, float64 (C + 1,), that of missing left out.

    Raises DpreproError for a categorical feature, whose bins have no order.
    """
    feature = bins.feature
    if isinstance(feature, CategoricalFeature):
        raise DpreproError(
            f"feature {feature.name!r} has categories, which have no order: it cannot be {done}; "
            "set its bins one by one"
        )
    return np.concatenate([[feature.lower], bins.cuts, [feature.upper]])


def _touched(feature: str, edges: np.ndarray, start: float, stop: float) -> np.ndarray:
    """Return which bins between `edges` (C + 1,) overlap the range (start, stop), bool (C,).

    Raises DpreproError if it is empty or lies outside the bounds.
    """
    if not (start < stop and start < edges[-1] and stop > edges[0]):
        raise DpreproError(
            f"feature {feature!r}: a range needs start < stop within its bounds "
            f"[{edges[0]:g}, {edges[-1]:g}], got {start:g} and {stop:g}"
        )
    return np.asarray((edges[:-1] < stop) & (edges[1:] > start))


def _bin_at(bins: FeatureBins, at: float | str) -> int:
    feature = bins.feature
    if isinstance(at, str) and at in bins.labels:
        return bins.labels.index(at)
    if at == MISSING and bins.missing_bin >= 0:
        return bins.missing_bin
    if isinstance(feature, NumericFeature):
        place = _number(at)
        if not feature.lower <= place <= feature.upper:
            raise DpreproError(
                f"feature {feature.name!r}: {at!r} is neither a number in its bounds "
                f"[{feature.lower:g}, {feature.upper:g}] nor one of its bins: "
                f"{', '.join(bins.labels)}"
            )
        return int(np.searchsorted(bins.cuts, place, side="right"))
    if at not in feature.categories:
        known = list(dict.fromkeys([*feature.categories, *bins.labels]))
        raise DpreproError(
            f"feature {feature.name!r} has no category {at!r}{nearest(str(at), known) or '.'} "
            f"It has: {', '.join(known)}"
        )
    return int(bins.groups[feature.categories.index(str(at))])


def _number(text: float | str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
