"""A fit for every curator class, by which tests look at what a curator keeps.

Whoever adds a curator adds a `Fit` to `FITS`: an estimator with a fixed seed, few rounds and a
public domain, fitted to the rows that it is given.
"""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import dprepro
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.ada_ssp.curator import MomentsCurator
from dprepro.methods.ada_ssp.estimator import AdaSSPRegressor
from dprepro.methods.cnn.curator import ImageCurator
from dprepro.methods.cnn.estimator import DPConvolutionalNetwork
from dprepro.methods.dp_bag.curator import BagCurator
from dprepro.methods.dp_bag.estimator import DPBagClassifier
from dprepro.methods.dp_ebm.curator import DPEBMCurator
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.curator import PlusCurator
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_sgd.curator import DPSGDCurator
from dprepro.methods.dp_sgd.estimator import DPSGDClassifier, DPSGDRegressor
from dprepro.methods.dpboost.curator import DPBoostCurator
from dprepro.methods.dpboost.estimator import DPBoostClassifier, DPBoostRegressor
from dprepro.methods.forests.curator import ForestCurator
from dprepro.methods.forests.estimator import DPRandomForest
from dprepro.methods.gradient_descent.curator import GradientCurator
from dprepro.methods.gradient_descent.estimator import DPGradientDescentClassifier
from dprepro.methods.lazybb.curator import ExactCurator, LazyBBCurator
from dprepro.methods.lazybb.estimator import LazyBBClassifier
from dprepro.methods.linear_regression.curator import LinearCurator
from dprepro.methods.linear_regression.estimator import DPLinearRegression
from dprepro.methods.locally_linear.curator import LLMCurator
from dprepro.methods.locally_linear.estimator import DPLLMClassifier
from dprepro.methods.logistic.curator import LogisticCurator
from dprepro.methods.logistic.estimator import DPLogisticRegression
from dprepro.methods.privatree.curator import PrivaTreeCurator
from dprepro.methods.privatree.estimator import PrivaTreeClassifier
from dprepro.methods.random_boosting.curator import RandomBoostingCurator
from dprepro.methods.random_boosting.estimator import DPRandomBoostingClassifier
from dprepro.methods.s_bdt.curator import SBDTCurator
from dprepro.methods.s_bdt.estimator import SBDTClassifier, SBDTRegressor
from dprepro.methods.synthetic.curator import SyntheticCurator
from dprepro.methods.synthetic.estimator import SyntheticClassifier, SyntheticRegressor
from dprepro.methods.toy_ebm.curator import ToyCurator
from dprepro.methods.toy_ebm.estimator import ToyDPEBMClassifier, ToyDPEBMRegressor
from dprepro.methods.wishart_regression.curator import WishartCurator
from dprepro.methods.wishart_regression.estimator import WishartLinearRegression
from dprepro.privacy.curator_base import Curator
from dprepro.release.curator import HeldOutCurator
from tests.privacy.measured import (
    MeasuredClassifier,
    MeasuredOfClasses,
    MeasuredOfCounts,
    MeasuredRegressor,
)

FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("z", 0, 1),
    CategoricalFeature("c", ("a", "b")),
)
LABELS = Domain(FEATURES, ("0", "1"))
CLASSES = Domain(FEATURES, ("0", "1", "2"))
RANGE = Domain(FEATURES, (-1.0, 2.0))
COUNTS = Domain(FEATURES, (0.0, 2.0))
ROWS = 61


Rows = Callable[[pd.DataFrame], Any]


def _frame(X: pd.DataFrame) -> pd.DataFrame:
    return X


def _boolean(X: pd.DataFrame) -> np.ndarray:
    return np.column_stack([X["x"] > 0.5, X["z"] > 0.3, X["z"] > 0.7, X["c"] == "b"]).astype(int)


def _numeric(X: pd.DataFrame) -> np.ndarray:
    return X[["x", "z"]].to_numpy()


def _image(X: pd.DataFrame) -> np.ndarray:
    """Images of 16 x 16 pixels, their upper half as bright as x, the lower as z."""
    return np.repeat(X[["x", "z"]].to_numpy(), 128, axis=1)


