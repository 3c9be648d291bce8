"""What every additive model shares: functions that add up, predictions, prediction intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.additive.bins import FeatureBins, PairTerm, pair_name
from dprepro.additive.shapes import shapes_of
from dprepro.additive.units import Powers, on_grid, power_for
from dprepro.estimators.base import BinaryModel, FrameModel
from dprepro.estimators.contract import classes_of
from dprepro.runtime.arguments import real
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.extras import needs_extra

if TYPE_CHECKING:
    from dprepro.additive.editing import Edit
    from dprepro.additive.measurement import Measurement
    from dprepro.data.domain import TaskKind

PERCENTS = tuple(range(50, 100))
"""The coverages that a fit knows the width of, in percent."""

LEVELS = np.array(PERCENTS) / 100

LARGEST_LOGARITHM = 700.0
"""No sum is larger whose exponential is predicted: that of 710 is no float64."""


@dataclass(frozen=True)
class ResidualSizes:
    """How far targets lie from the predictions of a model fitted to rows like theirs.

    Attributes
    ----------
    percents : int64 (L,)
        Rising, at least two of them, between 1 and 99.
    sizes : float64 (L,)
        |target - prediction| that so many percent of the rows do not exceed, in the target's unit.
        They do not fall, and are whole numbers of 2^`power`.
    power
        See `dprepro.additive.units`.
    """

    percents: np.ndarray
    sizes: np.ndarray
    power: int

    @classmethod
    def at_levels(cls, sizes: np.ndarray) -> ResidualSizes:
        """Return those of sizes at `LEVELS`, float64 (50,), which are rounded to their grid."""
        power = power_for([sizes])
        return cls(np.array(PERCENTS), on_grid(sizes, power), power)

    def half_width(self, coverage: float) -> float:
        """Return the size that the share `coverage` of rows does not exceed.

        Raises
        ------
        DpreproError
            If that is not between the smallest and the largest share known.
        """
        least, most = self.percents[0] / 100, self.percents[-1] / 100
        coverage = real("coverage", coverage)
        if not least <= coverage <= most:
            raise DpreproError(
                f"the coverage of an interval must be from {least:g} to {most:g}, got {coverage:g}"
            )
        return float(np.interp(coverage, self.percents / 100, self.sizes))


def sizes_of(model: AdditiveModel) -> ResidualSizes:
    """Return what says how wide the intervals of a model are.

    Raises
    ------
    DpreproError
        For classification, and if the model does not know it.
    """
    if not isinstance(model, AdditiveRegressor):
        raise DpreproError(
            "prediction intervals are for regression; this is a model of classes, whose "
            "probabilities say how sure it is"
        )
    if model.has_log_link:
        raise DpreproError(
            "this is a model of counts, which has no prediction intervals: how far a count lies "
            "from its prediction depends on the prediction"
        )
    if model.residual_sizes_ is None:
        raise DpreproError(
            "this model does not know how wide prediction intervals are. Regressors of dp-ebm-plus "
            "know it, from releases that they make anyway, but not from a single epoch, as with "
            "n_epochs=1, or with pairs and n_epochs=3; and not if they come from a file without "
            "`intervals`, as earlier releases of dprepro wrote: fit such a model"
        )
    return model.residual_sizes_


class AdditiveModel(FrameModel):
    """An additive model g(E[y]) = intercept + f_1(x_1) + ... + f_K(x_K) with binned features.

    It may also have functions of pairs of features, which are added, too. For S > 2 classes it has
    S sums of this kind: each value of a function, and the intercept, are S numbers, of which the
    probabilities are the softmax.

    Attributes
    ----------
    bins_ : list of FeatureBins
        How each feature's values become bins.
    shape_functions_ : list of ndarray, float64 (n_bins,)
        f_k, one value a bin: log odds for classification, the target's unit for regression. Of
        several classes (n_bins, S), log odds of each over the geometric mean of all.
    bin_counts_ : list of ndarray, float64 (n_bins,)
        Training rows per bin (noisy where the model is private). f_k has mean zero under them.
    intercept_ : float, or float64 (S,) of several classes
        The rest.
    powers_ : Powers
        Of two, of which all these are whole numbers; see `dprepro.additive.units`.
    shape_noise_ : list of ndarray, as the functions, or None
        Standard deviation of the noise in each value as it was released, where it is known; see
        `dprepro.additive.shapes.noise_variance`.
    pairs_ : sequence of PairTerm
        Functions of two features; most models have none.
    residual_sizes_ : ResidualSizes or None
        Regression: how wide prediction intervals are, where that was released.
    measurement_ : Measurement or None
        Noisy counts of held-out rows, where they were released with the model.
    edits_ : list of Edit
        What was changed after the fit, in order; see `dprepro.additive.editing`.
    target_name_ : str or None
        The name of the target, where it is known: `dprepro fit` takes it from the card.
    labels_ : tuple of str or None
        Classification: what the data call the classes, in the order of ``classes_``, where that
        is known, such as ("<=50K", ">50K").
    measured_in_ : mapping of str to str
        The units of measure of features by their names, as far as they are known.
    """

    bins_: list[FeatureBins]
    shape_functions_: list[np.ndarray]
    bin_counts_: list[np.ndarray]
    intercept_: Any
    powers_: Powers
    edits_: list[Edit]
    pairs_: Sequence[PairTerm] = ()
    residual_sizes_: ResidualSizes | None = None
    measurement_: Measurement | None = None
    shape_noise_: list[np.ndarray] | None = None
    target_name_: str | None = None
    labels_: tuple[str, ...] | None = None
    measured_in_: Mapping[str, str] = MappingProxyType({})

    def contributions(self, X: Any) -> np.ndarray:
        """Return f_k(x_k) of every row and feature, float64 (n, K): the exact local explanation.

        Of a model with P functions of pairs (n, K + P), in the order of `term_names`. Of a model of
        S classes (n, K, S), one number for each class. Values whose
        bin the model does not know (an unseen category without an "other" bin, a missing value
        where the training data had none) contribute 0, also to pairs.
        """
        frame = self._frame(X)
        codes = [
            bins.encode(frame[name]) for name, bins in zip(frame.columns, self.bins_, strict=True)
        ]
        single = [
            np.append(shape, np.zeros((1, *shape.shape[1:])), axis=0)[code]
            for code, shape in zip(codes, self.shape_functions_, strict=True)
        ]
        double = [term.at(codes[term.pair.first], codes[term.pair.second]) for term in self.pairs_]
        return np.stack([*single, *double], axis=1)

    @property
    def term_names(self) -> list[str]:
        """The names of all functions: those of the K features, and those of pairs."""
        names = [str(bins.feature.name) for bins in self.bins_]
        pairs = [term.pair for term in self.pairs_]
        return [*names, *(pair_name(names[pair.first], names[pair.second]) for pair in pairs)]

    @property
    def task(self) -> TaskKind:
        """What is predicted: a class of two, one of several, or a number."""
        if classes_of(self) is None:
            return "regression"
        return "multiclass" if self.several_classes else "binary"

    @property
    def class_names(self) -> tuple[str, ...]:
        """What the classes are called: as the data call them, where that is known; none if none."""
        if self.labels_ is not None:
            return self.labels_
        known = classes_of(self)
        return () if known is None else tuple(map(str, known.tolist()))

    @property
    def several_classes(self) -> bool:
        """Whether it has more than two classes, and so as many numbers for each bin."""
        return np.ndim(self.intercept_) > 0

    @property
    def has_log_link(self) -> bool:
        """Whether its sum is the logarithm of what is predicted; see `AdditiveRegressor`."""
        return isinstance(self, AdditiveRegressor) and self.log_link_

    def require_one_score(self, what: str) -> None:
        """Raise DpreproError if the model has several classes, for which `what` is not made yet."""
        if self.several_classes:
            raise DpreproError(
                f"{what} takes a model of two classes or of a number, and this one has "
                f"{self.intercept_.size} classes. Of such a model there are predictions, also with "
                "their contributions (`dprepro predict --explain`), a page (`dprepro show`), plots "
                "and exports"
            )

    def to_interpret(self) -> Any:
        """Return the model as an explainable boosting machine of interpret, for its dashboard.

        Its scores are the same but for rounding; see `dprepro.additive.export.interpret`.

        Raises
        ------
        DpreproError
            If interpret-core is not installed.
        """
        check_is_fitted(self)
        with needs_extra("interpret", "to_interpret() needs interpret-core"):
            from dprepro.additive.export.interpret import to_interpret
        return to_interpret(self)

    def scores_of(self, contributions: np.ndarray) -> np.ndarray:
        """Return the sums of the intercept and of contributions, float64 (n,).

        Of several classes (n, S).
        """
        scores: np.ndarray = self.intercept_ + contributions.sum(axis=1)
        return scores

    def _scores(self, X: Any) -> np.ndarray:
        return self.scores_of(self.contributions(X))

    def _set_shapes(self, shapes: list[np.ndarray], intercept: Any) -> None:
        """Store shape functions, centred by the bin counts; what is taken out joins the intercept.

        Then all of them, pairs, their noise and the counts are rounded to their grids. Pairs are
        centred already. No data is read.
        """
        means = [
            np.average(shape, axis=0, weights=counts) if counts.sum() > 0 else 0.0
            for shape, counts in zip(shapes, self.bin_counts_, strict=True)
        ]
        centred = [s - m for s, m in zip(shapes, means, strict=True)]
        level = np.atleast_1d(intercept + sum(means))
        functions = [*centred, *(term.values for term in self.pairs_)]
        noise = self.shape_noise_ or []
        self.powers_ = Powers.of(functions, level, self.bin_counts_, noise)
        self.pairs_ = tuple(term.on_grids(self.powers_) for term in self.pairs_)
        self.shape_functions_ = [on_grid(shape, self.powers_.functions) for shape in centred]
        level = on_grid(level, self.powers_.intercept)
        self.intercept_ = level if np.ndim(intercept) else float(level[0])
        self.bin_counts_ = [on_grid(counts, self.powers_.counts) for counts in self.bin_counts_]
        if self.shape_noise_ is not None:
            self.shape_noise_ = [
                on_grid(noise, self.powers_.functions) for noise in self.shape_noise_
            ]
        self.edits_ = []


class AdditiveClassifier(BinaryModel, AdditiveModel):
    """Classification: of two classes with the logistic link, of several with the softmax."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log odds of ``classes_[1]``, float64 (n,); of several classes (n, S).

        There they are log odds of each class over the geometric mean of all.
        """
        return self._scores(X)

    def probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, float64 (n, S), of scores (n,) or (n, S)."""
        return super().probabilities_of(scores) if scores.ndim == 1 else softmax(scores, axis=1)

    def places_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the place of the likeliest class in ``classes_``, int (n,), of scores."""
        places = scores > self._middle if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(places).astype(int)

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the likeliest class, (n,), of scores."""
        return self.classes_[self.places_of(scores)]

    @property
    def predict_interval(self) -> Any:
        """Not for classification: `predict_proba` says how sure a prediction is.

        Raises
        ------
        AttributeError
            Always; so ``hasattr`` says that there is no such method.
        """
        raise AttributeError(
            f"{type(self).__name__} has no predict_interval, which is for regression: "
            "predict_proba says how sure a prediction is"
        )


