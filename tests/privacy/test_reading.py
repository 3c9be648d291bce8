"""What a private method is given to fit goes into a reader at once, which wraps it."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dprepro.estimators.inputs import wrap_training_arrays
from dprepro.methods.registry import all_methods
from dprepro.privacy.private_rows import Private, may_open
from tests.privacy.curators import FITS

READERS = {
    "read_training_rows": "dprepro.estimators.inputs",
    "read_training_arrays": "dprepro.estimators.inputs",
    "wrap_training_arrays": "dprepro.estimators.inputs",
    "read_boolean_rows": "dprepro.methods.lazybb.curator",
    "read_numeric_rows": "dprepro.methods.locally_linear.curator",
    "read_images": "dprepro.methods.cnn.curator",
}
"""The functions that may be given X and y of a fit, and their modules."""

ROWS = {"X", "y", "sample_weight"}


def estimator_classes() -> set[type]:
    """Return the classes of this package that the methods with a budget are made of."""
    kinds = {type(fit.model) for fit in FITS.values()}
    for method in all_methods().values():
        if method.takes_epsilon:
            kinds |= {type(method._example(task, 1.0, {})) for task in method.tasks}
    return {k for kind in kinds for k in kind.__mro__ if k.__module__.startswith("dprepro.")}


def bare_uses(source: str) -> list[str]:
    """Return where functions that take y do other with X and y than give them to a reader."""
    return [
        f"{name.id}, line {name.lineno}"
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and _takes_targets(function)
        for name in _bare(function)
    ]


def _takes_targets(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return "y" in names or given.vararg is not None or function.name == "fit"


def _bare(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Name]:
    given = function.args
    extra = {a.arg for a in (given.vararg, given.kwarg) if a is not None}
    read = [
        argument
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.func.id in READERS
        for argument in call.args
    ]
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    return [n for n in names if n.id in ROWS | extra | {"locals"} and n not in read]


@pytest.mark.parametrize("kind", sorted(estimator_classes(), key=lambda k: k.__qualname__))
def test_fit_gives_rows_to_a_reader_and_to_nothing_else(kind: type) -> None:
    assert bare_uses(textwrap.dedent(inspect.getsource(kind))) == []
    module = vars(importlib.import_module(kind.__module__))
    known = {name: module[name].__module__ for name in READERS if name in module}
    assert known.items() <= READERS.items()


def test_every_estimator_with_a_budget_is_looked_at() -> None:
    names = {kind.__name__ for kind in estimator_classes()}
    assert names >= {
        "DPEBMClassifier", "DPEBMRegressor", "DPEBMPlusClassifier", "DPEBMPlusRegressor",
        "DPBoostClassifier", "DPBoostRegressor", "LazyBBClassifier", "OneRule", "DPLLMClassifier",
        "DPBagClassifier", "DPRandomForest", "DPLogisticRegression", "DPLinearRegression",
        "WishartLinearRegression", "ToyDPEBMClassifier", "ToyDPEBMRegressor", "SBDTClassifier",
        "SBDTRegressor", "PrivaTreeClassifier", "DPSGDClassifier", "DPSGDRegressor",
    }  # fmt: skip
    fitted = {type(fit.model) for fit in FITS.values()}
    assert all(any("fit" in vars(base) for base in kind.__mro__) for kind in fitted)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_wraps_and_stands_where_rows_may_be_opened(name: str) -> None:
    reader: Callable[..., Any] = getattr(importlib.import_module(READERS[name]), name)
    assert reader.__module__ == READERS[name]
    assert may_open(reader.__module__)
    assert "Private[" in str(inspect.signature(reader).return_annotation)


def test_what_is_wrapped_unchecked_is_wrapped() -> None:
    assert isinstance(wrap_training_arrays(np.zeros((2, 1)), np.zeros(2)), Private)


@pytest.mark.parametrize(
    "body",
    [
        "rows = read_training_rows(self, X, y, None, 'binary')\n    self.n_ = len(X)",
        "self._train(X, y)",
        "X = X.copy()",
        "self.seen_ = y",
        "self.train(read_training_rows(self, X.copy(), y))",
        "other.read_training_rows(X)",
        "run(**locals())",
    ],
)
def test_planted_uses_of_bare_rows_are_found(body: str) -> None:
    assert bare_uses(f"def fit(self, X, y):\n    {body}")


def test_planted_uses_of_rows_without_names_are_found() -> None:
    assert bare_uses("def fit(self, *rows):\n    self.seen_ = rows")
    assert bare_uses("def helper(self, y):\n    return y.mean()")


def test_rows_that_are_read_once_are_no_fault() -> None:
    source = "def fit(self, X, y):\n    self._train(read_training_rows(self, X, y, None, 'binary'))"
    assert bare_uses(source) == []
    assert bare_uses("def predict(self, X):\n    return X @ self.coef_") == []
