from __future__ import annotations

import numpy as np
import pytest

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, tracking_noise
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sampling import Bits, ExactSampler
from dprepro.privacy.sensitivity import Sensitivity


def source() -> NoiseSource:
    return NoiseSource(Ledger(1, 1e-6, "zero-out"), None)


def test_a_source_that_entered_its_noise_has_not_drawn_it() -> None:
    with tracking_noise() as may_have_drawn:
        assert not may_have_drawn()
        made = source()
        scale = made.enter_gaussian(
            releases="a sum", noise_multiplier=2.0, sensitivity=Sensitivity(1.0, 2.0), uses=1,
            budget=PrivacyBudget(1, 1e-6),
        )  # fmt: skip
        assert not may_have_drawn()
        made.add_gaussian(np.zeros(1, np.int64), scale, 2.0**-10)
        assert may_have_drawn()


@pytest.mark.parametrize("draw", ["words", "normals", "choice", "permutation"])
def test_every_way_to_draw_is_seen(draw: str) -> None:
    bits = Bits()
    sampler = ExactSampler(bits)
    assert not sampler.has_drawn
    {
        "words": lambda: bits.words(1),
        "normals": lambda: sampler.normals((1,)),
        "choice": lambda: sampler.choice(np.zeros(3, np.int64), 10.0),
        "permutation": lambda: sampler.permutation(3),
    }[draw]()
    assert sampler.has_drawn


def test_noise_that_others_draw_cannot_be_ruled_out() -> None:
    with tracking_noise() as may_have_drawn:
        source().ledger.note_floating_point("a library's sums")
        assert may_have_drawn()


def test_only_fits_of_the_context_are_watched() -> None:
    before = source()
    with tracking_noise() as may_have_drawn:
        before.sampler.permutation(3)
        assert not may_have_drawn()
    source().sampler.permutation(3)
    assert not may_have_drawn()
