"""Simpler models to compare with: linear, forests, bagging, a network, and the toy of the tutorial."""
