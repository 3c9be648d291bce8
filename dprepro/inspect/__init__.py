"""Fit models of a config to look at: their ledgers, shapes, votes and explanations."""
