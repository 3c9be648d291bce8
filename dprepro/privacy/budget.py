"""A privacy budget: the (epsilon, delta) of a guarantee, and its one wording."""

from __future__ import annotations

import math
from typing import NamedTuple

from dprepro.runtime.arguments import Number


class PrivacyBudget(NamedTuple):
    """The (epsilon, delta) of differential privacy; an infinite epsilon promises nothing.

    A pair of floats: ``epsilon, delta = budget``.

    Attributes
    ----------
    epsilon
        Bounds the privacy loss: at least 0, infinite for no privacy.
    delta
        In [0, 1); 0 is pure differential privacy.

    Examples
    --------
    >>> print(PrivacyBudget(0.5, 0), PrivacyBudget(2, 1e-6), PrivacyBudget(math.inf, 0), sep="; ")
    epsilon 0.5; (epsilon 2, delta 1e-06); non-private
    >>> PrivacyBudget(2, 1e-6).name("dp-ebm-gdp")
    'dp-ebm-gdp, ε=2'
    >>> PrivacyBudget(math.inf, 0).name("ebm")
    'ebm'
    """

    epsilon: float
    delta: float

    def plain(self, whose: str = "") -> PrivacyBudget:
        """Return both as plain numbers; ValueError, of what it is `whose`, out of their range."""
        epsilon = Number(0, math.inf, "[]")(f"epsilon{whose}", self.epsilon)
        return PrivacyBudget(epsilon, Number(0, 1, "[]")(f"delta{whose}", self.delta))

    @property
    def is_finite(self) -> bool:
        """Whether it promises anything."""
        return math.isfinite(self.epsilon)

    def name(self, label: str) -> str:
        """Return a method's label with the privacy level it ran at, short, for titles."""
        return f"{label}, ε={self.epsilon:g}" if self.is_finite else label

    def __str__(self) -> str:
        if not self.is_finite:
            return "non-private"
        if self.delta == 0:
            return f"epsilon {self.epsilon:g}"
        return f"(epsilon {self.epsilon:g}, delta {self.delta:g})"
