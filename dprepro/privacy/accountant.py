"""The accountant: adds up the answers of a ledger, independently of what calibrated them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from dp_accounting import dp_event, rdp
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

from dprepro.privacy.budget import LARGEST_EXPONENT
from dprepro.privacy.ledger_entry import LedgerEntry
from dprepro.privacy.subsampling import GRAIN, LITTLE_NOISE, loss_grain, sampled_loss

_ORDERS = 1 + np.geomspace(1e-2, 1e5, 32_000)
"""Renyi orders, so dense that the best of them costs less than `ledger.TOLERANCE` too much."""

_LARGEST_AT_FULL_GRAIN = 1000.0
"""Losses that spread further are sorted into wider cells, so that they fit into memory."""

_LARGE_MU_ROOT = 10.0
"""Gaussians above its square, 100, are sorted into wider cells: at mu = 1400 there would be so many
that a composition takes a quarter of a minute."""

_LITTLE_MU = 0.05
"""Gaussians below it are sorted into narrower cells: an epsilon of a row of a unit of many rows can
be as small as a cell of full width."""


def spent_by_losses(entries: tuple[LedgerEntry, ...], delta: float) -> float:
    """Return the epsilon that the distributions of the entries' losses add up to at `delta`."""
    return float(_composed(entries).get_epsilon_for_delta(delta))


# A ledger asks at several values of delta: the stated one, and what the samplers leave of it.
@lru_cache(maxsize=4)
def _composed(entries: tuple[LedgerEntry, ...]) -> pld.PrivacyLossDistribution:
    """Return the distribution of the losses of all entries together."""
    # Adaptive Gaussians compose exactly into one with the squared multipliers added up; joining
    # them first spares the discretisation error of thousands of convolutions.
    mu = math.sqrt(
        sum(e.uses / _plain_multiplier(e) ** 2 for e in entries if _is_plain_gaussian(e))
    )
    # Losses spread over mu^2 and more, or over the pure epsilons: where these are huge, a fixed
    # grain would exhaust the memory.
    rest = [entry for entry in entries if not _is_plain_gaussian(entry)]
    sampled = [entry.noise_multiplier for entry in rest if entry.sampling < 1]
    spread = sum(_largest_loss(entry) * entry.uses for entry in rest if entry.sampling >= 1)
    grain = GRAIN * max(1.0, mu, spread / _LARGEST_AT_FULL_GRAIN)
    if not rest and mu < _LITTLE_MU:
        grain *= mu / _LITTLE_MU
    if not rest:  # the same share of epsilon, which grows as mu^2, however large that is
        grain = max(grain, GRAIN * (mu / _LARGE_MU_ROOT) ** 2)
    grain = max([grain, *map(loss_grain, sampled)])
    losses = [_loss(entry, grain) for entry in rest]
    if mu > 0:
        losses.append(_gaussian_loss(mu, grain))
    total = losses[0]
    for loss in losses[1:]:
        total = total.compose(loss)
    return total


# Fits with one budget have it, whatever their entries are.
@lru_cache(maxsize=8)
def _gaussian_loss(mu: float, grain: float) -> pld.PrivacyLossDistribution:
    return pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=grain)


def _is_plain_gaussian(entry: LedgerEntry) -> bool:
    if entry.mechanism != "gaussian":
        return False
    return entry.sampling >= 1 or entry.noise_multiplier < LITTLE_NOISE


def _plain_multiplier(entry: LedgerEntry) -> float:
    """Return the noise multiplier as if every row took part in every use."""
    # A row that is surely there and becomes another moves the sum twice as far as one that leaves.
    return entry.noise_multiplier / (2 if entry.exchanged else 1)


def spent_by_renyi(entries: tuple[LedgerEntry, ...], delta: float) -> float:
    """Return the epsilon by Renyi DP at `delta`, infinite where an entry states no Renyi loss."""
    accountant = rdp.RdpAccountant(_ORDERS)
    for entry in entries:
        event = _renyi_event(entry)
        if event is None:
            return math.inf
        accountant.compose(event, entry.uses)
    return float(accountant.get_epsilon(delta))


def _renyi_event(entry: LedgerEntry) -> dp_event.DpEvent | None:
    if _is_plain_gaussian(entry):
        return dp_event.GaussianDpEvent(_plain_multiplier(entry))
    if entry.mechanism == "laplace":
        return dp_event.LaplaceDpEvent(entry.noise_multiplier)
    if entry.mechanism == "exponential":
        # The loss of one choice lies in an interval of width eps: eps^2 / 8-zCDP.
        return dp_event.ZCDpEvent(entry.pure_epsilon**2 / 8)
    return None


def _largest_loss(entry: LedgerEntry) -> float:
    """Return the largest finite privacy loss of one use of what is not Gaussian."""
    return entry.budget.epsilon if entry.mechanism == "cited" else entry.pure_epsilon


def _loss(entry: LedgerEntry, grain: float) -> pld.PrivacyLossDistribution:
    if entry.mechanism == "laplace":
        loss = pld.from_laplace_mechanism(
            entry.noise_multiplier, value_discretization_interval=grain
        )
    elif entry.mechanism == "gaussian":
        loss = sampled_loss(entry.noise_multiplier, entry.sampling, grain, entry.exchanged)
    else:
        delta = entry.budget.delta if entry.mechanism == "cited" else 0.0
        loss = _two_point_loss(_largest_loss(entry), delta, grain)
    return loss.self_compose(entry.uses) if entry.uses > 1 else loss


def _two_point_loss(epsilon: float, delta: float, grain: float) -> pld.PrivacyLossDistribution:
    """Return the worst loss under (epsilon, delta): -epsilon with 1 / (1 + e^epsilon), or epsilon.

    Where e^epsilon is too large for a float, all is put at epsilon, which rounds up.
    """
    if epsilon <= LARGEST_EXPONENT:
        return pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, delta),
            value_discretization_interval=grain,
        )
    return pld.PrivacyLossDistribution.create_from_rounded_probability(
        {math.ceil(epsilon / grain): 1.0 - delta}, delta, grain
    )
