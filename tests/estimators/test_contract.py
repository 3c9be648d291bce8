"""What may be asked of an estimator is asked in one place, and of ours it is there."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import check_is_fitted

import dprepro
from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.contract import (
    ChecksParameters,
    Estimator,
    ExplainsRows,
    HasFigures,
    PlansLedger,
    PredictsProbabilities,
    PrivateEstimator,
    ScoresRows,
    check_parameters,
    classes_of,
    explains_rows,
    figures_of,
    finest_outputs,
    has_named_columns,
    ledger_of,
    ledger_summary_of,
    plans_ledger,
    predicts_probabilities,
    reads_scores,
    scores_rows,
)
from dprepro.methods.entry import Method, Setting
from dprepro.methods.registry import all_methods
from dprepro.privacy.ledger import Ledger

PACKAGE = Path(dprepro.__file__).parent
CONTRACT = Path("estimators/contract.py")

ELSEWHERE = {
    "__init__.py": {"importlib.import_module(_MODULES[name])": "the public names, on first use"},
    "additive/export/predictor.py": {"x": "a number of NumPy's, which this file does not import"},
    "audit/subjects.py": {"module": "a module of cases need not have both kinds"},
    "additive/export/interpret.py": {"model": "only a model of targets has a range"},
    "cli/__init__.py": {"importlib.import_module(f'{__name__}.{module}')": "commands by name"},
    "data/fingerprint.py": {
        "card": "fields of a card, by name",
        "source": "fields of a source, by name",
    },
    "privacy/sampling/bits.py": {"os": "Windows has no fork"},
    "runtime/files.py": {"os": "Windows alone tells texts from bytes, and does not wait"},
    "runtime/kernels.py": {"os": "Windows has no owners of files"},
    "experiment/run.py": {"signal": "Windows has no SIGHUP"},
    "data/register.py": {
        "error": "OSError has a reason, others have not",
        "except AttributeError": "a damaged register, read as JSON",
    },
    "data/sources.py": {"sklearn.datasets": "a loader by the name that a card gives"},
    "experiment/executors.py": {"signal": "Windows has no pthread_sigmask"},
    "experiment/local.py": {"signal": "Windows has no pthread_sigmask"},
    "experiment/environment.py": {"module": "a function by name", "start": "of a function"},
    "methods/entry.py": {"importlib.import_module(module)": "the class of an estimator, by name"},
    "methods/plugins.py": {
        "module": "a user's file need not have METHODS",
        "method": "fields of a method, by name",
    },
    "methods/registry.py": {"module": "a package need not have METHODS"},
    "release/budget_book.py": {"except AttributeError": "a damaged book, read as JSON"},
    "runtime/arguments.py": {"numpy": "types by name, where NumPy is loaded"},
    "experiment/notebook.py": {"shell": "IPython, where there is one"},
    "papers/schema.py": {"cell": "fields of a published cell, by name"},
    "runtime/yaml_files.py": {
        "error": "errors of PyYAML with and without a place",
        "except AttributeError": "values that PyYAML leaves to Python",
    },
    "rows/folder.py": {"os": "not every system can reserve room on a disk"},
    "rows/store.py": {"mmap": "not every system can be advised about memory"},
}
"""Whose attributes are looked for outside of the contract, and why that is no estimator. `self`
may ask for its own anywhere."""

X, Y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
DOMAIN = {
    "regression": Domain((NumericFeature("x", 0.0, 1.0),), (0.0, 1.0)),
    "binary": Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1")),
}


def looked_for(source: str) -> set[str]:
    """Return the expressions whose attributes a module looks for by name or by trying."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr") and node.args:
                found.add(ast.unparse(node.args[0]))
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            if "AttributeError" in ast.unparse(node.type):
                found.add("except AttributeError")
        elif isinstance(node, (ast.Name, ast.Attribute)):
            found |= {ast.unparse(node)} & {"operator.attrgetter", "inspect.getattr_static"}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names} & {"attrgetter", "getattr_static"}
    return found - {"self"}


def modules() -> list[str]:
    paths = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")} - {CONTRACT}
    return sorted(path.as_posix() for path in paths)


def test_only_the_contract_looks_for_attributes_of_an_estimator() -> None:
    found = {name: looked_for((PACKAGE / name).read_text(encoding="utf-8")) for name in modules()}
    assert {name: what for name, what in found.items() if what} == {
        name: set(what) for name, what in ELSEWHERE.items()
    }, "ask by a function of dprepro/estimators/contract.py; what is no estimator is listed here"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('ledger = getattr(model, "ledger_", None)', {"model"}),
        ('if hasattr(case.fit(1), "ledger_"): pass', {"case.fit(1)"}),
        ("try:\n    model.x\nexcept (KeyError, AttributeError):\n    0", {"except AttributeError"}),
        ("operator.attrgetter('ledger_')(model)", {"operator.attrgetter"}),
        ("from operator import attrgetter", {"attrgetter"}),
        ("getattr(self, name)", set()),
        ("model.fit(X, y)", set()),
    ],
)
def test_the_search_finds_every_way_to_look(source: str, found: set[str]) -> None:
    assert looked_for(source) == found


