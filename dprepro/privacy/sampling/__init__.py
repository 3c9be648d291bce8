"""Noise without rounding errors: integers, drawn exactly, from bits that nobody can predict."""

from dprepro.privacy.sampling.bits import Bits
from dprepro.privacy.sampling.sampler import ExactSampler

__all__ = ["Bits", "ExactSampler"]
