"""What a ledger claims, and so what guesses are held against: GDP, zCDP, or (epsilon, delta)."""

from __future__ import annotations

import math
from enum import Enum

import numpy as np
from scipy.special import expit, ndtr

from dprepro.audit.distinguisher import Bound
from dprepro.privacy.audit import (
    Form,
    Guesses,
    epsilon_lower_bound,
    mu_lower_bound,
    rho_lower_bound,
)
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger, slack
from dprepro.privacy.rounds import rho_of, zcdp_epsilon


class Claim(str, Enum):
    """What holds of all releases together, if the ledger is right. Members equal their wording.

    A claim for all deltas at once allows less than one at a single delta. So the same guesses
    refute more of it.
    """

    GDP = "GDP"
    ZCDP = "zCDP"
    PLAIN = "(epsilon, delta)"

    def bound(self, delta: float, confidence: float) -> Bound:
        """Return the bound on mu, on rho, or on epsilon at `delta`."""

        def found(guesses: Guesses, form: Form) -> np.ndarray:
            if self is Claim.GDP:
                return mu_lower_bound(guesses, form, confidence)
            if self is Claim.ZCDP:
                return rho_lower_bound(guesses, form, confidence)
            return epsilon_lower_bound(guesses, delta, form, confidence)

        return found

    def epsilon(self, found: float, delta: float) -> float:
        """Return the epsilon of such a bound at `delta`."""
        if self is Claim.GDP:
            return epsilon_of(found, delta)
        if self is Claim.ZCDP:
            return zcdp_epsilon(found, delta) if found > 0 else 0.0
        return found

    def least_error(self, epsilon: float, delta: float) -> float:
        """Return the share of wrong guesses of the best distinguisher, if epsilon is spent.

        Under zCDP that of Gaussian noise.

        Raises
        ------
        ValueError
            On an epsilon that is too small for any noise.
        """
        if self is Claim.PLAIN:
            return float(expit(-epsilon))
        is_gaussian = self is Claim.GDP
        mu = mu_of(epsilon, delta) if is_gaussian else math.sqrt(2 * rho_of(epsilon, delta))
        return float(ndtr(-mu / 2))


def claim_of(ledger: Ledger) -> Claim:
    """Return the strongest claim that the ledger's entries make for the stated epsilon."""
    if all(entry.mechanism == "gaussian" and entry.sampling >= 1 for entry in ledger.entries):
        return Claim.GDP
    if ledger.delta > 0 and concentrated_epsilon(ledger) <= ledger.epsilon + slack(ledger.epsilon):
        return Claim.ZCDP
    return Claim.PLAIN


def spent_under(claim: Claim, ledger: Ledger) -> float:
    """Return what the ledger adds up to; under zCDP by zCDP, which says more than other sums."""
    return concentrated_epsilon(ledger) if claim is Claim.ZCDP else ledger.spent_epsilon()


def concentrated_epsilon(ledger: Ledger) -> float:
    """Return the epsilon of all entries by zCDP at the stated delta; infinite where none is."""
    entries = [entry.for_group(ledger.rows_per_unit) for entry in ledger.entries]
    rho = sum(entry.rho * entry.uses for entry in entries)
    return zcdp_epsilon(rho, ledger.delta) if 0 < rho < math.inf else math.inf
