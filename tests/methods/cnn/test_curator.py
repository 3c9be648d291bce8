"""The curator of a private network: what it adds, what it charges, and when it stops."""

import numpy as np
import pytest

from dprepro.methods.cnn.curator import (
    ClippedGradients,
    GradientQuery,
    ImageCurator,
    Steps,
    enter_planned,
    read_images,
)
from dprepro.methods.cnn.estimator import DPConvolutionalNetwork
from dprepro.methods.cnn.network import NETWORKS, started
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


torch = pytest.importorskip("torch")


def problem(name, rows=5):
    network = started(torch, name, 16, 3, seed=0)
    theta = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy().copy()
    rng = np.random.default_rng(1)
    images = torch.from_numpy(rng.random((rows, 1, 16, 16), dtype=np.float32))
    return network, theta, images, torch.from_numpy(rng.integers(0, 3, rows))


def each(network, images, labels):
    """Return the gradient of every row, float64 (n, P)."""
    found = []
    for image, label in zip(images, labels, strict=True):
        loss = torch.nn.functional.cross_entropy(network(image[None]), label[None])
        parts = torch.autograd.grad(loss, list(network.parameters()))
        found.append(torch.cat([part.flatten() for part in parts]).double().numpy())
    return np.array(found)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("clip", [1e-3, 1.5, 1e6])
def test_the_sum_is_that_of_clipped_gradients(name, clip):
    network, theta, images, labels = problem(name)
    rows = each(network, images, labels)
    scales = np.minimum(1, clip / np.linalg.norm(rows, axis=1))
    exact = ClippedGradients(torch, network, images, labels)
    found = exact.sum(np.array([0, 2, 4]), theta, clip)
    expected = (scales[:, None] * rows)[[0, 2, 4]].sum(axis=0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5 * np.abs(expected).max())
    assert not exact.sum(np.array([], dtype=int), theta, clip).any()


@pytest.mark.parametrize("name", NETWORKS)
def test_no_row_moves_a_sum_by_more_than_the_clip_norm(name):
    network, theta, images, labels = problem(name, rows=20)
    exact, rows = ClippedGradients(torch, network, images * 50, labels), np.arange(20)
    whole = exact.sum(rows, theta, 0.5).astype(float)
    for left_out in rows:
        without = exact.sum(np.delete(rows, left_out), theta, 0.5).astype(float)
        assert np.linalg.norm(whole - without) <= 0.5


def test_a_row_whose_gradient_float32_cannot_hold_adds_nothing_and_spoils_no_other():
    network, theta, images, labels = problem("small")
    images[1] = 1e30
    exact = ClippedGradients(torch, network, images, labels)
    whole = exact.sum(np.arange(5), theta, 1.5)
    np.testing.assert_allclose(whole, exact.sum(np.array([0, 2, 3, 4]), theta, 1.5), atol=1e-6)
    assert np.isfinite(whole).all()
    assert not exact.sum(np.array([1]), theta, 1.5).any()
