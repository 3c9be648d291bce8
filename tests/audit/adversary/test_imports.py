"""The adversary shares no code with what it audits."""

import ast
import sys
from pathlib import Path

import pytest

import dprepro.audit.adversary as package

HEARS = {"transcript": {"dprepro.privacy.release"}}
"""What hears the answers: it computes nothing."""
MODULES = sorted(Path(package.__file__).parent.glob("*.py"))


def imported(path):
    """Return the modules that a file imports, at any place in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_imports_numpy_and_its_like_alone(path):
    others = {
        name
        for name in imported(path)
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy"}
        and not name.startswith(package.__name__)
    }
    assert others == HEARS.get(path.stem, set())
    assert "importlib" not in imported(path)


def test_an_import_in_a_function_is_found(tmp_path):
    path = tmp_path / "sly.py"
    path.write_text("def f():\n    from dprepro.ebm import kernel\n    return kernel\n")
    assert imported(path) == {"dprepro.ebm"}
