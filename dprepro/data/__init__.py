"""Datasets: cards, sources, formats, public domains and encodings."""

from __future__ import annotations

SYNTHETIC_PREFIX = "synthetic-"
"""The beginning of a stand-in's fingerprint: results on synthetic rows can be recognised by it."""

PRIVATE_PREFIX = "private-"
"""The beginning of the fingerprint of private rows; see `dprepro.data.register`."""


def says_private(fingerprint: str) -> bool:
    """Whether a fingerprint is that of private rows, in the training or the test file."""
    return any(part.startswith(PRIVATE_PREFIX) for part in fingerprint.split("+"))
