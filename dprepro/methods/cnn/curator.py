"""The curator of a private network: images stay here, noisy sums of clipped gradients come out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import checked
from dprepro.estimators.targets import classes_among
from dprepro.methods.cnn.network import images_of, side_of
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource, SampledGaussianMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import NoisyAnswer, Query
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.subsampling import poisson_sample

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


@dataclass(frozen=True, eq=False)
class GradientQuery(Query):
    """The sum of the gradients of the next sample's rows, each clipped.

    Attributes
    ----------
    theta
        Where gradients are taken: float32 (P,), as is the answer.
    clip
        C: a longer gradient of a row, over all of theta, is scaled to this norm.
    """

    theta: np.ndarray
    clip: float

    @property
    def enforced(self) -> float:
        """C: under zero-out a row that leaves takes its own clipped gradient along."""
        return self.clip


@dataclass(frozen=True)
class Steps:
    """How often rows are sampled, and the noise.

    Attributes
    ----------
    number
        T, of all steps.
    rate
        q: how likely a row is in a sample.
    clip
        C, what the noise is a multiple of.
    noise_multiplier
        sigma.
    """

    number: int
    rate: float
    clip: float
    noise_multiplier: float

    @classmethod
    def of(cls, rows: int, batch_size: int, epochs: int, clip: float, sigma: float) -> Steps:
        """Return the steps of training: samples have `batch_size` rows in the mean."""
        number = epochs * math.ceil(rows / batch_size)
        return cls(number, min(1.0, batch_size / rows), clip, sigma)

    def enter(self, source: NoiseSource, shape: tuple[int, ...]) -> SampledGaussianMechanism:
        """Enter their sums in the ledger of `source`."""
        return SampledGaussianMechanism(
            source, shape, releases="sum of a sample's clipped gradients, each step",
            noise_multiplier=self.noise_multiplier, sensitivity=self.clip, draws=self.number,
            uses=self.number, sampling=self.rate, budget=source.ledger.budget,
        )  # fmt: skip


def read_images(
    model: Any, X: Any, y: Any, domain: Domain | None
) -> tuple[Private[tuple[np.ndarray, np.ndarray]], int]:
    """Return images, float32 (n, 1, side, side), and codes, int64 (n,), wrapped, and n.

    n is public. Sets ``classes_``: the labels of the domain, or without one those that occur.

    Raises
    ------
    ValueError
        On missing or infinite values, rows that are no square images, fewer than two classes, or
        labels that are not the domain's.
    """
    X, y = checked(model, X, y, dtype=np.float32, ensure_min_samples=2)
    check_classification_targets(y)
    model.classes_ = classes_among(model, y, None if domain is None else domain.target)
    codes = np.searchsorted(model.classes_, y).astype(np.int64)
    side = side_of(model.n_features_in_, type(model).__name__)
    return Private((images_of(X, side, model.centre, model.spread), codes)), len(y)


class ImageCurator(Curator):
    """Holds the images of a fit; answers for one sample after the other.

    Parameters
    ----------
    torch, network
        PyTorch, and a network to compute with. Its parameters are overwritten.
    rows
        As `read_images` returns them.
    steps
        Says how rows are sampled.
    ledger, seed, observed
        See `Curator`.
    """

    relations = frozenset({ZERO_OUT})

    def __init__(
        self, torch: Any, network: Any, rows: Private[tuple[np.ndarray, np.ndarray]],
        steps: Steps, ledger: Ledger, seed: int | None, observed: Sequence[str],
    ) -> None:  # fmt: skip
        super().__init__(ledger, seed, observed)
        images, codes = map(torch.from_numpy, rows.open())
        parameters = sum(p.numel() for p in network.parameters())
        self._uses = steps.enter(self._source, (parameters,))
        self._rate = steps.rate
        images = images.contiguous(memory_format=torch.channels_last)
        self._exact = Private((ClippedGradients(torch, network, images, codes), len(codes)))

    def answer(self, query: GradientQuery) -> NoisyAnswer:
        """Return the noisy sum over the next sample, float32 (P,); its size stays secret.

        Raises
        ------
        BudgetError
            If all samples were summed.
        """
        gradients, rows = self._exact.open()
        sample = poisson_sample(self._source.generator, rows, self._rate)
        exact = gradients.sum(sample, query.theta, query.clip)
        return self._announce(query, self._uses.answer(exact, query))


def enter_planned(steps: Steps, ledger: Ledger, seed: int | None, observed: Sequence[str]) -> None:
    """Write into a ledger what a curator would write, without rows."""
    ledger.note_observed(observed)
    steps.enter(NoiseSource(ledger, seed), ())
