"""The stream of bits: RFC 8439, and uniform whole numbers."""

from itertools import islice

import numpy as np
import pytest
from scipy import stats

from dprepro.privacy.sampling.bits import Bits, below, fill, start_state
from tests.privacy.sampling import reference

KEY = [int.from_bytes(bytes(range(4 * i, 4 * i + 4)), "little") for i in range(8)]


def words_from(state, size):
    out = np.empty(size, np.uint64)
    fill(state, out)
    return out


def test_the_block_of_the_standard():
    """RFC 8439, section 2.3.2."""
    state = start_state(KEY)
    state[12:16] = 1, 0x09000000, 0x4A000000, 0
    assert words_from(state, 8).astype("<u8").tobytes().hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


def test_blocks_follow_each_other_over_the_carry_of_the_counter():
    start = 2**32 - 2
    drawn = words_from(start_state(KEY, counter=start, nonce=5), 32)
    assert drawn.tolist() == list(islice(reference.chacha20(KEY, start, 5), 32))
    assert len(set(drawn.tolist())) == 32


def test_a_seed_repeats_and_no_seed_does_not():
    sequence = np.random.SeedSequence(3)
    assert (Bits(3).words(9) == Bits(sequence).words(9)).all()
    streams = [Bits(3), Bits(4), Bits(None), Bits(None), Bits(sequence.spawn(1)[0])]
    assert len({stream.words(1)[0] for stream in streams}) == len(streams)


def test_the_state_is_not_shown():
    bits = Bits(1)
    assert repr(bits) == "Bits(...)"


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 10, 1000, 2**63 + 1, 2**64 - 1])
def test_numbers_below_a_limit_are_those_of_the_reference(limit):
    state, words = start_state(KEY), reference.chacha20(KEY)
    drawn = [int(below(state, np.uint64(limit))) for _ in range(200)]
    assert drawn == [reference.below(words, limit) for _ in range(200)]
    assert max(drawn) < limit


def test_every_number_below_a_limit_is_as_frequent():
    state = Bits(1).state
    counts = np.bincount([int(below(state, np.uint64(6))) for _ in range(60_000)], minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-4
