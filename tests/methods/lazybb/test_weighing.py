"""The weights of each round, and what the two scales of margins mean."""

from __future__ import annotations

import _pydecimal
from decimal import Decimal, localcontext

import numpy as np
import pytest

from dprepro.methods.lazybb import weights as weighing
from dprepro.methods.lazybb.weights import Weighing, _measure_of
from dprepro.privacy.smooth_sensitivity import TOTAL, largest_weight


def test_the_first_weights_are_equal() -> None:
    for margin in ("signed", "agreements"):
        weights = Weighing(0.5, 0.3, margin).weights(np.zeros(8, np.int64), 0)
        assert weights.dtype == np.int64
        assert (weights == TOTAL // 8).all()


def test_weights_fall_with_the_margin_and_are_capped() -> None:
    margins = np.arange(-2, 11, 2)
    weights = Weighing(0.7, 0.4).weights(margins, 10)
    assert (np.diff(weights) <= 0).all()
    assert weights[0] == largest_weight(0.4, 7)
    free = weights[weights < weights[0]]
    assert free.size > 3
    np.testing.assert_allclose(np.diff(np.log(free)), -0.7 * 2)


def test_counting_agreements_halves_the_learning_rate() -> None:
    odds = [0.05, 0.1, 0.15, 0.2, 0.2, 0.3]
    margins = np.random.default_rng(0).choice(np.arange(-5, 6, 2), 50, p=odds)
    counted = Weighing(0.8, 0.3, "agreements").weights(margins, 5)
    halved = Weighing(0.4, 0.3, "signed").weights(margins, 5)
    np.testing.assert_allclose(counted, halved)


def test_weights_far_below_the_smallest_double_are_told_apart() -> None:
    weights = Weighing(1.0, 0.5).weights(np.array([0, 5000, 5001, 5001]), 5001) / TOTAL
    share = np.exp([0.0, -1.0, -1.0])
    np.testing.assert_allclose(weights, [0.5, *(0.5 * share / share.sum())])


@pytest.mark.parametrize("rate", [1e300, 1e6, 1e-300, 0.0])
def test_learning_rates_out_of_reach_of_exp_do_no_harm(rate: float) -> None:
    weights = Weighing(rate, 0.4).weights(np.array([-3, -3, 1, 1, 3, 3]), 3)
    assert (np.diff(weights) <= 0).all()
    assert TOTAL - 6 < weights.sum() <= TOTAL
    assert (weights[0] == weights[-1]) == (rate < 1)


@pytest.mark.parametrize("halves", [-7, 0, 1, 2, 90, 4001])
@pytest.mark.parametrize("rate", [0.1, 0.45, 2.0])
def test_measures_are_the_exponential_to_ninety_bits(rate: float, halves: int) -> None:
    density = 0.35
    mantissa, shift = _measure_of(rate, density, halves)
    with localcontext() as context:
        context.prec = 80
        exact = min(Decimal(1), Decimal(density) * (-Decimal(rate) * halves / 2).exp())
        off = 1 - mantissa / Decimal(2) ** shift / exact
    assert 0 <= off + Decimal(2) ** -120 < Decimal(2) ** -90


def test_a_measure_does_not_depend_on_the_context_of_the_caller() -> None:
    expected = _measure_of(0.45, 0.35, 31)
    _measure_of.cache_clear()
    with localcontext() as context:
        context.prec = 3
        assert _measure_of(0.45, 0.35, 31) == expected


@pytest.mark.parametrize("halves", [-3, 1, 7, 90])
def test_another_decimal_arithmetic_gives_the_same_measures(
    halves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the standard library in Python alone; the usual one is in C."""
    assert _pydecimal.Decimal is not Decimal
    expected = _measure_of(0.45, 0.35, halves)
    monkeypatch.setattr(weighing, "Decimal", _pydecimal.Decimal)
    monkeypatch.setattr(weighing, "_DECIMAL", _pydecimal.Context(prec=weighing._DECIMAL.prec))
    monkeypatch.setattr(weighing, "_LARGEST", _pydecimal.Decimal(int(weighing._LARGEST)))
    assert _measure_of.__wrapped__(0.45, 0.35, halves) == expected


def test_weights_are_those_of_the_margins_in_any_order() -> None:
    rng = np.random.default_rng(0)
    margins, order = rng.integers(-9, 10, 500), rng.permutation(500)
    weighing = Weighing(0.45, 0.35)
    np.testing.assert_array_equal(
        weighing.weights(margins, 9)[order], weighing.weights(margins[order], 9)
    )


def test_weights_are_the_same_on_every_machine() -> None:
    """Recorded: no rounding of a processor or of a library takes part."""
    weights = Weighing(0.45, 0.35).weights(np.array([-3, -1, -1, 1, 1, 3, 3, 3]), 3)
    assert [int(w) for w in np.unique(weights)] == [
        37143428412949667, 91358092083526444, 224704647518004742, 409365740164935598,
    ]  # fmt: skip
