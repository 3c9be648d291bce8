"""The public names of the package: what they are, and that nothing is imported before its use."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import dprepro

ROOT = Path(__file__).resolve().parent.parent


def imported_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after some code."""
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_importing_the_package_imports_no_library():
    loaded = imported_by("import dprepro; dir(dprepro); dprepro.__version__")
    ours = {name for name in loaded if name.startswith("dprepro")}
    assert ours == {"dprepro"}
    assert not loaded & {"numpy", "pandas", "sklearn", "scipy", "numba", "pydantic", "rich"}


def test_a_public_name_imports_what_it_needs():
    loaded = imported_by("from dprepro import Domain")
    assert "dprepro.data.domain" in loaded
    assert not loaded & {"numba", "sklearn", "dprepro.methods.dp_ebm"}


def test_methods_can_be_listed_without_what_fits_them():
    loaded = imported_by("from dprepro.methods.registry import all_methods; all_methods()")
    assert "dprepro.methods.boosting_libraries" in loaded
    assert not loaded & {"scipy", "pandas", "sklearn", "numba", "pyarrow", "lightgbm", "torch"}


@pytest.mark.parametrize("name", dprepro.__all__)
def test_a_public_name_is_there_and_says_what_it_is(name):
    found = getattr(dprepro, name)
    assert found.__name__ == name
    assert inspect.getdoc(found)
    assert name in dir(dprepro)


def test_completion_offers_public_names_alone():
    assert dir(dprepro) == sorted([*dprepro.__all__, "__version__"])


def test_type_checkers_see_the_same_names_in_the_same_modules():
    tree = ast.parse((ROOT / "dprepro" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == dprepro._MODULES
    assert sorted(typed) == sorted(dprepro.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'DPEBMClassifer'"):
        dprepro.DPEBMClassifer  # noqa: B018
    with pytest.raises(ImportError):
        from dprepro import DPEBMClassifer  # noqa: F401
