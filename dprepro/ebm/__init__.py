"""Explainable Boosting Machines, with and without differential privacy."""

from dprepro.ebm.dp_ebm import DPEBMClassifier, DPEBMRegressor
from dprepro.ebm.dp_ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.ebm.ebm import EBMClassifier, EBMRegressor
from dprepro.ebm.inputs import PrivacyWarning

__all__ = [
    "DPEBMClassifier",
    "DPEBMPlusClassifier",
    "DPEBMPlusRegressor",
    "DPEBMRegressor",
    "EBMClassifier",
    "EBMRegressor",
    "PrivacyWarning",
]
