"""Sums of clipped gradients, compared with one backward pass a row by PyTorch itself."""

import numpy as np
import pytest

from dprepro.methods.cnn.curator import ClippedGradients
from dprepro.methods.cnn.network import NETWORKS, started

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
