"""The convolutional network: what it is made of, what it refuses, and that a seed repeats it."""

import sys

import numpy as np
import pytest

from dprepro.methods.cnn.estimator import ConvolutionalNetwork
from dprepro.runtime.errors import DpreproError


def images(rows=96, side=16, seed=0):
    """Images that are brighter in the upper or in the lower half; the class says where."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    X = rng.random((rows, side, side))
    X[y == 1, : side // 2] += 1
    X[y == 0, side // 2 :] += 1
    return X.reshape(rows, -1), np.array(["lower", "upper"])[y]


def test_without_pytorch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DpreproError, match=r"needs PyTorch: pip install 'dprepro\[torch\]'"):
        ConvolutionalNetwork().fit(*images())


@pytest.mark.parametrize("columns", [784 - 1, 15 * 15])
def test_rows_that_are_no_images_are_refused(columns):
    with pytest.raises(ValueError, match=f"square images of 16 x 16 pixels or more.*{columns} col"):
        ConvolutionalNetwork().fit(np.zeros((4, columns)), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", 0), ("batch_size", 2.5), ("learning_rate", -1), ("momentum", "x"), ("spread", 0)],
)
def test_parameters_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        ConvolutionalNetwork(**{name: value}).check_parameters()


def test_it_has_the_parameters_that_the_paper_counts():
    """Figure 8: 431,080 parameters, on images of 28 x 28 pixels of 10 classes."""
    pytest.importorskip("torch")
    model = ConvolutionalNetwork(epochs=1).fit(np.zeros((10, 784)), np.arange(10))
    assert sum(p.numel() for p in model.network_.parameters()) == 431_080


def test_it_learns_and_a_seed_repeats_it_whatever_pytorch_drew_before():
    torch = pytest.importorskip("torch")
    model = ConvolutionalNetwork(epochs=4, batch_size=16, random_state=3).fit(*images())
    X, y = images(seed=1)
    assert model.score(X, y) > 0.95
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    threads = torch.get_num_threads()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    again = ConvolutionalNetwork(epochs=4, batch_size=16, random_state=3).fit(*images())
    np.testing.assert_array_equal(again.predict_proba(X), found)
    other = ConvolutionalNetwork(epochs=4, batch_size=16, random_state=4).fit(*images())
    assert not np.array_equal(other.predict_proba(X), found)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
