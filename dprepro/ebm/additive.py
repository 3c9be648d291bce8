"""What every additive model shares: reading X, adding up shape functions, centring them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from dprepro.data.domain import is_categorical
from dprepro.ebm.binning import FeatureBins


class AdditiveModel(BaseEstimator):
    """An additive model g(E[y]) = intercept + f_1(x_1) + ... + f_K(x_K) with binned features.

    Attributes
    ----------
    bins_ : list of FeatureBins
        How each feature's values become bins.
    shape_functions_ : list of ndarray, float64 (n_bins,)
        f_k, one value a bin: log odds for classification, the target's unit for regression.
    bin_counts_ : list of ndarray, float64 (n_bins,)
        Training rows per bin (noisy where the model is private). f_k has mean zero under them.
    intercept_ : float
        The rest.
    """

    bins_: list[FeatureBins]
    shape_functions_: list[np.ndarray]
    bin_counts_: list[np.ndarray]
    intercept_: float

    def contributions(self, X: Any) -> np.ndarray:
        """Return f_k(x_k) of every row and feature, float64 (n, K): the exact local explanation.

        Values whose bin the model does not know (an unseen category without an "other" bin, a
        missing value where the training data had none) contribute 0.
        """
        check_is_fitted(self)
        frame = read_frame(self, X, reset=False)
        return np.column_stack(
            [
                np.append(shape, 0.0)[bins.encode(frame[name])]
                for name, bins, shape in zip(
                    frame.columns, self.bins_, self.shape_functions_, strict=True
                )
            ]
        )

    def _scores(self, X: Any) -> np.ndarray:
        contributions = self.contributions(X)
        return self.intercept_ + contributions.sum(axis=1)

    def _set_shapes(self, shapes: list[np.ndarray], intercept: float) -> None:
        """Store shape functions, centred by the bin counts; what is taken out joins the intercept.

        Predictions do not change, and no data is read.
        """
        means = [
            float(np.average(shape, weights=counts)) if counts.sum() > 0 else 0.0
            for shape, counts in zip(shapes, self.bin_counts_, strict=True)
        ]
        self.shape_functions_ = [s - m for s, m in zip(shapes, means, strict=True)]
        self.intercept_ = intercept + sum(means)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = False
        return tags


class AdditiveClassifier(ClassifierMixin, AdditiveModel):
    """Binary classification with the logistic link."""

    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log odds of ``classes_[1]``, float64 (n,)."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of both classes, float64 (n, 2)."""
        positive = expit(self._scores(X))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Return the likelier class of each row, (n,)."""
        positive = self._scores(X) > 0
        return self.classes_[positive.astype(int)]

    def _read_labels(self, frame: pd.DataFrame, y: Any) -> np.ndarray:
        """Set ``classes_`` and return y as float32 codes 0, 1.

        Raises
        ------
        ValueError
            On missing or infinite labels, or other than two classes.
        """
        y = _read_y(self, frame, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size != 2:
            raise ValueError(
                f"{type(self).__name__}: Only binary classification is supported and y must hold "
                f"both labels, but it holds {self.classes_.size} "
                f"{'class' if self.classes_.size == 1 else 'classes'}"
            )
        return codes.astype(np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class AdditiveRegressor(RegressorMixin, AdditiveModel):
    """Regression with the identity link."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target, float64 (n,)."""
        return self._scores(X)

    def _read_targets(self, frame: pd.DataFrame, y: Any) -> np.ndarray:
        """Return y as float64 (n,); ValueError if it is missing, infinite or not a number."""
        y = _read_y(self, frame, y)
        try:
            return y.astype(np.float64)
        except ValueError as error:
            raise ValueError(f"{type(self).__name__}: y must hold numbers: {error}") from error


def read_frame(model: BaseEstimator, X: Any, *, reset: bool) -> pd.DataFrame:
    """Return X as a DataFrame: numbers and categories of a DataFrame stay, arrays become numbers.

    Raises
    ------
    ValueError
        On infinite values, no rows or columns, or columns other than those of the fit.
    """
    if not isinstance(X, pd.DataFrame):
        array = validate_data(
            model, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )  # fmt: skip
        return pd.DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])])
    validate_data(model, X, reset=reset, skip_check_array=True)
    if X.shape[1] == 0 or len(X) < (2 if reset else 1):
        raise ValueError(
            f"Found array with {len(X)} sample(s) and {X.shape[1]} feature(s) (shape={X.shape}) "
            f"while a minimum of {2 if reset else 1} sample(s) and 1 feature(s) is required"
        )
    for name in X.columns:
        if not is_categorical(X[name]):
            assert_all_finite(
                X[name].to_numpy(dtype=float, na_value=np.nan), allow_nan=True, input_name=str(name)
            )
    return X


def _read_y(model: BaseEstimator, frame: pd.DataFrame, y: Any) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None."
        )
    y = column_or_1d(y, warn=True)
    check_consistent_length(frame, y)
    if pd.isna(y).any():
        raise ValueError("Input y contains NaN: drop these rows or fill in their target")
    assert_all_finite(y, input_name="y")
    return np.asarray(y)
