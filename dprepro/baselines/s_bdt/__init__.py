"""S-BDT: additive boosting of totally random trees on samples of the rows."""

from dprepro.baselines.s_bdt.estimator import SBDTClassifier, SBDTRegressor

__all__ = ["SBDTClassifier", "SBDTRegressor"]
