"""A privacy level, the epsilon of a row or column, in words."""

from __future__ import annotations

import math

from dprepro.privacy.budget import PrivacyBudget

NON_PRIVATE = "Non-Private"


def level(epsilon: float) -> str:
    """Return the heading of a level's row or column: ``"0.5"``, or ``"Non-Private"``."""
    return NON_PRIVATE if math.isinf(epsilon) else f"{epsilon:g}"


def level_in_words(epsilon: float) -> str:
    """Return a level inside a sentence: ``"epsilon 0.5"``, or ``"non-private"``."""
    return str(PrivacyBudget(epsilon, 0.0))


def with_level(title: str, epsilon: float) -> str:
    """Return the title of a curve or model at a level: ``"EBM"``, or ``"DP-EBM, ε=0.5"``."""
    return PrivacyBudget(epsilon, 0.0).name(title)
