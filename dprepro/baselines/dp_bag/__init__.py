"""DP-Bag: teachers vote, a student learns."""

from dprepro.baselines.dp_bag.estimator import DPBagClassifier

__all__ = ["DPBagClassifier"]
