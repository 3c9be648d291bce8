"""A model as an explainable boosting machine of interpret, for its dashboard and its tools.

What is needed of its classes are the attributes that `fit` sets, as of interpret-core 0.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

from dprepro.additive.bins import OTHER, FeatureBins, PairTerm
from dprepro.data.domain import CategoricalFeature
from dprepro.estimators.contract import classes_of

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel


def to_interpret(model: AdditiveModel) -> Any:
    """Return an `ExplainableBoostingClassifier` or `ExplainableBoostingRegressor`.

    Its scores are the model's to rounding. Every category is a bin of its own there; where the
    model groups some, they share the value, and each has an even share of the group's rows. Error
    bars are the standard deviations of the noise, where they are known, and else 0.
    """
    ebm = _without_terms(model)
    noise = model.shape_noise_ or [np.zeros_like(shape) for shape in model.shape_functions_]
    terms = [
        _Term(bins, *functions)
        for bins, *functions in zip(
            model.bins_, model.shape_functions_, noise, model.bin_counts_, strict=True
        )
    ]
    _set_terms(ebm, terms)
    for name, pair in zip(model.term_names[len(terms) :], model.pairs_, strict=True):
        _add_pair(ebm, name, pair, terms)
    return ebm


def _without_terms(model: AdditiveModel) -> Any:
    """Return a machine with link, intercept, and classes or limits."""
    classes, limits = classes_of(model), getattr(model, "range_", None)
    if classes is not None:
        ebm = ExplainableBoostingClassifier()
        ebm.classes_ = classes if model.labels_ is None else np.array(model.labels_)
        ebm.intercept_ = np.atleast_1d(model.intercept_)
        ebm.link_ = "mlogit" if model.several_classes else "logit"
        return ebm
    ebm = ExplainableBoostingRegressor()
    if limits is not None:
        ebm = ClippedRegressor()
        ebm.limits_ = limits
    ebm.intercept_, ebm.link_ = (
        float(model.intercept_),
        "log" if model.has_log_link else "identity",
    )
    return ebm


class _Term:
    """A feature as interpret has it: scores of missing values first, of unknown ones last."""

    def __init__(
        self, bins: FeatureBins, values: np.ndarray, noise: np.ndarray, counts: np.ndarray
    ) -> None:
        feature = bins.feature
        self.name = str(feature.name)
        if isinstance(feature, CategoricalFeature):
            self.kind = "nominal"
            self.bins: Any = {name: k for k, name in enumerate(feature.categories, start=1)}
            self.bounds = (np.nan, np.nan)
            known, unknown = bins.groups, bins.labels.index(OTHER) if OTHER in bins.labels else -1
        else:
            self.kind = "continuous"
            self.bins = np.ascontiguousarray(bins.cuts, dtype=np.float64)
            self.bounds = (feature.lower, feature.upper)
            known, unknown = np.arange(bins.cuts.size + 1), -1
        order = np.concatenate([[bins.missing_bin], known, [unknown]])
        self.order = order
        none = np.zeros((1, *values.shape[1:]))
        self.scores, self.noise = (np.append(each, none, axis=0)[order] for each in (values, noise))
        # Rows of a bin go to the places that show it: known ones, if there are any.
        places = np.bincount(known, minlength=len(values) + 1)
        share = np.append(counts, 0.0) / np.maximum(places, 1)
        alone = places[order] == 0
        is_known = np.arange(order.size) % (order.size - 1) != 0
        self.weights = np.where(is_known | alone, share[order], 0.0)


def _add_pair(ebm: Any, name: str, term: PairTerm, terms: list[_Term]) -> None:
    """Add a function of two features, spread over all their bins; unknown ones add 0."""
    pair = term.pair
    sides = [terms[pair.first], terms[pair.second]]
    # -1 is the place of the group that stands for no bin.
    places = np.ix_(
        *(
            np.append(groups.astype(int), -1)[side.order]
            for groups, side in zip((pair.first_groups, pair.second_groups), sides, strict=True)
        )
    )
    noise = np.zeros_like(term.values) if term.noise is None else term.noise
    scores, deviations = (np.pad(grid, (0, 1))[places] for grid in (term.values, noise))
    shares = [side.weights / max(side.weights.sum(), 1.0) for side in sides]
    ebm.term_features_.append((pair.first, pair.second))
    ebm.term_names_.append(name)
    ebm.term_scores_.append(scores)
    ebm.standard_deviations_.append(deviations)
    ebm.bin_weights_.append(term.counts.sum() * np.outer(*shares))
    ebm.bagged_scores_.append(scores[np.newaxis])


def _set_terms(ebm: Any, terms: list[_Term]) -> None:
    ebm.n_features_in_ = len(terms)
    ebm.feature_names_in_ = [term.name for term in terms]
    ebm.feature_types_in_ = [term.kind for term in terms]
    ebm.feature_bounds_ = np.array([term.bounds for term in terms], dtype=np.float64)
    ebm.bins_ = [[term.bins] for term in terms]
    ebm.term_features_ = [(k,) for k in range(len(terms))]
    ebm.term_names_ = [term.name for term in terms]
    ebm.term_scores_ = [term.scores for term in terms]
    ebm.standard_deviations_ = [term.noise for term in terms]
    ebm.bin_weights_ = [term.weights for term in terms]
    ebm.bagged_scores_ = [term.scores[np.newaxis] for term in terms]
    ebm.bagged_intercept_ = np.atleast_1d(np.asarray(ebm.intercept_, dtype=np.float64))
    if ebm.link_ == "mlogit":
        ebm.bagged_intercept_ = ebm.bagged_intercept_[np.newaxis]
    ebm.bag_weights_ = np.ones(1)
    ebm.best_iteration_ = np.zeros((1, 1), dtype=np.int64)
    ebm.link_param_ = np.nan
    ebm.has_fitted_ = True


class ClippedRegressor(ExplainableBoostingRegressor):
    """An `ExplainableBoostingRegressor` whose predictions are clipped.

    Attributes
    ----------
    limits_ : (float, float)
        The public range of the target.
    """

    limits_: tuple[float, float]

    def predict(self, X: Any, init_score: Any = None) -> np.ndarray:
        """Return the predicted target, float64 (n,), within the limits."""
        return np.clip(super().predict(X, init_score), *self.limits_)
