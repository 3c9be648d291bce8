"""The digest must cover all that machine code depends on."""

import ast
import importlib
import inspect
from types import BuiltinFunctionType, ModuleType

import numpy as np
import pytest

from dprepro.runtime import kernels
from dprepro.runtime.kernels import Kernel, registered
from tests.runtime.kernels.small import SmallPackage

MODULES = kernels.kernel_modules()
OWN = kernels.PACKAGE / "runtime"


def test_the_modules_with_kernels_are_found():
    assert {
        "dprepro.methods.dp_ebm.kernel",
        "dprepro.methods.dpboost.kernel",
        "dprepro.methods.locally_linear.maps",
    } <= set(MODULES)
    for name in MODULES:
        importlib.import_module(name)
    assert {name.partition(":")[0] for name in registered()} >= set(MODULES)


def test_nothing_else_in_the_package_compiles():
    for path in kernels.PACKAGE.rglob("*.py"):
        if path not in (OWN / "kernels.py", OWN / "atomics.py"):
            text = path.read_text(encoding="utf-8")
            assert "njit" not in text, path
            assert "import numba" not in text, path


@pytest.mark.parametrize("name", MODULES)
def test_kernels_use_constants_of_modules_with_kernels_only(name):
    module = importlib.import_module(name)
    imported = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom):
            imported.update({alias.asname or alias.name: node.module for alias in node.names})
    for made, _ in registered().values():
        if not isinstance(made, Kernel) or made.__module__ != name:
            continue
        for used in made.py_func.__code__.co_names:
            value = vars(module).get(used)
            if value is None or isinstance(value, ModuleType | BuiltinFunctionType | Kernel):
                continue
            # numpy's types and the like belong to numpy, whose version is in the digest.
            if getattr(type(value), "__module__", "") == "builtins" or isinstance(
                value, np.generic | np.ndarray
            ):
                assert imported.get(used, name) in MODULES, (made.name, used)


@pytest.mark.parametrize(
    ("path", "matters"),
    [
        ("first/callee.py", True),
        ("second/caller.py", True),
        ("runtime/kernels.py", True),
        ("runtime/errors.py", False),
    ],
)
def test_the_digest_follows_the_text_of_kernels(tmp_path, path, matters):
    package = SmallPackage(tmp_path).package
    before = kernels.digest(package)
    (package / path).write_text((package / path).read_text(encoding="utf-8") + "\n# changed\n")
    assert (kernels.digest(package) != before) is matters


def test_the_digest_follows_versions_and_processor(tmp_path, monkeypatch):
    from llvmlite import binding

    package = SmallPackage(tmp_path).package
    before = kernels.digest(package)
    for name in ("get_process_triple", "get_host_cpu_name"):
        with monkeypatch.context() as patch:
            patch.setattr(binding, name, lambda: "another")
            assert kernels.digest(package) != before
    with monkeypatch.context() as patch:
        patch.setattr(binding, "get_host_cpu_features", lambda: binding.FeatureMap(avx=True))
        assert kernels.digest(package) != before
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        (tmp_path / ".numba_config.yaml").write_text("opt: 1\n")
        assert kernels.digest(package) != before
    with monkeypatch.context() as patch:
        patch.setattr(kernels.importlib.metadata, "version", lambda name: "0")
        assert kernels.digest(package) != before
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_OPT", "1")
        assert kernels.digest(package) != before
        patch.delenv("NUMBA_OPT")
        patch.setenv("NUMBA_CACHE_DIR", "elsewhere")
        assert kernels.digest(package) == before
    assert kernels.digest(package) == before
