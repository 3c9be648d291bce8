"""Locally linear maps (LLM), with and without differential privacy."""

from dprepro.llm.estimator import DPLLMClassifier, LLMClassifier

__all__ = ["DPLLMClassifier", "LLMClassifier"]
