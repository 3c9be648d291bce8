"""DP linear regression as published: the Wishart mechanism, since withdrawn as not private."""

from dprepro.baselines.wishart_regression.curator import GAPS
from dprepro.baselines.wishart_regression.estimator import WishartLinearRegression

__all__ = ["GAPS", "WishartLinearRegression"]
