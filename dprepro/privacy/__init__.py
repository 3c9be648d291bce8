"""Mechanisms, calibration, composition and the ledger. Imports `dprepro.exact` only."""
