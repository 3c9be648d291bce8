"""Verdicts: results against printed cells and claims, against records, and against each other."""
