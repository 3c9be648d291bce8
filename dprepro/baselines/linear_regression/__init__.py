"""Linear regression on a fair footing, with and without privacy."""

from dprepro.baselines.linear_regression.estimator import (
    DPLinearRegression,
    PlainBoundedLinearRegression,
)

__all__ = ["DPLinearRegression", "PlainBoundedLinearRegression"]
