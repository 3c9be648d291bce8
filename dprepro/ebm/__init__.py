"""Explainable Boosting Machines, with and without differential privacy."""

from dprepro.ebm.dp_ebm import DPEBMClassifier, DPEBMRegressor
from dprepro.ebm.ebm import EBMClassifier, EBMRegressor

__all__ = ["DPEBMClassifier", "DPEBMRegressor", "EBMClassifier", "EBMRegressor"]
