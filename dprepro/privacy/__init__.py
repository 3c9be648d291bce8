"""Mechanisms, calibration, composition and the ledger. Imports `dprepro.privacy.sampling` only."""
