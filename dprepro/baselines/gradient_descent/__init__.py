"""Logistic regression by noisy gradient descent over all rows."""

from dprepro.baselines.gradient_descent.estimator import DPGradientDescentClassifier

__all__ = ["DPGradientDescentClassifier"]
