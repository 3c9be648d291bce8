"""Whether a fit's model can be kept: the largest that it may leave is tried before the first noise.

What a file has room for, and what can be read back, follows from the domain and the settings alone.
So a private fit makes a model with as many bins, digits, pairs and edits as they allow, writes it
as a file has it, and reads that. A fit that draws noise and leaves nothing cannot happen then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy, deepcopy
from itertools import combinations, islice

import numpy as np

from dprepro.additive.bins import FeatureBins
from dprepro.additive.editing import make_all_monotone
from dprepro.additive.file import encoded, model_from_text
from dprepro.additive.intervals import PERCENTS, ResidualSizes
from dprepro.additive.model import AdditiveModel, AdditiveRegressor
from dprepro.additive.pairs import MOST_GROUPS, Pair, PairTerm
from dprepro.additive.units import BEHIND, MOST_POWER, Powers, power_for
from dprepro.data.domain import Domain
from dprepro.errors import DpreproError
from dprepro.estimators.contract import ledger_of
from dprepro.files import MEBIBYTE
from dprepro.privacy.ledger import Ledger, LedgerEntry

_WHOLE = 2.0**30
"""Largest whole number of `units`."""

_ROOM = 2.0**60
"""No function, level or noise is so many times the size of the target's bounds, or of 1."""

LARGEST_KEPT_TARGET = 2.0**MOST_POWER * _WHOLE / _ROOM
"""About 7.9e261: the largest bound of a target that leaves room for the numbers of its models."""

ALLOWANCE = MEBIBYTE
"""Bytes for what a file says beside the model: ledger, origin, names of target and classes."""

_REHEARSAL: ContextVar[Callable[[AdditiveModel], None] | None] = ContextVar(
    "rehearsal", default=None
)


@contextmanager
def rehearsing(callback: Callable[[AdditiveModel], None]) -> Iterator[None]:
    """Let `callback` have the largest model of every private fit of this context, before its noise.

    What it raises ends the fit, which has then spent nothing.
    """
    token = _REHEARSAL.set(callback)
    try:
        yield
    finally:
        _REHEARSAL.reset(token)


def require_kept(
    model: AdditiveModel,
    domain: Domain,
    bins: Sequence[FeatureBins],
    noise: Sequence[tuple[float, int]],
    monotone: Mapping[str, str] | None = None,
    pairs: int = 0,
) -> None:
    """Refuse a fit whose model may be none that a file can hold. No row is read.

    Parameters
    ----------
    model
        About to be fitted: it has its parameters, its ledger and, for labels, its classes.
    bins
        Of every feature as many as it may get.
    noise
        Noise multiplier and uses of each Gaussian mechanism that is going to be in the ledger.
    monotone
        The features that are going to be made so.
    pairs
        Most functions of pairs.

    Raises
    ------
    ValueError
        If it cannot be kept; the message says why and what to change.
    """
    largest = _largest(model, domain, bins, pairs, monotone or {})
    try:
        make_all_monotone(largest, monotone)
    except DpreproError as error:
        raise ValueError(f"monotone: {error}") from error
    try:
        model_from_text(encoded(largest, "the model", spare=ALLOWANCE), "the model")
    except (DpreproError, TypeError) as error:
        raise ValueError(f"no file could hold the model, so it is not fitted: {error}") from error
    if rehearse := _REHEARSAL.get():
        ledger = ledger_of(largest)
        if ledger is not None and not ledger.entries:
            ledger.entries = [_entry(ledger, *each) for each in noise]
        rehearse(largest)


def _entry(ledger: Ledger, multiplier: float, uses: int) -> LedgerEntry:
    return LedgerEntry("gaussian", "planned", 1.0, "L2", multiplier, uses, ledger.budget)


def _largest(
    model: AdditiveModel,
    domain: Domain,
    bins: Sequence[FeatureBins],
    pairs: int,
    monotone: Mapping[str, str],
) -> AdditiveModel:
    """Return a copy of a model with all bins, each number with as many digits as a file writes."""
    found = copy(model)
    size = _size_of_target(domain)
    power = power_for([np.array([size * _ROOM])])
    most, least = math.ldexp(_WHOLE, power), math.ldexp(1 - _WHOLE, power)
    found.powers_ = Powers(power, power, 0)
    found.intercept_ = least
    found.bins_ = list(bins)
    found.bin_counts_ = [np.full(each.n_bins, _WHOLE) for each in bins]
    noise = math.ldexp(most, BEHIND)
    found.shape_noise_ = [np.full(each.n_bins, noise) for each in bins]
    names = [str(each.feature.name) for each in bins]
    # Not as `monotone` asks, with two bins already, so that each edit changes something.
    lowest = [0 if monotone.get(name) == "decreasing" else 1 for name in names]
    found.shape_functions_ = [
        np.where(np.arange(each.n_bins) % 3 == place, -most, least)
        for each, place in zip(bins, lowest, strict=True)
    ]
    couples = combinations(sorted(range(len(bins)), key=lambda k: -len(names[k])), 2)
    found.pairs_ = tuple(
        _pair(sorted(couple), bins, least, noise) for couple in islice(couples, pairs)
    )
    found.edits_ = []
    if isinstance(found, AdditiveRegressor):
        lower, upper = (float(bound) for bound in domain.target)
        found.range_ = (lower, upper)
        found.residual_sizes_ = ResidualSizes(
            np.array(PERCENTS), np.full(len(PERCENTS), most), power
        )
    if (ledger := ledger_of(model)) is not None:
        found.ledger_ = deepcopy(ledger)
    return found


def _size_of_target(domain: Domain) -> float:
    """Return how large targets can be, at least 1: log odds have no unit. Raises ValueError."""
    if any(isinstance(value, str) for value in domain.target):
        return 1.0
    size = max(abs(float(bound)) for bound in domain.target)
    if size > LARGEST_KEPT_TARGET:
        raise ValueError(
            f"the target's bounds go beyond {LARGEST_KEPT_TARGET:.2g} in size, so a model file has "
            "no room for its functions and their noise: divide the target and its bounds by a "
            "constant"
        )
    return max(size, 1.0)


def _pair(
    couple: Sequence[int], bins: Sequence[FeatureBins], least: float, noise: float
) -> PairTerm:
    first, second = (np.arange(bins[k].n_bins, dtype=np.uint8) % MOST_GROUPS for k in couple)
    pair = Pair(couple[0], couple[1], first, second)
    return PairTerm(
        pair, np.full(pair.shape, least), np.full(pair.shape, _WHOLE), np.full(pair.shape, noise)
    )
