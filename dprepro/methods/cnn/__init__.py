"""The convolutional networks beside locally linear maps: an optional extra."""

from __future__ import annotations

from dprepro.data.domain import TaskKind
from dprepro.methods.entry import Guarantee, Made, not_private, private
from dprepro.privacy.budget import Division
from dprepro.privacy.guarantee_status import Noise
from dprepro.privacy.sensitivity import ZERO_OUT

ADJACENCY = ZERO_OUT

REPEATS_NETWORK = 1e-2
"""Rounding of another processor can lead thousands of steps elsewhere. Accuracies of other seeds
differ by 9e-3 on Fashion-MNIST, relative; rounding is taken to do no more."""

_TASKS: frozenset[TaskKind] = frozenset({"binary", "multiclass"})

METHODS = [
    not_private(
        name="cnn",
        title="Convolutional network",
        tasks=_TASKS,
        cite=("harder2020",),
        reference="Harder, Bauer, Park 2020, section 4.1, and PyTorch's example for MNIST",
        build=Made("dprepro.methods.cnn.estimator:ConvolutionalNetwork"),
        repeats_within=REPEATS_NETWORK,
        encoding="unit-interval",
        requires="torch",
        defaults={
            "epochs": 10, "batch_size": 64, "learning_rate": 0.01, "momentum": 0.5, "centre": 0.0,
            "spread": 1.0,
        },
    ),
    private(
        name="dp-cnn",
        title="DP-SGD network",
        tasks=_TASKS,
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, labels, number of rows",),
        cite=("harder2020",),
        reference="Harder, Bauer, Park 2020, Figure 8, and TensorFlow Privacy's tutorial for MNIST",
        build=Made("dprepro.methods.cnn.estimator:DPConvolutionalNetwork"),
        noise=Noise.FLOATING_POINT,
        divides=Division.NONE,
        repeats_within=REPEATS_NETWORK,
        encoding="unit-interval",
        requires="torch",
        defaults={
            "network": "small", "clip_norm": 1.5, "noise_multiplier": None, "epochs": 15,
            "batch_size": 256, "learning_rate": 0.25, "centre": 0.0, "spread": 1.0,
        },
    ),
]  # fmt: skip
