"""Sums of clipped gradients of a convolutional network: private wherever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROWS = 64
"""At a time: each row has a gradient of its own for every filter."""

_SHRUNK = 1 - 1e-5
"""Norms come out of float32 sums: with this factor a clipped gradient is no longer than stated."""


class ClippedGradients:
    """Labelled images, and sums of their gradients over one Poisson sample after the other.

    Parameters
    ----------
    torch
        PyTorch.
    network
        A `torch.nn.Sequential`; its parameters are overwritten by those that sums are asked for.
    images, labels
        Tensors, float32 (n, 1, side, side) and int64 (n,), codes 0..K-1.
    """

    def __init__(self, torch: Any, network: Any, images: Any, labels: Any) -> None:
        self._torch, self._network = torch, network
        self._images, self._labels = images, labels

    def sum(self, rows: np.ndarray, theta: np.ndarray, clip: float) -> np.ndarray:
        """Return the sum over some rows, float32 (P,), each scaled to a norm of at most `clip`.

        A row whose gradient float32 cannot hold adds 0.

        Parameters
        ----------
        rows
            Their numbers, int64 (m,); there may be none.
        theta
            All weights and offsets, in PyTorch's order, float32 (P,).
        """
        torch, network = self._torch, self._network
        torch.nn.utils.vector_to_parameters(torch.from_numpy(theta), network.parameters())
        total = torch.zeros(theta.size)
        for part in torch.from_numpy(rows).split(_ROWS):
            total += self._of_part(self._images[part], self._labels[part], clip)
        found: np.ndarray = total.numpy()
        return found

    def _of_part(self, images: Any, labels: Any, clip: float) -> Any:
        """Return the clipped sum of few rows, a tensor (P,).

        The gradient of a layer's weights is the outer product of what enters it and of the
        derivative of the loss by what leaves it, summed over the places of an image.
        """
        torch, value, passed = self._torch, images, []
        for layer in self._network:
            entered, value = value, layer(value)
            if value.dim() == 4:
                value = value.contiguous(memory_format=torch.channels_last)
            if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
                passed.append((layer, entered.detach(), value))
        loss = torch.nn.functional.cross_entropy(value, labels, reduction="sum")
        derivatives = torch.autograd.grad(loss, [left for *_, left in passed])
        squares, sums = torch.zeros(len(labels)), []
        for (layer, entered, _), derivative in zip(passed, derivatives, strict=True):
            of_layer = self._of_linear if entered.dim() == 2 else self._of_convolution
            for norms, weighted in of_layer(layer, entered, derivative):
                squares += norms**2
                sums.append(weighted)
        kept = squares.isfinite()
        if not kept.all():
            return self._of_part(images[kept], labels[kept], clip) if kept.any() else 0.0
        factors = clip * _SHRUNK / squares.sqrt().clamp(min=clip)
        return torch.cat([weighted(factors).flatten() for weighted in sums])

    def _of_linear(self, layer: Any, entered: Any, derivative: Any) -> list[Any]:
        """Return, for weights and offsets, each row's norm and what sums rows by factors (n,)."""
        norms, offsets = self._norms(derivative), lambda factors: factors @ derivative
        weights = lambda factors: (derivative * factors[:, None]).T @ entered  # noqa: E731
        return [(norms * self._norms(entered), weights), (norms, offsets)]

    def _of_convolution(self, layer: Any, entered: Any, derivative: Any) -> list[Any]:
        """Return the same for a convolution, whose gradients are sums over places."""
        patches = self._torch.nn.functional.unfold(
            entered, layer.kernel_size, padding=layer.padding, stride=layer.stride
        )
        by_place = derivative.flatten(2).transpose(1, 2)
        weights, offsets = patches @ by_place, by_place.sum(1)  # (n, I, O) and (n, O)
        inputs = weights.shape[1]
        return [
            (
                self._norms(weights.flatten(1)),
                lambda factors: (factors @ weights.flatten(1)).view(inputs, -1).T,
            ),
            (self._norms(offsets), lambda factors: factors @ offsets),
        ]

    def _norms(self, numbers: Any) -> Any:
        return self._torch.linalg.vector_norm(numbers, dim=1)
