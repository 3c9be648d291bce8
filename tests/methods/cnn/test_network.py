"""The layers of the networks, and images that they take."""

import pytest

from dprepro.methods.cnn.network import LEAST_SIDE, NETWORKS, one_thread, side_of, started


@pytest.mark.parametrize("columns", [784 - 1, 15 * 15])
def test_columns_of_no_square_image_are_refused(columns):
    with pytest.raises(ValueError, match=f"Net reads square images of 16 x 16.*got {columns} col"):
        side_of(columns, "Net")
    assert side_of(784, "Net") == 28


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("side", [LEAST_SIDE, 17, 28, 31])
def test_every_network_takes_images_of_every_size(name, side):
    torch = pytest.importorskip("torch")
    network = started(torch, name, side, 4, seed=0)
    assert network(torch.zeros(2, 1, side, side)).shape == (2, 4)


@pytest.mark.parametrize("name", NETWORKS)
def test_starting_values_follow_from_the_seed_alone(name):
    torch = pytest.importorskip("torch")
    state = torch.get_rng_state()
    first, second, other = (started(torch, name, 16, 2, seed)[0].weight for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_offsets_of_the_small_network_start_at_0_as_in_keras():
    torch = pytest.importorskip("torch")
    network = started(torch, "small", 28, 10, seed=0)
    assert not any(layer.bias.any() for layer in network if hasattr(layer, "bias"))
    bound = (6 / (64 + 16 * 64)) ** 0.5  # of Glorot's uniform values, by the inputs and outputs
    assert 0.95 * bound < network[0].weight.abs().max() <= bound


def test_pytorch_uses_one_thread_meanwhile():
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    with one_thread() as given:
        assert given.get_num_threads() == 1
    assert torch.get_num_threads() == threads
