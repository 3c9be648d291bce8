"""Reproduce experiments on interpretable models trained with differential privacy.

The names below are the public interface. Each is imported on its first use, so that
`import dprepro` itself loads no other library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprepro.additive.file import load_model, save_model
    from dprepro.data import load
    from dprepro.data.dataset import Dataset
    from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
    from dprepro.dpboost import DPBoostClassifier, DPBoostRegressor
    from dprepro.ebm import DPEBMClassifier, DPEBMRegressor, EBMClassifier, EBMRegressor
    from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
    from dprepro.errors import DpreproError
    from dprepro.lazybb import LazyBBClassifier
    from dprepro.llm import DPLLMClassifier, LLMClassifier
    from dprepro.privacy.ledger import Ledger
    from dprepro.scripting import compare, run, table

__version__ = "0.2.0"

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
    "load_model",
    "run",
    "save_model",
    "table",
]

_MODULES = {
    "CategoricalFeature": "dprepro.data.domain",
    "DPBoostClassifier": "dprepro.dpboost",
    "DPBoostRegressor": "dprepro.dpboost",
    "DPEBMClassifier": "dprepro.ebm",
    "DPEBMPlusClassifier": "dprepro.ebm_plus",
    "DPEBMPlusRegressor": "dprepro.ebm_plus",
    "DPEBMRegressor": "dprepro.ebm",
    "DPLLMClassifier": "dprepro.llm",
    "Dataset": "dprepro.data.dataset",
    "Domain": "dprepro.data.domain",
    "DpreproError": "dprepro.errors",
    "EBMClassifier": "dprepro.ebm",
    "EBMRegressor": "dprepro.ebm",
    "LLMClassifier": "dprepro.llm",
    "LazyBBClassifier": "dprepro.lazybb",
    "Ledger": "dprepro.privacy.ledger",
    "NumericFeature": "dprepro.data.domain",
    "compare": "dprepro.scripting",
    "load": "dprepro.data",
    "load_model": "dprepro.additive.file",
    "run": "dprepro.scripting",
    "save_model": "dprepro.additive.file",
    "table": "dprepro.scripting",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dprepro.memory import settle

    settle()
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
