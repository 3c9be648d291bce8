"""DP-EBM+: an additive model from few, large, smoothed steps. Ours, not a paper's."""

from dprepro.ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor

__all__ = ["DPEBMPlusClassifier", "DPEBMPlusRegressor"]
