"""DPBoost: gradient boosted trees with pure differential privacy."""

from dprepro.dpboost.estimator import DPBoostClassifier, DPBoostRegressor

__all__ = ["DPBoostClassifier", "DPBoostRegressor"]
