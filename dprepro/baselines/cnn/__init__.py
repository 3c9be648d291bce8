"""A small convolutional network for images, without privacy: needs the extra `torch`."""

from dprepro.baselines.cnn.estimator import ConvolutionalNetwork

__all__ = ["ConvolutionalNetwork"]
