"""Simpler models to compare with: linear, forests, bagging, and the toy of the tutorial."""
