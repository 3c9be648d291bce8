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


@pytest.mark.parametrize(
    "command", [["check", "--details"], ["compare", "dp-ebm-plus", "dp-ebm-gdp", "--epsilon", "1"]]
)
def test_no_command_that_reads_results_loads_what_fits_or_accounts(command):
    code = f"""import sys
from typer.testing import CliRunner
from dprepro.cli import app
done = CliRunner().invoke(app, {command!r})
assert done.exit_code in (0, 1) and len(done.output) > 1000, done.output
print(*sys.modules)"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    heavy = {"sklearn", "pandas", "numba", "lightgbm", "dp_accounting", "scipy.stats"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize("package", ["dprepro.report", "dprepro.papers"])
def test_no_module_loads_what_trains_models(package):
    modules = imported(package)
    assert f"{package}" in modules
    heavy = {"sklearn", "numba", "lightgbm", "xgboost", "diffprivlib", "pandas"}
    assert not heavy & modules
    runs = {"dprepro.experiment.run", "dprepro.experiment.worker", "dprepro.methods"}
    assert not runs & modules


def test_the_published_numbers_need_nothing_above_them():
    layers = ("report", "experiment", "methods", "cli", "data")
    assert not {f"dprepro.{layer}" for layer in layers} & imported("dprepro.papers")
