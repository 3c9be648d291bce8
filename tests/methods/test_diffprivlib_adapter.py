"""diffprivlib's models give the same bits where scikit-learn and SciPy lack what it asks for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Takes from the libraries what their newer releases lack.
NEWER = """
import inspect, scipy.optimize, sklearn.linear_model, sklearn.tree._tree, sklearn.utils.extmath
hidden = []
for module, name in [
    (sklearn.tree._tree, "DTYPE"), (sklearn.tree._tree, "DOUBLE"),
    (sklearn.utils.extmath, "stable_cumsum"),
]:
    if hasattr(module, name):
        hidden.append((module, name, vars(module).pop(name)))
whole = scipy.optimize.fmin_l_bfgs_b
def fmin_l_bfgs_b(func, x0, fprime=None, args=(), factr=1e7, pgtol=1e-5, maxiter=15000):
    return whole(func, x0, fprime=fprime, args=args, factr=factr, pgtol=pgtol, maxiter=maxiter)
scipy.optimize.fmin_l_bfgs_b = fmin_l_bfgs_b
kind = sklearn.linear_model.LogisticRegression
original, signature = kind.__init__, inspect.signature(kind.__init__)
def init(self, **given):
    if "multi_class" in given:
        raise TypeError("unexpected argument multi_class")
    original(self, **given)
init.__signature__ = signature.replace(
    parameters=[p for p in signature.parameters.values() if p.name != "multi_class"]
)
kind.__init__ = init
"""
PLAIN = "from diffprivlib.models import LogisticRegression, RandomForestClassifier"
ADAPTED = """
from dprepro.methods.diffprivlib_adapter import LogisticRegression, RandomForestClassifier
"""
FITS = """
for module, name, value in globals().get("hidden", []):
    setattr(module, name, value)  # scikit-learn's own code reads them
import json, warnings
import numpy as np
from sklearn.datasets import load_breast_cancer
warnings.simplefilter("ignore")
X, y = load_breast_cancer(return_X_y=True)
X = X[:, :5] / X[:, :5].max(axis=0)
logistic = LogisticRegression(epsilon=1.0, data_norm=2.0, random_state=3).fit(X, y)
forest = RandomForestClassifier(
    epsilon=1.0, bounds=(np.zeros(5), np.ones(5)), classes=[0, 1], random_state=3
).fit(X, y)
bits = [logistic.coef_, logistic.intercept_, logistic.predict_proba(X), forest.predict_proba(X)]
print(json.dumps([array.tobytes().hex() for array in bits]))
"""


def ran(code: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def beside_newer() -> str:
    """The bits of the adapter's models where the libraries lack what newer releases lack."""
    done = ran(NEWER + ADAPTED + FITS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_bits_are_those_beside_the_releases_here(beside_newer: str) -> None:
    done = ran(ADAPTED + FITS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == beside_newer
    assert len(set(json.loads(done.stdout))) == 4


def test_the_bits_are_those_of_the_library_where_it_runs_by_itself(beside_newer: str) -> None:
    done = ran(PLAIN + FITS)
    if done.returncode == 0:
        assert done.stdout == beside_newer
    else:  # newer releases are installed
        assert "cannot import name" in done.stderr or "multi_class" in done.stderr


def test_the_library_by_itself_breaks_beside_newer_releases() -> None:
    assert "cannot import name" in ran(NEWER + PLAIN).stderr


def test_what_is_lent_is_taken_back() -> None:
    code = "print([n for n in ('DTYPE', 'DOUBLE') if hasattr(sklearn.tree._tree, n)])"
    assert ran(NEWER + ADAPTED + code).stdout.strip() == "[]"
