"""Small convolutional networks for images, without privacy and with: need the extra `torch`."""

from dprepro.baselines.cnn.estimator import ConvolutionalNetwork
from dprepro.baselines.cnn.private import DPConvolutionalNetwork

__all__ = ["ConvolutionalNetwork", "DPConvolutionalNetwork"]
