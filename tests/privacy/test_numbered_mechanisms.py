"""Numbered uses: each answered once, with the noise of what its query charges, in every number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import (
    ExponentialMechanism,
    LaplaceMechanism,
    NoiseSource,
    NumberedGaussianMechanism,
    PermuteAndFlipMechanism,
    SampledGaussianMechanism,
    WishartMechanism,
)
from dprepro.privacy.query import BudgetError, Query
from dprepro.privacy.sensitivity import REPLACE_ONE, Sensitivity


class Sum(Query):
    """A sum that moves by what is charged."""

    @property
    def enforced(self) -> float:
        return self.charged


def source() -> NoiseSource:
    return NoiseSource(Ledger(1.0, 1e-5, REPLACE_ONE), 0)


UNIT = 2.0**-30


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int64)


SAMPLED: dict[str, Any] = {"noise_multiplier": 2.0, "uses": 3, "sampling": 0.1, "budget": (1, 1e-5)}


def test_laplace_noise_follows_what_is_charged_and_differs_in_every_number() -> None:
    uses = LaplaceMechanism(source(), (2, 4000), releases="x", epsilon=0.5, sensitivity=2.0, uses=2)
    one, two = (uses.answer(k, zeros(4000), Sum(2.0 * (k + 1), 1.0), UNIT) for k in range(2))
    assert (one.scale, two.scale) == (4.0, 8.0)
    assert np.abs(one.value).mean() == pytest.approx(4.0, rel=0.1)
    assert np.abs(two.value).mean() == pytest.approx(8.0, rel=0.1)
    assert np.unique(np.concatenate([one.value, two.value])).size == 8000


@pytest.mark.parametrize("use", [0, 2, -1])
def test_no_use_is_answered_twice_or_beyond_the_ledger(use: int) -> None:
    uses = LaplaceMechanism(source(), (2, 3), releases="x", epsilon=0.5, sensitivity=1.0, uses=2)
    uses.answer(0, zeros(3), Sum(1.0, 1.0))
    with pytest.raises(BudgetError, match="answered before"):
        uses.answer(use, zeros(3), Sum(1.0, 1.0))


@pytest.mark.parametrize("shape", [(4,), (2, 3), ()])
def test_an_answer_has_no_more_numbers_than_were_entered(shape: tuple[int, ...]) -> None:
    uses = LaplaceMechanism(source(), (2, 3), releases="x", epsilon=0.5, sensitivity=1.0, uses=2)
    with pytest.raises(ValueError, match="ask for fewer"):
        uses.answer(0, zeros(*shape), Sum(1.0, 1.0))


def test_a_choice_follows_what_is_charged_and_is_made_once() -> None:
    settings: dict[str, Any] = {"releases": "x", "epsilon": 0.5, "sensitivity": 1.0, "uses": 3}
    uses = ExponentialMechanism(source(), (3,), **settings)
    release = uses.choose((0,), np.array([0, 10**6]), Sum(3.0, 1.0), 0.5)
    assert release.scale == pytest.approx(3 * 2 * 1.0 / 0.5)
    assert release.value == 1
    scale, state = uses.hand_to_kernel((1,), Sum(3.0, 1.0))
    assert scale == release.scale
    assert state.dtype == np.uint32
    for use in ((0,), (1,), (3,)):
        with pytest.raises(BudgetError):
            uses.choose(use, np.array([0, 1]), Sum(3.0, 1.0))
        with pytest.raises(BudgetError):
            uses.hand_to_kernel(use, Sum(3.0, 1.0))


def test_permute_and_flip_follows_what_is_charged_and_is_made_once() -> None:
    uses = PermuteAndFlipMechanism(
        source(), (2, 4000, 2), releases="x", epsilon=0.5, sensitivity=1.0, uses=2
    )
    utilities = np.tile([0, 6], (4000, 1))  # in halves: 3 apart
    for use, charged in ((0, 1.0), (1, 2.0)):
        release = uses.choose(use, utilities, Sum(charged, 1.0), 0.5)
        assert release.scale == charged * 2 / 0.5
        assert 1 - release.value.mean() == pytest.approx(np.exp(-3 / release.scale) / 2, abs=0.04)
    for use in (0, 2):
        with pytest.raises(BudgetError):
            uses.choose(use, utilities, Sum(1.0, 1.0))


def test_permute_and_flip_makes_no_more_choices_than_were_entered() -> None:
    uses = PermuteAndFlipMechanism(
        source(), (1, 3, 2), releases="x", epsilon=0.5, sensitivity=1.0, uses=1
    )
    for shape in ((4, 2), (3, 3)):
        with pytest.raises(ValueError, match="ask for fewer"):
            uses.choose(0, zeros(*shape), Sum(1.0, 1.0))


def test_sampled_sums_are_answered_as_often_as_there_are_draws() -> None:
    uses = SampledGaussianMechanism(
        source(), (900,), draws=2, releases="x", sensitivity=1.5, **SAMPLED
    )
    one, two = (uses.answer(np.zeros(900, np.float32), Sum(1.5, 1.0)) for _ in range(2))
    assert one.scale == 3.0
    assert one.value.dtype == np.float32
    assert np.std(one.value) == pytest.approx(3.0, rel=0.1)
    assert not np.isin(one.value, two.value).any()
    with pytest.raises(BudgetError, match="entered for 2 sums"):
        uses.answer(np.zeros(900, np.float32), Sum(1.5, 1.0))


def test_a_sampled_sum_has_the_shape_of_its_noise() -> None:
    """Else one number would be released again and again, each time with noise of its own."""
    uses = SampledGaussianMechanism(
        source(), (4, 2), draws=2, releases="x", sensitivity=1.5, **SAMPLED
    )
    with pytest.raises(ValueError, match=r"the shape \(1, 2\), .* the shape \(4, 2\)"):
        uses.answer(np.zeros((1, 2), np.float32), Sum(1.5, 1.0))


def test_numbered_gaussian_noise_follows_what_is_charged_and_is_given_once() -> None:
    uses = NumberedGaussianMechanism(
        source(), (2, 4000), releases="x", noise_multiplier=3.0, uses=2,
        sensitivity=Sensitivity(2.0, 4.0), budget=(1.0, 1e-5),
    )  # fmt: skip
    one, two = (uses.answer(k, zeros(4000), Sum(2.0 * (k + 1), 1.0), UNIT) for k in range(2))
    assert (one.scale, two.scale) == (6.0, 12.0)
    assert one.value.std() == pytest.approx(6.0, rel=0.1)
    assert two.value.std() == pytest.approx(12.0, rel=0.1)
    assert np.unique(np.concatenate([one.value, two.value])).size == 8000
    with pytest.raises(BudgetError):
        uses.answer(1, zeros(4000), Sum(2.0, 1.0))


def test_a_wishart_draw_grows_with_the_square_of_what_is_charged_and_is_given_once() -> None:
    settings: dict[str, Any] = {"releases": "x", "scale": 0.5, "sensitivity": 1.0, "budget": (1, 0)}
    (scale, draw), (scale_twice, draw_twice) = (
        WishartMechanism(source(), 3, **settings).hand_to_kernel(0, Sum(charged, 1.0))
        for charged in (1.0, 2.0)
    )
    assert (scale, scale_twice) == (0.5, 1.0)
    np.testing.assert_allclose(draw_twice, 4 * draw)
    assert np.linalg.eigvalsh(draw).min() > 0
    uses = WishartMechanism(source(), 3, **settings)
    uses.hand_to_kernel(0, Sum(1.0, 1.0))
    with pytest.raises(BudgetError):
        uses.hand_to_kernel(0, Sum(1.0, 1.0))


def test_noise_is_scaled_by_a_mechanisms_own_entry_and_not_by_another() -> None:
    made, pure = source(), {"releases": "x", "epsilon": 0.5, "sensitivity": 2.0, "uses": 1}
    made.enter_laplace(releases="another", epsilon=0.1, sensitivity=100.0)
    asked, number = Sum(2.0, 1.0), zeros(1)
    gaussian: dict[str, Any] = {"releases": "x", "noise_multiplier": 3.0, "budget": (1.0, 1e-5)}
    scales = [
        LaplaceMechanism(made, (1, 1), **pure).answer(0, number, asked).scale,
        ExponentialMechanism(made, (1,), **pure).choose((0,), number, asked).scale,
        PermuteAndFlipMechanism(made, (1, 1, 1), **pure).choose(0, zeros(1, 1), asked).scale,
        NumberedGaussianMechanism(
            made, (1, 1), uses=1, sensitivity=Sensitivity(2.0, 4.0), **gaussian
        ).answer(0, number, asked).scale,
        SampledGaussianMechanism(
            made, (1,), draws=1, sensitivity=2.0, uses=1, sampling=0.1, **gaussian
        )
        .answer(np.zeros(1, np.float32), asked)
        .scale,
        WishartMechanism(made, 1, releases="x", scale=0.5, sensitivity=2.0, budget=(1, 0))
        .hand_to_kernel(0, asked)[0],
    ]  # fmt: skip
    assert scales == [entry.scale for entry in made.ledger.entries[1:]]
