"""diffprivlib 0.6.6 beside newer scikit-learn and SciPy: its models are imported here alone.

The library is not maintained for them: scikit-learn 1.8 has no `multi_class`, 1.9 lacks names that
the library imports, and SciPy 1.18 has no `iprint`. None of these takes part in what is computed.
Nothing of the library is written anew: names that are missing are lent while it is imported, and
arguments that are not taken any more are left out. Beside older releases nothing is changed.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.linear_model import LogisticRegression as _PlainLogisticRegression

__all__ = [
    "DecisionTreeClassifier", "DiffprivlibCompatibilityWarning", "LogisticRegression",
    "PrivacyLeakWarning", "RandomForestClassifier", "Vector", "_FittingTree", "linear_regression",
    "logistic_regression",
]  # fmt: skip

LENT: dict[str, dict[str, Any]] = {
    "sklearn.tree._tree": {"DTYPE": np.float32, "DOUBLE": np.float64},
    # Of PCA, which no method here uses.
    "sklearn.utils.extmath": {"stable_cumsum": np.cumsum},
}
"""What scikit-learn 1.7 has under these names, by the modules that newer releases lack them in."""


@contextmanager
def _lending() -> Iterator[None]:
    """Put each name of `LENT` where it is missing, and take it away again."""
    lent = []
    try:
        for name, values in LENT.items():
            module = importlib.import_module(name)
            for attribute, value in values.items():
                if attribute not in vars(module):
                    setattr(module, attribute, value)
                    lent.append((module, attribute))
        yield
    finally:
        for module, attribute in lent:
            delattr(module, attribute)


with _lending():
    from diffprivlib.mechanisms import Vector
    from diffprivlib.models import (
        DecisionTreeClassifier,
        RandomForestClassifier,
        linear_regression,
        logistic_regression,
    )
    from diffprivlib.models.forest import _FittingTree
    from diffprivlib.models.logistic_regression import LogisticRegression as _LogisticRegression
    from diffprivlib.utils import DiffprivlibCompatibilityWarning, PrivacyLeakWarning


def _quiet_minimum(*arguments: Any, iprint: int = -1, **options: Any) -> Any:
    """Call SciPy's L-BFGS-B without `iprint`, which says what is printed."""
    return optimize.fmin_l_bfgs_b(*arguments, **options)


if "iprint" not in inspect.signature(optimize.fmin_l_bfgs_b).parameters:
    # The library looks there for nothing else.
    logistic_regression.optimize = SimpleNamespace(fmin_l_bfgs_b=_quiet_minimum)


class _WithoutSchemes(_PlainLogisticRegression):
    """scikit-learn's model, whose constructor ignores parameters that it has no more.

    The library gives `penalty` and `multi_class`, and reads neither: it minimises an objective of
    its own, and fits one class against the rest.
    """

    def __init__(self, **given: Any) -> None:
        known = inspect.signature(_PlainLogisticRegression.__init__).parameters
        if "multi_class" not in known:
            # `penalty` without a warning: newer releases say the same by their defaults.
            given = {k: v for k, v in given.items() if k in known and k != "penalty"}
        super().__init__(**given)


class LogisticRegression(_LogisticRegression, _WithoutSchemes):
    """diffprivlib's, made on any scikit-learn: after its own constructor comes the one above."""
