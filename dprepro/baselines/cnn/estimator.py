"""The convolutional network that Harder, Bauer, Park (AAAI 2020) compare with, in section 4.1.

The paper states two convolutional layers with 5x5 filters, 20 and 50 channels, each followed by
max-pooling, and a fully connected layer with 500 units. Its footnote 4 names the example for MNIST
of PyTorch (github.com/pytorch/examples, mnist/main.py) as it was in 2019, and Figure 8 counts
431,080 parameters, which are those of the network here. What the paper does not state is as in the
example: rectified linear units, pooling by 2, stochastic gradient descent with momentum, and the
defaults below.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dprepro.baselines.cnn.network import images_of, one_thread, side_of, started
from dprepro.estimators.inputs import checked
from dprepro.estimators.targets import classes_among
from dprepro.estimators.validation import Parametrised, fitting, plain
from dprepro.plain import MODERATE, Integer, Number, OrNone

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
