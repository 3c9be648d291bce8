"""Every key and seed that must stay secret comes from the operating system alone."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest

from dprepro.data.dataset import KEY_BYTES, bounding_key
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sampling.bits import Bits
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.rows.answer_log import UnkeptAnswers

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")


@contextmanager
def system_gives(byte: int, asked: list[int]) -> Iterator[None]:
    """Let the system's random bytes be known, and all clocks stand still."""

    def bytes_of(number: int) -> bytes:
        asked.append(number)
        return bytes((byte + len(asked) * 7 + k) % 256 for k in range(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", bytes_of)
        patch.setattr(random, "_urandom", bytes_of)  # what `secrets` draws from
        ticks = count()
        for name in CLOCKS:
            patch.setattr(time, name, lambda: next(ticks))
        yield


def source() -> NoiseSource:
    return NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), None)


SECRETS: dict[str, Callable[[], Any]] = {
    "key of exact noise": lambda: Bits().words(8).tobytes(),
    "exact noise of a fit": lambda: source().sampler.gaussian(2.0**40, (8,)).tobytes(),
    "noise in floating point": lambda: source().generator.bytes(32),
    "public choices of a fit": lambda: source().public_generator.bytes(32),
    "rows of a unit": bounding_key,
    "public choices that are kept": lambda: UnkeptAnswers().public_entropy.to_bytes(16, "big"),
}


@pytest.mark.parametrize("make", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_what_the_system_gives_whatever_the_clock_says(make: Any) -> None:
    found, asked = [], list[list[int]]()
    for byte in (1, 1, 2):
        asked.append([])
        with system_gives(byte, asked[-1]):
            found.append(make())
    assert found[0] == found[1] != found[2]
    assert sum(asked[0]) >= 16


@pytest.mark.parametrize("make", SECRETS.values(), ids=SECRETS)
def test_no_two_are_the_same(make: Any) -> None:
    assert len({make() for _ in range(5)}) == 5


def test_keys_have_256_bits_of_the_systems() -> None:
    for make in (lambda: Bits().state[4:12].tobytes(), bounding_key):
        asked: list[int] = []
        with system_gives(1, asked):
            key = make()
        assert len(key) == KEY_BYTES
        assert asked == [KEY_BYTES]
        assert key == bytes(8 + k for k in range(KEY_BYTES))


def test_a_seed_needs_nothing_of_the_system() -> None:
    asked: list[int] = []
    with system_gives(1, asked):
        assert (Bits(3).words(4) == Bits(3).words(4)).all()
        assert bounding_key(3) == bounding_key(3)
        generator = NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), 3).generator
    assert asked == []
    assert generator.random() == np.random.default_rng(3).random()
