"""No module but curators and the reader has a way to open what is private: by the sources.

`Private.open` refuses other callers when the program runs. What could get round it, Python's own
ways to look into objects, frames and memory, has no place in the package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dprepro.privacy.private import CURATOR, READER, may_open

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "dprepro").rglob("*.py"))
METHOD_PACKAGES = {"ebm", "ebm_plus", "dpboost", "lazybb", "llm", "baselines"}
"""The packages that fit models to private rows: each may have curators, nothing else may."""

MODULES = {"gc", "ctypes", "unittest.mock", "mock"}
"""They find objects, read memory, or put something else in the place of a function."""

NAMES = {
    "_Private__value", "__getattribute__", "__globals__", "__closure__", "cell_contents",
    "gi_frame", "f_globals", "f_locals", "f_back", "tb_frame", "_getframe", "_current_frames",
    "currentframe", "getmembers", "getmembers_static", "getattr_static", "getclosurevars",
    "getgeneratorlocals", "getouterframes", "getinnerframes", "get_referents", "get_referrers",
    "getrefcount", "get_objects", "settrace", "setprofile", "exec", "eval", "compile",
    "FunctionType", "__code__", "globals", "capture_locals",
}  # fmt: skip
"""Attributes, names and texts by which an object, a frame or a function is looked into."""

ALLOWED = {
    # It asks who is calling.
    "dprepro.privacy.private": {"_getframe", "f_globals"},
    # Of the types in a kernel's signature, without builtins.
    "dprepro.compiled.build": {"eval", "__code__"},
    # What a template of the page may use.
    "dprepro.report.page.html": {"globals"},
    # It keeps the public names that it has imported.
    "dprepro": {"globals"},
    # It asks which code raised an error.
    "dprepro.errors": {"tb_frame"},
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def ways_in(source: str, module: str) -> list[str]:
    """Return what a module has that could open what is private, with the line."""
    allowed = ALLOWED.get(module, set())
    found = []
    for node in ast.walk(ast.parse(source)):
        found += [f"{name}, line {line}" for name, line in _suspects(node) if name not in allowed]
    return found


def _suspects(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name in _imported(node):
            if {name, name.partition(".")[0]} & MODULES or name.rpartition(".")[2] in NAMES:
                yield name, node.lineno
    elif isinstance(node, ast.Attribute):
        # `re.compile` and others are not the builtins.
        builtin = node.attr in ("exec", "eval", "compile")
        if node.attr in NAMES and not (builtin and _names(node.value) != "builtins"):
            yield node.attr, node.lineno
    elif isinstance(node, ast.Name):
        if node.id in NAMES or (node.id == "__name__" and isinstance(node.ctx, ast.Store)):
            yield node.id, node.lineno
    elif isinstance(node, ast.Constant) and _is_suspect_text(node.value):
        yield str(node.value), node.lineno


def _is_suspect_text(value: object) -> bool:
    return isinstance(value, str) and (value in NAMES | MODULES or "_Private__" in value)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return names
    return [node.module or "", *(f"{node.module}.{name}" for name in names)]


def _names(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def misplaced(module: str) -> bool:
    """Return whether a module may open what is private, but is not where a curator belongs."""
    root, _, rest = module.partition(".")
    package = rest.partition(".")[0] if "." in rest else ""
    fits = root == "dprepro" and package in METHOD_PACKAGES
    return may_open(module) and module != READER and not fits


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_no_module_gets_round_the_wall(path: Path) -> None:
    assert ways_in(path.read_text(), module_of(path)) == []


def test_curators_are_in_the_packages_of_methods_only() -> None:
    modules = [module_of(path) for path in SOURCES]
    assert [m for m in modules if misplaced(m)] == []
    assert {m.split(".")[1] for m in modules if m.endswith(f".{CURATOR}")} >= {
        "ebm", "ebm_plus", "dpboost", "lazybb",
    }  # fmt: skip


def hands_out(source: str) -> list[int]:
    """Return the lines where a function returns or yields what it opened."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Return | ast.Yield)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "open"
    ]


@pytest.mark.parametrize("path", [p for p in SOURCES if may_open(module_of(p))], ids=module_of)
def test_no_curator_hands_out_what_it_opened(path: Path) -> None:
    assert hands_out(path.read_text()) == []


def test_planted_methods_that_open_for_others_are_found() -> None:
    assert hands_out("def opened(self):\n    return self._exact.open()") == [2]


@pytest.mark.parametrize(
    "module",
    ["dprepro.curator", "dprepro.privacy.curator", "dprepro.methods.curator", "curator",
     "dprepro.report.ebm.curator"],
)  # fmt: skip
def test_planted_curators_elsewhere_are_found(module: str) -> None:
    assert misplaced(module)


@pytest.mark.parametrize("module", ["dprepro.ebm.curator", "dprepro.baselines.dp_bag.curator"])
def test_curators_of_methods_are_no_fault(module: str) -> None:
    assert not misplaced(module)
    assert may_open(module)


@pytest.mark.parametrize(
    "source",
    [
        "rows._Private__value",
        "getattr(rows, '_Private__value')",
        "getattr(rows, '_Private__' + 'value')",
        "object.__getattribute__(rows, name)",
        "import gc",
        "from gc import get_referents",
        "import ctypes.util",
        "import unittest.mock",
        "from unittest import mock",
        "from unittest.mock import patch",
        "importlib.import_module('unittest.mock')",
        "inspect.currentframe().f_back.f_locals",
        "from inspect import getattr_static",
        "sys._getframe(1)",
        "function.__globals__['__name__']",
        "exec(text, {'__name__': 'curator'})",
        "builtins.exec(text)",
        "__name__ = 'curator'",
        "rows.open.__closure__[0].cell_contents",
        "sys.settrace(spy)",
    ],
)
def test_planted_ways_in_are_found(source: str) -> None:
    assert ways_in(source, "dprepro.ebm.binning")


@pytest.mark.parametrize(
    "source",
    ["import re\nre.compile('a')", "import inspect\ninspect.signature(f)", "if __name__ == 'x': 1",
     "'compile this'", "rows.open()"],
)  # fmt: skip
def test_ordinary_code_is_no_fault(source: str) -> None:
    assert ways_in(source, "dprepro.ebm.binning") == []


def reached_into(source: str) -> list[str]:
    """Return attributes with an underscore that no class of this module has itself."""
    nodes = list(ast.walk(ast.parse(source)))
    private = [n for n in nodes if isinstance(n, ast.Attribute) and re.match(r"_(?!_)", n.attr)]
    own = {n.attr for n in private if _names(n.value) in ("self", "cls")}
    own |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    own |= {n.attr for n in private if isinstance(n.value, ast.Call)}  # super()._x
    return [f"{n.attr}, line {n.lineno}" for n in private if n.attr not in own]


METHODS = [
    path
    for name in sorted(METHOD_PACKAGES)
    for path in sorted((ROOT / "dprepro" / name).rglob("*.py"))
    if path.stem != "curator"
]


@pytest.mark.parametrize("path", METHODS, ids=module_of)
def test_no_method_reaches_into_a_curator(path: Path) -> None:
    """From the generator in a curator the noise could be drawn again, and subtracted."""
    assert reached_into(path.read_text()) == []


def test_reaching_in_is_found() -> None:
    source = "curator._source.generator\nself._x\ncls._y\nsuper()._z()\ncurator._uses[0] = 1"
    assert reached_into(source) == ["_source, line 1", "_uses, line 5"]
