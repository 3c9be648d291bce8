"""Reproduce experiments on interpretable models trained with differential privacy."""

__version__ = "0.1.0"
