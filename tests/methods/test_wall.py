"""The wall: no estimator of a baseline sees rows once they are wrapped; its curator alone does."""

import importlib

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.privacy.private_rows import PrivateRowsError


def fit(name, task):
    domain = Domain((NumericFeature("x", 0, 1),), ("0", "1") if task == "binary" else (0.0, 1.0))
    method, rng = get(name), np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(1000)})
    model = method.build(Setting(task, 1.0, 1e-5, domain, 0))
    return model.fit(ENCODINGS[method.encoding](domain).transform(frame), np.arange(1000) % 2)


@pytest.mark.parametrize(
    ("name", "task", "package", "curator"),
    [
        ("ada-ssp", "regression", "ada_ssp", "MomentsCurator"),
        ("dp-bag", "binary", "dp_bag", "BagCurator"),
        ("dp-bag-sound", "binary", "dp_bag", "BagCurator"),
        ("dp-gd-logistic", "binary", "gradient_descent", "GradientCurator"),
        ("dp-sgd-mlp", "binary", "dp_sgd", "DPSGDCurator"),
        ("dp-sgd-mlp", "regression", "dp_sgd", "DPSGDCurator"),
        ("dp-linear", "regression", "wishart_regression", "WishartCurator"),
        ("dp-linear-fair", "regression", "linear_regression", "LinearCurator"),
        ("dp-logistic", "binary", "logistic", "LogisticCurator"),
        ("dp-logistic-fair", "binary", "logistic", "LogisticCurator"),
        ("dp-random-boosting", "binary", "random_boosting", "RandomBoostingCurator"),
        ("dp-random-forest", "binary", "forests", "ForestCurator"),
        ("mst-lightgbm", "binary", "synthetic", "SyntheticCurator"),
        ("mst-lightgbm", "regression", "synthetic", "SyntheticCurator"),
        ("privatree", "binary", "privatree", "PrivaTreeCurator"),
        ("privatree-sound", "binary", "privatree", "PrivaTreeCurator"),
        ("s-bdt", "binary", "s_bdt", "SBDTCurator"),
        ("s-bdt-sound", "regression", "s_bdt", "SBDTCurator"),
        ("toy-dp-ebm", "binary", "toy_ebm", "ToyCurator"),
        ("toy-dp-ebm", "regression", "toy_ebm", "ToyCurator"),
    ],
)
def test_a_cheating_method_is_caught(name, task, package, curator, monkeypatch):
    """It wants the exact targets instead of a curator, and does not get them."""
    estimator = importlib.import_module(f"dprepro.methods.{package}.estimator")

    def cheat(rows, *_):
        names = {"__name__": estimator.__name__}
        exec("def look(rows):\n    return rows.open().targets", names)
        return names["look"](rows)

    monkeypatch.setattr(estimator, curator, cheat)
    with pytest.raises(PrivateRowsError, match=rf"{package}\.estimator may not open private rows"):
        fit(name, task)
