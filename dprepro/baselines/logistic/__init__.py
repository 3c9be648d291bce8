"""Logistic regression, with and without privacy, each as published and on a fair footing."""

from dprepro.baselines.logistic.estimator import (
    DPLogisticRegression,
    PlainLogisticRegression,
    StandardizedLogisticRegression,
)

__all__ = ["DPLogisticRegression", "PlainLogisticRegression", "StandardizedLogisticRegression"]
