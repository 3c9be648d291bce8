"""Reproduce experiments on interpretable models trained with differential privacy.

The names below are the public interface. Each is imported on its first use, so that
`import dprepro` itself loads no other library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprepro.additive.file import load_model, save_model
    from dprepro.cli.scripting import compare, run, table, verdicts
    from dprepro.data.dataset import Dataset, load, load_domain
    from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
    from dprepro.methods.dp_ebm.ebm import EBMClassifier, EBMRegressor
    from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
    from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
    from dprepro.methods.dpboost.estimator import DPBoostClassifier, DPBoostRegressor
    from dprepro.methods.lazybb.estimator import LazyBBClassifier
    from dprepro.methods.locally_linear.estimator import DPLLMClassifier, LLMClassifier
    from dprepro.privacy.ledger import Ledger
    from dprepro.runtime.errors import DpreproError

__version__ = "0.3.0"

__all__ = [
    "CategoricalFeature",
    "DPBoostClassifier",
    "DPBoostRegressor",
    "DPEBMClassifier",
    "DPEBMPlusClassifier",
    "DPEBMPlusRegressor",
    "DPEBMRegressor",
    "DPLLMClassifier",
    "Dataset",
    "Domain",
    "DpreproError",
    "EBMClassifier",
    "EBMRegressor",
    "LLMClassifier",
    "LazyBBClassifier",
    "Ledger",
    "NumericFeature",
    "compare",
    "load",
    "load_domain",
    "load_model",
    "run",
    "save_model",
    "table",
    "verdicts",
]

_MODULES = {
    "CategoricalFeature": "dprepro.data.domain",
    "DPBoostClassifier": "dprepro.methods.dpboost.estimator",
    "DPBoostRegressor": "dprepro.methods.dpboost.estimator",
    "DPEBMClassifier": "dprepro.methods.dp_ebm.estimator",
    "DPEBMPlusClassifier": "dprepro.methods.dp_ebm_plus.estimator",
    "DPEBMPlusRegressor": "dprepro.methods.dp_ebm_plus.estimator",
    "DPEBMRegressor": "dprepro.methods.dp_ebm.estimator",
    "DPLLMClassifier": "dprepro.methods.locally_linear.estimator",
    "Dataset": "dprepro.data.dataset",
    "Domain": "dprepro.data.domain",
    "DpreproError": "dprepro.runtime.errors",
    "EBMClassifier": "dprepro.methods.dp_ebm.ebm",
    "EBMRegressor": "dprepro.methods.dp_ebm.ebm",
    "LLMClassifier": "dprepro.methods.locally_linear.estimator",
    "LazyBBClassifier": "dprepro.methods.lazybb.estimator",
    "Ledger": "dprepro.privacy.ledger",
    "NumericFeature": "dprepro.data.domain",
    "compare": "dprepro.cli.scripting",
    "load": "dprepro.data.dataset",
    "load_domain": "dprepro.data.dataset",
    "load_model": "dprepro.additive.file",
    "run": "dprepro.cli.scripting",
    "save_model": "dprepro.additive.file",
    "table": "dprepro.cli.scripting",
    "verdicts": "dprepro.cli.scripting",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dprepro.runtime.threads import settle_threads

    settle_threads()
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
