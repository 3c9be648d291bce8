"""Linear regression from noisy second moments, with a penalty that adapts to their noise."""

from dprepro.baselines.ada_ssp.estimator import AdaSSPRegressor

__all__ = ["AdaSSPRegressor"]