@dataclass(frozen=True)
class Fit:
    """A way to a curator.

    Attributes
    ----------
    curator
        Its class.
    model
        An estimator that makes one.
    rows
        Makes what the estimator takes of X, columns x and z in [0, 1] and c of "a" and "b".
    listed
        Attributes of the curator that hold exact values which the ledger lists.
    """

    curator: type[Curator]
    model: Any
    rows: Rows = _frame
    listed: tuple[str, ...] = ()

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Any:
        """Fit to X and y, labels 0 and 1; return the model."""
        return self.model.fit(self.rows(X), y)


NUMERIC = Domain(FEATURES[:2], ("0", "1"))
NUMERIC_RANGE = Domain(FEATURES[:2], (-1.0, 2.0))

_EBM: dict[str, Any] = {"n_epochs": 2, "random_state": 0}
_PAIRS: dict[str, Any] = {"epsilon": 50.0, "pairs": 2, "n_epochs": 4, "random_state": 0}
_BOOST: dict[str, Any] = {"n_trees": 2, "max_depth": 2, "random_state": 0}

_LAZY: dict[str, Any] = {"rounds": 3, "splits": 2, "random_state": 0}
_BAG: dict[str, Any] = {"teachers": 10, "partitions": 5, "epsilon": 50.0, "random_state": 0}
_SBDT: dict[str, Any] = {"n_trees": 4, "max_depth": 2, "random_state": 0}
_TREE: dict[str, Any] = {"max_depth": 2, "random_state": 0}
_RANDOM: dict[str, Any] = {"n_trees": 4, "batches": 2, "sketch_rounds": 1, "random_state": 0}
_ROWS: dict[str, Any] = {"n_bins": 4, "epsilon": 8.0, "random_state": 0}
_SGD: dict[str, Any] = {"width": 2, "steps": 3, "sampling": 1.0, "random_state": 0}
_LLM: dict[str, Any] = {"epochs": 2, "random_state": 0}

