"""Logistic regression by noisy gradient descent."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, private
from dprepro.privacy.budget import Division
from dprepro.privacy.sensitivity import ADD_REMOVE

ADJACENCY = ADD_REMOVE

METHODS = [
    private(
        name="dp-gd-logistic",
        title="DP gradient descent (logistic)",
        tasks=frozenset({"binary"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, labels",),
        reference="Song, Chaudhuri, Sarwate 2013, on all rows, under Gaussian privacy",
        cite=("song2013",),
        form="functions",
        build=Made("dprepro.methods.gradient_descent.estimator:DPGradientDescentClassifier"),
        divides=Division.GAUSSIAN,
        defaults={"knots": 10, "steps": 100, "progress": 1.0, "largest_rate": 64.0},
    )
]
