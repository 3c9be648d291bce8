"""The convolutional networks of Harder, Bauer, Park (AAAI 2020), Figure 8, trained with DP-SGD.

The figure counts 26,010 and 431,080 parameters and states epsilon 1.19, and neither layers nor
noise of the first. Both are those of the tutorial for MNIST of TensorFlow Privacy as it was in 2019
(tutorials/mnist_dpsgd_tutorial.py and README.md there): noise 1.3, clipping to 1.5, learning rate
0.25, batches of 256 and 15 epochs are listed there at epsilon 1.19.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.baselines.cnn.curator import (
    GradientQuery,
    ImageCurator,
    Steps,
    enter_planned,
    read_images,
)
from dprepro.baselines.cnn.estimator import ImageClassifier
from dprepro.baselines.cnn.network import NETWORKS, one_thread, started
from dprepro.data.domain import Domain
from dprepro.estimators.sampled import SampledEstimator
from dprepro.estimators.validation import DOMAIN, fitting
from dprepro.plain import EPSILON, INSIDE, MODERATE, Both, Number, OneOf, OrNone


@dataclass(eq=False, repr=False)
class DPConvolutionalNetwork(ImageClassifier, SampledEstimator):
    """A convolutional network by differentially private stochastic gradient descent.

    Formal guarantee: (epsilon, delta)-DP under zero-out, given that the number of rows, pixels and
    labels are public. At each of T = epochs * ceil(n / batch_size) steps a row takes part with
    probability q = batch_size / n, independently (Poisson sampling). Its gradient with respect to
    all parameters is scaled to a norm of at most C = `clip_norm`, so the sum moves by at most C
    when the row is left out, and gets noise N(0, (sigma C)^2) in every coordinate. Sums and noise
    are float32, which the ledger lists: the proof is for real numbers. `dp_accounting` composes.

    The tutorial deals rows out to batches of 256 by shuffling, and its accountant assumes Poisson
    samples. Here rows are sampled as the accountant assumes, so batches differ in size.

    Parameters
    ----------
    epsilon, delta : float
        The stated budget.
    network : {"small", "large"}
        That of the tutorial, or that of `ConvolutionalNetwork`.
    clip_norm : float
        C.
    noise_multiplier : float or None
        sigma; None finds the least that keeps the budget. A given one is held against it by the
        ledger.
    domain : Domain or None
        Its labels, and what of the domain was read from the rows. None takes the labels that occur,
        which epsilon does not cover.
    epochs, batch_size, learning_rate, centre, spread
        See `ConvolutionalNetwork`; `batch_size` is the expected one, and what sums are divided by.
    random_state : int or None
        None seeds the noise from the operating system. An integer makes the fit repeatable: this
        is for experiments only, and the ledger says so.

    Attributes
    ----------
    ledger_ : Ledger
        The noisy releases, what was taken as public, and the spent epsilon.
    figures_ : dict
        ``noise_multiplier``, and ``moments_epsilon``, which the moments accountant states for it.
    classes_, network_
        See `ConvolutionalNetwork`.

    Raises
    ------
    DpreproError
        If PyTorch is not installed.
    ValueError
        As `ConvolutionalNetwork`.
    """

    kinds = MappingProxyType({
        **ImageClassifier.kinds, "epsilon": EPSILON, "delta": Both(INSIDE, Number(1e-14, 1)),
        "network": OneOf(tuple(NETWORKS)), "clip_norm": MODERATE,
        "noise_multiplier": OrNone(MODERATE), "domain": OrNone(DOMAIN),
    })  # fmt: skip

    epsilon: float = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    network: str = "small"
    clip_norm: float = 1.5
    noise_multiplier: float | None = None
    domain: Domain | None = None
    epochs: int = 15
    batch_size: int = 256
    learning_rate: float = 0.25

    @fitting
    def fit(self, X: Any, y: Any) -> DPConvolutionalNetwork:
        """Fit to images X (n, side * side), row by row, and labels y (n,)."""
        private, rows = read_images(self, X, y, self.domain)
        side, classes = self._side(), len(self.classes_)
        with one_thread() as torch:
            steps = self._plan(rows)
            curator = ImageCurator(
                torch, started(torch, self.network, side, classes, 0), private, steps,
                self.ledger_, self.random_state, self._observed,
            )  # fmt: skip
            seed = int(curator.public_generator.integers(2**63))
            self.network_ = started(torch, self.network, side, classes, seed).eval()
            self._descend(torch, curator, steps)
        return self

    def _descend(self, torch: Any, curator: ImageCurator, steps: Steps) -> None:
        """Train `network_` on releases alone."""
        parameters = list(self.network_.parameters())
        theta = torch.nn.utils.parameters_to_vector(parameters).detach().numpy()
        pace = np.float32(self.learning_rate / self.batch_size)
        for _ in range(steps.number):
            # A copy: a listener may keep the query.
            query = GradientQuery(steps.clip, 1.0, theta.copy(), steps.clip)
            theta -= pace * curator.answer(query).value
        torch.nn.utils.vector_to_parameters(torch.from_numpy(theta), parameters)

    def _enter_planned(self, rows: int) -> None:
        enter_planned(self._plan(rows), self.ledger_, self.random_state, self._observed)

    def _plan(self, rows: int) -> Steps:
        """Set the figures and the ledger with its stated epsilon; return the steps."""
        steps = Steps.of(rows, self.batch_size, self.epochs, float(self.clip_norm), 1.0)
        return replace(steps, noise_multiplier=self._calibrate_noise(steps.rate, steps.number))