FITS = {
    "dp-ebm, classification": Fit(DPEBMCurator, DPEBMClassifier(domain=LABELS, **_EBM)),
    "dp-ebm, regression": Fit(
        DPEBMCurator, DPEBMRegressor(domain=RANGE, sensitivity="sound", **_EBM)
    ),
    "dp-ebm, as published": Fit(DPEBMCurator, DPEBMRegressor(domain=RANGE, **_EBM)),
    "dp-ebm-plus, classification": Fit(PlusCurator, DPEBMPlusClassifier(domain=LABELS, **_EBM)),
    "dp-ebm-plus, classes": Fit(PlusCurator, DPEBMPlusClassifier(domain=CLASSES, **_EBM)),
    "dp-ebm-plus, counts": Fit(
        PlusCurator, DPEBMPlusRegressor(domain=COUNTS, loss="poisson", **_EBM)
    ),
    "dp-ebm-plus, regression": Fit(PlusCurator, DPEBMPlusRegressor(domain=RANGE, **_EBM)),
    "dp-ebm-plus, pairs": Fit(PlusCurator, DPEBMPlusRegressor(domain=RANGE, **_PAIRS)),
    "dpboost, sound": Fit(
        DPBoostCurator, DPBoostRegressor(variant="sound", domain=RANGE, **_BOOST)
    ),
    "dpboost, as published": Fit(
        DPBoostCurator,
        DPBoostClassifier(domain=LABELS, **_BOOST),
        listed=("bins", "_bin_starts"),
    ),
    "lazybb, 1-Rules": Fit(LazyBBCurator, LazyBBClassifier("1r", **_LAZY), _boolean),
    "lazybb, trees": Fit(
        LazyBBCurator, LazyBBClassifier("topdown", diagnostics=True, **_LAZY), _boolean
    ),
    "lazybb, exact": Fit(
        ExactCurator, LazyBBClassifier("topdown", epsilon=np.inf, **_LAZY), _boolean
    ),
    "dp-bag": Fit(BagCurator, DPBagClassifier(domain=LABELS, **_BAG)),
    "dp-bag, sound": Fit(BagCurator, DPBagClassifier(inputs="domain", domain=LABELS, **_BAG)),
    "dp-forest": Fit(ForestCurator, DPRandomForest(3, domain=NUMERIC, random_state=0), _numeric),
    "dp-linear-fair": Fit(
        LinearCurator, DPLinearRegression(domain=NUMERIC_RANGE, random_state=0), _numeric
    ),
    "dp-logistic": Fit(
        LogisticCurator,
        DPLogisticRegression(data_norm=2.0, domain=NUMERIC, random_state=0),
        _numeric,
    ),
    "privatree": Fit(
        PrivaTreeCurator,
        PrivaTreeClassifier(as_published=True, domain=LABELS, **_TREE),
        listed=("bins",),
    ),
    "privatree, sound": Fit(PrivaTreeCurator, PrivaTreeClassifier(domain=LABELS, **_TREE)),
    "s-bdt": Fit(SBDTCurator, SBDTClassifier(as_published=True, domain=LABELS, **_SBDT)),
    "s-bdt, regression": Fit(SBDTCurator, SBDTRegressor(initial_share=0.1, domain=RANGE, **_SBDT)),
    "dp-random-boosting": Fit(
        RandomBoostingCurator, DPRandomBoostingClassifier(domain=LABELS, **_RANDOM)
    ),
    "dp-random-boosting, as published": Fit(
        RandomBoostingCurator,
        DPRandomBoostingClassifier(
            domain=LABELS, candidates="quantile", delta_from_rows=True, from_ranks=True, **_RANDOM
        ),
    ),
    "mst": Fit(SyntheticCurator, SyntheticClassifier(domain=LABELS, **_ROWS)),
    "mst, regression": Fit(SyntheticCurator, SyntheticRegressor(domain=RANGE, **_ROWS)),
    "toy-dp-ebm": Fit(ToyCurator, ToyDPEBMClassifier(n_epochs=2, random_state=0)),
    "toy-dp-ebm, regression": Fit(ToyCurator, ToyDPEBMRegressor(n_epochs=2, random_state=0)),
    "dp-linear": Fit(
        WishartCurator, WishartLinearRegression(domain=NUMERIC_RANGE, random_state=0), _numeric
    ),
    "ada-ssp": Fit(MomentsCurator, AdaSSPRegressor(domain=RANGE, random_state=0)),
    "dp-gd-logistic": Fit(
        GradientCurator, DPGradientDescentClassifier(domain=LABELS, steps=3, random_state=0)
    ),
    "dp-sgd-mlp": Fit(DPSGDCurator, DPSGDClassifier(domain=LABELS, **_SGD)),
    "dp-sgd-mlp, classes": Fit(DPSGDCurator, DPSGDClassifier(domain=CLASSES, **_SGD)),
    "dp-sgd-mlp, regression": Fit(DPSGDCurator, DPSGDRegressor(domain=RANGE, **_SGD)),
    "dp-sgd-mlp, sampled": Fit(
        DPSGDCurator, DPSGDClassifier(domain=LABELS, **_SGD | {"sampling": 0.5})
    ),
    "dp-llm": Fit(LLMCurator, DPLLMClassifier(domain=NUMERIC, **_LLM), _numeric),
    "dp-llm, shuffled": Fit(LLMCurator, DPLLMClassifier(sampling="shuffle", **_LLM), _numeric),
    "held out": Fit(HeldOutCurator, MeasuredClassifier()),
    "held out, classes": Fit(HeldOutCurator, MeasuredOfClasses()),
    "held out, counts": Fit(HeldOutCurator, MeasuredOfCounts()),
    "held out, regression": Fit(HeldOutCurator, MeasuredRegressor()),
}

if importlib.util.find_spec("torch") is not None:
    FITS["dp-cnn"] = Fit(
        ImageCurator, DPConvolutionalNetwork(epochs=2, domain=NUMERIC, random_state=0), _image
    )


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Return X and y for the fits."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(ROWS), "z": rng.random(ROWS)})
    X["c"] = rng.choice(["a", "b"], ROWS)
    return X, (X["x"] + rng.normal(0, 0.3, ROWS) > 0.5).to_numpy().astype(int)


def exchanged(X: pd.DataFrame, y: np.ndarray, place: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows with another in place of one: it differs in everything."""
    X, y, row = X.copy(), y.copy(), X.loc[place]
    other = {"x": 1 - row["x"], "z": 1 - row["z"], "c": "b" if row["c"] == "a" else "a"}
    X.loc[place, list(other)] = list(other.values())
    y[place] = 1 - y[place]
    return X, y


def curator_classes() -> set[type[Curator]]:
    """Return every curator class of the package."""
    for module in pkgutil.walk_packages(dprepro.__path__, "dprepro."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = set(), [Curator]
    while waiting:
        for derived in waiting.pop().__subclasses__():
            waiting.append(derived)
            if derived is ImageCurator and "dp-cnn" not in FITS:
                continue  # its fit needs an extra
            if derived.__module__.startswith("dprepro."):
                found.add(derived)
    return found
