"""The audit's attacks on low bits, on the values of `releases`."""

from __future__ import annotations

from dprepro.audit.side_channels import can_be_laplace, can_be_normal
from tests.attacks.releases import LEARNING_RATE, Release


def can_be_count(release: Release, exact: float) -> bool:
    """Say whether a value can be `exact` plus normal noise."""
    return can_be_normal(release.value, exact, release.scale)


def can_be_leaf(release: Release, exact: float) -> bool:
    """Say whether a value can be the learning rate times `exact` plus Laplace noise."""
    return can_be_laplace(release.value, exact, release.scale, LEARNING_RATE)
