"""Small fits of every private method, on tables that scikit-learn brings along."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.methods import registry
from dprepro.methods.entry import Method, Setting
from tests.golden.nearly import described

GOLDEN = Path(__file__).with_name("golden.json")

SEED = 7
EPSILON, DELTA = 1.0, 1e-6
NUMERIC_FEATURES = 4
CATEGORIES = ("u", "v", "w")

Table = tuple[pd.DataFrame, np.ndarray, Domain]


@cache
def table(task: str) -> Table:
    """Return rows, targets and public domain: four numeric features and a categorical one."""
    if task == "counts":
        X, y, domain = table("regression")
        return X, y, Domain(domain.features, (0.0, 350.0))
    load = {"regression": load_diabetes, "multiclass": load_wine}.get(task, load_breast_cancer)
    X, y = load(return_X_y=True, as_frame=True)
    X = X.iloc[:, :NUMERIC_FEATURES].reset_index(drop=True)
    bounds = [(float(np.floor(X[name].min())), float(np.ceil(X[name].max()))) for name in X]
    features = [NumericFeature(name, *ends) for name, ends in zip(X, bounds, strict=True)]
    X["c"] = pd.Categorical.from_codes(np.arange(len(X)) % 3, CATEGORIES)
    labels = ("0", "1", "2") if task == "multiclass" else ("0", "1")
    target = (20.0, 350.0) if task == "regression" else labels
    domain = Domain((*features, CategoricalFeature("c", CATEGORIES)), target)
    return X, y.to_numpy(float if task == "regression" else int), domain


class Fit(NamedTuple):
    """What is fitted, and at which epsilon."""

    method: Method
    task: str
    epsilon: float = EPSILON
    params: Mapping[str, Any] = MappingProxyType({})


WITH_PAIRS = {"dp-ebm-plus/binary": 8.0, "dp-ebm-plus/regression": 8.0}
"""Fits of DP-EBM+ that are also made with pairs of features, and at which epsilon."""

OF_IMAGES = "dp-cnn"
"""Cannot be fitted to the tables here."""


def private_fits() -> dict[str, Fit]:
    """Return every private method of tables with each of its tasks, by "name/task".

    DP-EBM+ with pairs, and of counts, too.
    """
    fits = {
        f"{name}/{task}": Fit(method, task)
        for name, method in registry.all_methods().items()
        for task in sorted(method.tasks)
        if method.takes_epsilon and name != OF_IMAGES
    }
    others = {
        f"{key}/pairs": fits[key]._replace(epsilon=level, params={"pairs": 2})
        for key, level in WITH_PAIRS.items()
    }
    counts = Fit(registry.get("dp-ebm-plus"), "counts", params={"loss": "poisson"})
    return fits | others | {"dp-ebm-plus/counts": counts}


FLOATING = {
    OF_IMAGES: "gradient steps in float32, by PyTorch, which is an optional extra",
    "dp-llm": "gradient steps in float32, by matrix products",
    "dp-logistic": "diffprivlib perturbs an objective, whose minimum a solver approaches",
    "dp-logistic-fair": "diffprivlib perturbs an objective, whose minimum a solver approaches",
    "dp-linear": "a Wishart matrix in floating point, which has no guarantee whatever its bits",
}
"""Methods that stay in floating point, and why: other processors may give other bits."""


def exact_fits() -> dict[str, Fit]:
    """Return the fits that must have the bits of the golden file, on every machine."""
    return {key: fit for key, fit in private_fits().items() if fit.method.name not in FLOATING}


def fitted(
    method: Method, task: str, epsilon: float, params: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Any, Any]:
    """Return a fitted model, and the rows as it takes them."""
    X, y, domain = table(task)
    rows = ENCODINGS[method.encoding](domain).transform(X)
    kind = "regression" if task == "counts" else task
    model = method.build(Setting(kind, epsilon, DELTA, domain, SEED), **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, y), rows


def bits(name: str) -> dict[str, Any]:
    """Return what the golden file keeps of a fit; see `described`."""
    model, _ = fitted(*private_fits()[name])
    return described(model)