def built(method: Method, task: str) -> Any:
    epsilon = 1.0 if method.takes_epsilon else np.inf
    return method.build(Setting(task, epsilon, 1e-6, DOMAIN[task], 0))


OURS = [
    (method, task)
    for method in all_methods().values()
    for task in sorted(method.tasks & {"binary", "regression"})
]


@pytest.mark.parametrize(("method", "task"), OURS, ids=lambda value: getattr(value, "name", value))
def test_every_method_builds_an_estimator_that_can_be_asked(method: Method, task: str) -> None:
    estimator = built(method, task)
    assert isinstance(estimator, Estimator)
    assert not hasattr(estimator, "_check_parameters")
    assert not hasattr(estimator, "plan_ledger")
    if task == "binary":
        assert scores_rows(estimator) or predicts_probabilities(estimator)
    assert plans_ledger(estimator) == isinstance(estimator, PlansLedger)
    assert explains_rows(estimator) == isinstance(estimator, ExplainsRows)


@pytest.mark.parametrize("name", ["dp-ebm-gdp", "dp-bag", "dp-llm", "lazybb-1r", "dpboost"])
def test_parameters_are_checked_without_rows(name: str) -> None:
    method = all_methods()[name]
    estimator = built(method, "binary")
    assert isinstance(estimator, ChecksParameters)
    check_parameters(estimator)
    wrong = {"dp-bag": "teachers", "dp-llm": "epochs", "lazybb-1r": "rounds", "dpboost": "n_trees"}
    parameter = wrong.get(name, "n_epochs")
    with pytest.raises(ValueError, match=f"{parameter} must be"):
        check_parameters(estimator.set_params(**{parameter: 0}))


@pytest.mark.parametrize("name", ["dp-bag", "dp-llm"])
def test_planning_a_ledger_fits_nothing(name: str) -> None:
    estimator = built(all_methods()[name], "binary")
    before = dict(vars(estimator))
    assert isinstance(estimator.planned_ledger(1000), Ledger)
    assert vars(estimator) == before
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(estimator)


def test_a_fitted_private_estimator_has_all_that_is_asked_for() -> None:
    estimator = all_methods()["dp-bag"].build(
        Setting("binary", 4.0, 1e-6, DOMAIN["binary"], 0),
        teachers=2,
        partitions=1,
    )
    assert ledger_of(estimator) is None
    estimator.fit(pd.DataFrame({"x": np.linspace(0.0, 1.0, 40)}), Y)
    assert isinstance(estimator, PrivateEstimator)
    assert isinstance(estimator, HasFigures)
    assert isinstance(estimator, PredictsProbabilities)
    assert ledger_of(estimator) is estimator.ledger_
    assert ledger_summary_of(estimator) == estimator.ledger_.summary()
    assert figures_of(estimator) == estimator.figures_


def test_an_estimator_that_lacks_all_of_it_can_be_used() -> None:
    bare = SimpleNamespace(fit=lambda X, y: None, predict=lambda X: np.ones(len(X)))
    assert ledger_of(bare) is ledger_summary_of(bare) is classes_of(bare) is None
    assert figures_of(bare) == {}
    check_parameters(bare)
    asked = (plans_ledger, explains_rows, scores_rows, predicts_probabilities, has_named_columns)
    assert not any(ask(bare) for ask in (*asked, reads_scores))
    assert finest_outputs(bare, X).tolist() == [1.0] * 40


def test_what_is_no_ledger_of_ours_counts_as_none() -> None:
    own = SimpleNamespace(ledger_=SimpleNamespace(summary=lambda: {"true_epsilon": 1.0}))
    assert (ledger_of(own), ledger_summary_of(own)) == (None, None)


def test_constraints_of_scikit_learn_count_as_a_check() -> None:
    with pytest.raises(ValueError, match="The 'C' parameter"):
        check_parameters(LogisticRegression(C=-1.0))


@pytest.mark.parametrize(
    ("estimator", "scores", "probabilities"),
    [
        (LinearRegression(), False, False),
        (LogisticRegression(), True, True),
        (make_pipeline(StandardScaler(), LinearSVC()), True, False),
        (SVC(probability=False), True, False),
    ],
)
def test_methods_that_scikit_learn_hides_are_not_there(
    estimator: Any, scores: bool, probabilities: bool
) -> None:
    estimator.fit(X, Y)
    assert (scores_rows(estimator), predicts_probabilities(estimator)) == (scores, probabilities)
    expected = estimator.decision_function(X) if scores else estimator.predict(X)
    np.testing.assert_array_equal(finest_outputs(estimator, X), expected)


def test_a_classifier_has_labels_and_a_table_has_names() -> None:
    assert classes_of(LogisticRegression().fit(X, Y)).tolist() == [0, 1]
    assert classes_of(LinearRegression().fit(X, Y)) is None
    named = LinearRegression().fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert has_named_columns(named)
    assert not has_named_columns(LinearRegression().fit(X, Y))
    assert isinstance(named, Estimator)
    assert not isinstance(named, ScoresRows)
