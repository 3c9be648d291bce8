"""Datasets: cards, sources, formats, public domains and encodings."""
