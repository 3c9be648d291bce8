"""The toy DP-EBM of the 2025 replication, which promises nothing."""

from dprepro.baselines.toy_ebm.estimator import ToyDPEBMClassifier, ToyDPEBMRegressor

__all__ = ["ToyDPEBMClassifier", "ToyDPEBMRegressor"]
