"""Explainable Boosting Machines, with and without differential privacy."""
