"""LazyBB: smooth boosting of 1-Rules and small trees over Boolean columns."""

from dprepro.lazybb.estimator import LazyBBClassifier, OneRule, TopDownTree

__all__ = ["LazyBBClassifier", "OneRule", "TopDownTree"]