class AdditiveRegressor(RegressorMixin, AdditiveModel):
    """Regression with the identity link, or, of counts, with the logarithm.

    Attributes
    ----------
    range_ : (float, float) or None
        The public range to which predictions are clipped, if they are.
    log_link_ : bool
        Whether a sum is the logarithm of what is predicted: then a function adds to it, and
        multiplies a prediction by its exponential.
    """

    range_: tuple[float, float] | None = None
    log_link_: bool = False

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target, float64 (n,)."""
        return self.targets_of(self._scores(X))

    def targets_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the predicted target, float64 (n,), of sums (n,): clipped to the range, if any."""
        if self.log_link_:
            scores = np.exp(np.minimum(scores, LARGEST_LOGARITHM))
        return self.limited(scores)

    def limited(self, targets: np.ndarray) -> np.ndarray:
        """Return predicted targets, float64 (n,), within the range, if there is one."""
        return targets if self.range_ is None else np.clip(targets, *self.range_)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return lower and upper ends of prediction intervals, float64 (n, 2).

        An interval is the prediction plus and minus a size, clipped to the range: the size of
        |target - prediction| that the share `coverage` of new rows does not exceed. It was
        estimated from noisy counts of the sizes of residuals, which the fit released: nothing is
        added to what the model spent. The coverage holds on average over rows like those that were
        fitted to, not for each kind of row. Where functions were edited after that, an interval
        goes from the lower to the higher of both predictions, and as far on either side.

        Parameters
        ----------
        X
            Rows, as for `predict`.
        coverage
            Of a fit, between 0.5 and 0.99; a model file may hold fewer levels.

        Raises
        ------
        DpreproError
            If the model does not know sizes of residuals, or not for that coverage.
        """
        check_is_fitted(self)
        size = sizes_of(self).half_width(coverage)
        found = [self.predict(X)]
        if self.edits_:
            found.append(self._unedited().predict(X))
        ends = np.column_stack([np.min(found, axis=0) - size, np.max(found, axis=0) + size])
        return self.targets_of(ends)

    def _unedited(self) -> AdditiveRegressor:
        """Return the model as it was released, as far as its sums go."""
        released = [shape.released for shape in shapes_of(self)]
        model = copy(self)
        model.shape_functions_, of_pairs = released[: len(self.bins_)], released[len(self.bins_) :]
        model.pairs_ = tuple(
            replace(term, values=values.reshape(term.pair.shape))
            for term, values in zip(self.pairs_, of_pairs, strict=True)
        )
        return model
