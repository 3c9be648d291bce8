"""Explainable Boosting Machines, with and without differential privacy."""

from dprepro.ebm.dp_ebm import DPEBMClassifier, DPEBMRegressor, PrivacyWarning

__all__ = ["DPEBMClassifier", "DPEBMRegressor", "PrivacyWarning"]
