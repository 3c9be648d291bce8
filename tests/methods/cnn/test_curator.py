"""The curator of a private network: what it adds, what it charges, and when it stops."""

import numpy as np
import pytest

from dprepro.methods.cnn.curator import (
    GradientQuery,
    ImageCurator,
    Steps,
    enter_planned,
    read_images,
)
from dprepro.methods.cnn.estimator import DPConvolutionalNetwork
from dprepro.methods.cnn.network import started
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT

ROWS = 40
STEPS = Steps(number=3, rate=0.25, clip=2.0, noise_multiplier=1.5)


def ledger(adjacency=ZERO_OUT):
    return Ledger(epsilon=1.0, delta=1e-5, adjacency=adjacency)


def curator(steps=STEPS, stated=None, brightness=1.0):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, y = brightness * rng.random((ROWS, 256)), rng.integers(0, 2, ROWS)
    private, rows = read_images(DPConvolutionalNetwork(), X, y, None)
    assert rows == ROWS
    network = started(torch, "small", 16, 2, seed=0)
    theta = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy().copy()
    made = ImageCurator(torch, network, private, steps, stated or ledger(), 0, ())
    return made, GradientQuery(2.0, 1.0, theta, 2.0)


def test_steps_count_whole_epochs():
    assert Steps.of(60_000, 256, 15, 1.5, 1.3) == Steps(3525, 256 / 60_000, 1.5, 1.3)
    assert Steps.of(10, 256, 2, 1.5, 1.3).rate == 1.0


def test_answers_have_the_stated_noise_and_end_with_the_entered_steps():
    """Dark images have no gradient but that of the last offsets: what is left is noise."""
    made, query = curator(brightness=0.0)
    found = [made.answer(query) for _ in range(STEPS.number)]
    noise = np.concatenate([release.value[:-2] for release in found])
    assert [release.scale for release in found] == [3.0] * STEPS.number
    assert noise.std() == pytest.approx(3.0, rel=0.02)
    with pytest.raises(BudgetError, match="entered for 3 sums"):
        made.answer(query)


def test_a_larger_clip_norm_gets_more_noise():
    made, query = curator()
    assert made.answer(GradientQuery(4.0, 1.0, query.theta, 4.0)).scale == 6.0
    with pytest.raises(SensitivityError):
        made.answer(GradientQuery(2.0, 1.0, query.theta, 4.0))


def test_its_sensitivities_hold_under_zero_out_alone():
    with pytest.raises(SensitivityError, match="state zero-out"):
        curator(stated=ledger(ADD_REMOVE))


def test_a_planned_ledger_has_the_entry_of_a_fit():
    stated, planned = ledger(), ledger()
    curator(stated=stated)
    enter_planned(STEPS, planned, 0, ())
    assert planned.entries == stated.entries
    assert planned.floating_point == stated.floating_point
