"""Ledgers and their entries, made short."""

from dprepro.privacy.composition import calibrate_two_phases
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT


def gaussian(scale, uses=1, sensitivity=1.0):
    return LedgerEntry("gaussian", "a sum", sensitivity, "L2", scale, uses, (1.0, 1e-6))


def laplace(scale, uses=1):
    return LedgerEntry("laplace", "a sum", 1.0, "L1", scale, uses, (1.0, 0.0))


def cited(epsilon, delta=0.0):
    return LedgerEntry("cited", "a model", 1.0, "L2", 0.0, 1, (epsilon, delta))


def exponential(scale, uses=1):
    return LedgerEntry("exponential", "a choice", 1.0, "max", scale, uses, (1.0, 0.0))


def flipped(scale, uses=1):
    return LedgerEntry("permute-and-flip", "a label", 1.0, "max", scale, uses, (1.0, 0.0))


def ledger(*entries, epsilon=1.0, delta=1e-6):
    return Ledger(epsilon, delta, ZERO_OUT, list(entries))


def dp_ebm_ledger(composition, epsilon, features=14, epochs=300, delta=1e-6):
    noise = calibrate_two_phases(
        composition, epsilon, delta,
        binning_queries=features, boosting_queries=features * epochs, binning_share=0.1,
    )  # fmt: skip
    return ledger(
        gaussian(noise.binning, features),
        gaussian(noise.boosting * 0.01, features * epochs, sensitivity=0.01),
        epsilon=epsilon,
        delta=delta,
    )
