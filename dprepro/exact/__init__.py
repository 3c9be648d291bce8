"""Noise without rounding errors: integers, drawn exactly, from bits that nobody can predict."""

from dprepro.exact.bits import Bits
from dprepro.exact.sampler import ExactSampler

__all__ = ["Bits", "ExactSampler"]
