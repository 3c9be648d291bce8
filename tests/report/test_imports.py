"""Looking at results must stay quick, and must never be able to run anything."""

import subprocess
import sys

import pytest

PROBE = """
import pkgutil, sys, importlib, {package}
for info in pkgutil.walk_packages({package}.__path__, "{package}."):
    importlib.import_module(info.name)
print("\\n".join(sys.modules))
"""


def imported(package):
    code = PROBE.format(package=package)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["dprepro.report", "dprepro.published"])
def test_no_module_loads_what_trains_models(package):
    modules = imported(package)
    assert f"{package}" in modules
    heavy = {"sklearn", "numba", "lightgbm", "xgboost", "diffprivlib", "pandas"}
    assert not heavy & modules
    runs = {"dprepro.experiment.run", "dprepro.experiment.worker", "dprepro.methods"}
    assert not runs & modules


def test_the_published_numbers_need_nothing_above_them():
    layers = ("report", "experiment", "methods", "ebm", "cli", "data")
    assert not {f"dprepro.{layer}" for layer in layers} & imported("dprepro.published")
