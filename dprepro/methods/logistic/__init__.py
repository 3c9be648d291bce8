"""Logistic regression, private and not."""

from __future__ import annotations

from dprepro.data.domain import TaskKind
from dprepro.methods.entry import (
    REPEATS_NEVER,
    REPEATS_SOLVER,
    Guarantee,
    Made,
    not_private,
    private,
)
from dprepro.privacy.guarantee_status import Noise
from dprepro.privacy.sensitivity import REPLACE_ONE

ADJACENCY = REPLACE_ONE

_CLASSIFICATION: frozenset[TaskKind] = frozenset({"binary"})
_REFERENCE = "Chaudhuri, Monteleoni, Sarwate 2011, as in diffprivlib 0.6.6"
_OURS = "dprepro.methods.logistic.estimator:"
_DEFAULTS = {"C": 1.0, "max_iter": 100}

METHODS = [
    private(
        name="dp-logistic",
        title="DP logistic regression (as published)",
        tasks=_CLASSIFICATION,
        guarantee=Guarantee.NONE,
        adjacency=ADJACENCY,
        assumes=(
            "not covered by epsilon: the largest row norm",
            "one-hot categories, numeric features not scaled, library defaults: no guarantee",
        ),
        cite=("chaudhuri2011", "holohan2019"),
        form="coefficients",
        reference=_REFERENCE + ", with its defaults",
        build=Made(_OURS + "DPLogisticRegression"),
        noise=Noise.FLOATING_POINT,
        repeats_within=REPEATS_SOLVER,
        encoding="one-hot",
        defaults=_DEFAULTS,
    ),
    private(
        name="dp-logistic-fair",
        title="DP logistic regression (fair)",
        tasks=_CLASSIFICATION,
        guarantee=Guarantee.PURE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, labels, number of rows",),
        cite=("chaudhuri2011", "holohan2019"),
        form="coefficients",
        reference=_REFERENCE + ", on rows scaled to norm 1 by public bounds",
        build=Made(
            _OURS + "DPLogisticRegression",
            data_norm=1.0, fit_intercept=False, tol=1e-8, max_iter=10_000,
        ),
        noise=Noise.FLOATING_POINT,
        repeats_within=REPEATS_SOLVER,
        encoding="unit-norm",
        defaults={"C": 1.0},
    ),
    not_private(
        name="logistic",
        title="Logistic regression (as published)",
        tasks=_CLASSIFICATION,
        cite=("pedregosa2011",),
        form="coefficients",
        reference="scikit-learn defaults on one-hot categories and numeric features as they are",
        build=Made(_OURS + "PlainLogisticRegression"),
        repeats_within=REPEATS_NEVER,
        encoding="one-hot",
        defaults=_DEFAULTS,
    ),
    not_private(
        name="logistic-standardized",
        title="Logistic regression (standardized)",
        tasks=_CLASSIFICATION,
        cite=("pedregosa2011",),
        form="coefficients",
        reference="scikit-learn defaults on one-hot categories and standardized numeric features",
        build=Made(_OURS + "StandardizedLogisticRegression"),
        repeats_within=REPEATS_SOLVER,
        encoding="one-hot",
        defaults=_DEFAULTS,
    ),
    not_private(
        name="logistic-fair",
        title="Logistic regression (fair)",
        tasks=_CLASSIFICATION,
        cite=("pedregosa2011",),
        form="coefficients",
        reference="scikit-learn on one-hot categories and features scaled to [-1, 1] by the bounds",
        build=Made(_OURS + "PlainLogisticRegression", fit_intercept=False, max_iter=10_000),
        repeats_within=REPEATS_SOLVER,
        encoding="symmetric",
        defaults={"C": 1.0},
    ),
]  # fmt: skip
