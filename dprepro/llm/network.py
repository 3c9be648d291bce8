"""The fully connected network that stands beside locally linear maps."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from dprepro.estimators.inputs import check_rows


class Network(MLPClassifier):
    """scikit-learn's fully connected network; that it stops after its epochs is the point."""

    def fit(self, X: Any, y: Any) -> Network:
        """Fit without warning of slow convergence."""
        check_rows(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().fit(X, y)
