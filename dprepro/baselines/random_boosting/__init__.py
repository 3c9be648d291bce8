"""Private gradient boosting with totally random trees, as Maddock et al. 2022 have it."""

from dprepro.baselines.random_boosting.estimator import DPRandomBoostingClassifier

__all__ = ["DPRandomBoostingClassifier"]
