"""Mechanisms, calibration, composition and the ledger. Imports nothing else of the package."""
