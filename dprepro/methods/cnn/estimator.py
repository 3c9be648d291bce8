"""The convolutional networks of Harder, Bauer, Park (AAAI 2020), without privacy and with DP-SGD.

Without (section 4.1): two convolutional layers with 5x5 filters, 20 and 50 channels, each followed
by max-pooling, and a fully connected layer with 500 units. Footnote 4 of the paper names the
example for MNIST of PyTorch (github.com/pytorch/examples, mnist/main.py) as it was in 2019, and
Figure 8 counts 431,080 parameters, as the network here has. What the paper does not state is as in
the example: rectified linear units, pooling by 2, stochastic gradient descent with momentum, and
the defaults.

With privacy (Figure 8): the figure counts 26,010 and 431,080 parameters and states epsilon 1.19,
and neither layers nor noise of the first. Both are those of the tutorial for MNIST of TensorFlow
Privacy as it was in 2019 (tutorials/mnist_dpsgd_tutorial.py and README.md there): noise 1.3,
clipping to 1.5, learning rate 0.25, batches of 256 and 15 epochs are listed there at epsilon 1.19.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.estimators.base import SampledEstimator
from dprepro.estimators.inputs import DOMAIN, Parametrised, checked, fitting, plain
from dprepro.estimators.targets import classes_among
from dprepro.methods.cnn import ADJACENCY
from dprepro.methods.cnn.curator import (
    GradientQuery,
    ImageCurator,
    Steps,
    enter_planned,
    read_images,
)
from dprepro.methods.cnn.network import NETWORKS, images_of, one_thread, side_of, started
from dprepro.runtime.arguments import (
    EPSILON,
    INSIDE,
    MODERATE,
    Both,
    Integer,
    Number,
    OneOf,
    OrNone,
)

_ROWS = 1000


@dataclass(eq=False, repr=False, kw_only=True)
class ImageClassifier(Parametrised, ClassifierMixin, BaseEstimator):
    """Parameters and predictions of a network."""

    kinds = MappingProxyType({
        "epochs": Integer(1), "batch_size": Integer(1), "learning_rate": Number(0, 1e15, "[]"),
        "centre": Number(-1e15, 1e15, "[]"), "spread": MODERATE,
        "random_state": OrNone(Integer(0, 2**64 - 1)),
    })  # fmt: skip

    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 0.01
    centre: float = 0.0
    spread: float = 1.0
    random_state: int | None = None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, float64 (n, K)."""
        check_is_fitted(self)
        X = checked(self, X, dtype=np.float32, reset=False)
        with one_thread() as torch, torch.no_grad():
            scores = [self.network_(part) for part in self._images(torch, X).split(_ROWS)]
            probabilities: np.ndarray = torch.softmax(torch.cat(scores).double(), dim=1).numpy()
        return probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of each row, (n,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _images(self, torch: Any, X: np.ndarray) -> Any:
        centre, spread = plain(self, "centre"), plain(self, "spread")
        images = torch.from_numpy(images_of(X, self._side(), centre, spread))
        return images.contiguous(memory_format=torch.channels_last)

    def _side(self) -> int:
        return side_of(self.n_features_in_, type(self).__name__)


@dataclass(eq=False, repr=False, kw_only=True)
class ConvolutionalNetwork(ImageClassifier):
    """Two convolutions, a hidden layer and a softmax, by stochastic gradient descent. Not private.

    The defaults of `epochs`, `batch_size`, `learning_rate` and `momentum` are those of PyTorch's
    example, as the paper states none. One seed gives the same bits with one release of PyTorch on
    one kind of processor, since a fit uses one thread.

    Parameters
    ----------
    epochs, batch_size : int
        Passes over the rows, each in a new order, and rows a step.
    learning_rate, momentum : float
        Of stochastic gradient descent.
    centre, spread : float
        Public constants: pixels enter as (x - centre) / spread.
    random_state : int or None
        Seeds starting values and the order of the rows.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The labels, sorted.
    network_ : torch.nn.Sequential
        Takes float32 images (n, 1, side, side); gives scores (n, K) before the softmax.

    Raises
    ------
    DpreproError
        If PyTorch is not installed.
    ValueError
        On parameters out of range, rows that are no square images of 16 x 16 pixels or more,
        missing or infinite values, or fewer than two classes.
    """

    kinds = MappingProxyType({**ImageClassifier.kinds, "momentum": Number(0, 1e15, "[]")})

    momentum: float = 0.5

    @fitting
    def fit(self, X: Any, y: Any) -> ConvolutionalNetwork:
        """Fit to images X (n, side * side), row by row, and labels y (n,)."""
        X, y = checked(self, X, y, dtype=np.float32, ensure_min_samples=2)
        self._side()
        check_classification_targets(y)
        self.classes_ = classes_among(self, y, None)
        codes = np.searchsorted(self.classes_, y)
        with one_thread() as torch:
            images, labels = self._images(torch, X), torch.from_numpy(codes.astype(np.int64))
            self._train(torch, images, labels)
        return self

    def _train(self, torch: Any, images: Any, labels: Any) -> None:
        generator = torch.Generator()
        if self.random_state is None:
            generator.seed()
        else:
            generator.manual_seed(self.random_state)
        seed = generator.initial_seed()
        network = started(torch, "large", self._side(), len(self.classes_), seed)
        # The layout of the images: convolutions are half as fast again in it.
        network = network.to(memory_format=torch.channels_last)
        optimiser = torch.optim.SGD(
            network.parameters(), lr=self.learning_rate, momentum=self.momentum
        )
        for _ in range(self.epochs):
            order = torch.randperm(len(labels), generator=generator)
            for batch in order.split(self.batch_size):
                optimiser.zero_grad()
                scores = network(images[batch])
                torch.nn.functional.cross_entropy(scores, labels[batch]).backward()
                optimiser.step()
        self.network_ = network.eval()


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
        The noisy answers, what was taken as public, and the spent epsilon.
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
        """Train `network_` on noisy answers alone."""
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
        return replace(
            steps, noise_multiplier=self._calibrate_noise(ADJACENCY, steps.rate, steps.number)
        )
