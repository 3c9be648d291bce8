"""Random forests: diffprivlib's with public bounds and labels."""

from dprepro.baselines.forests.estimator import DPRandomForest

__all__ = ["DPRandomForest"]
