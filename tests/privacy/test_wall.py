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

DOTTED = {"sys.modules", "inspect.stack", "inspect.trace"}
"""Attributes of a module whose own names are too common to be looked for."""

UNRENAMED = {"sys", "inspect", "builtins", "operator", "traceback"}
"""Modules that are imported under no other name, so that `DOTTED` and `NAMES` find their uses."""

ACCESSORS = {"getattr", "setattr", "delattr", "hasattr"}
"""Their second argument is a text that is written out, else no text here says what they touch."""

IDENTITY = {"__name__", "__module__", "__class__", "__bases__", "__dict__"}
"""Attributes that nothing assigns to: they say which module or class a thing is of."""

NAMES = {
    "_Private__value", "__getattribute__", "__globals__", "__closure__", "cell_contents",
    "gi_frame", "f_globals", "f_locals", "f_back", "tb_frame", "_getframe", "_current_frames",
    "currentframe", "getmembers", "getmembers_static", "getattr_static", "getclosurevars",
    "getgeneratorlocals", "getouterframes", "getinnerframes", "get_referents", "get_referrers",
    "getrefcount", "get_objects", "settrace", "setprofile", "exec", "eval", "compile",
    "FunctionType", "__code__", "globals", "capture_locals", "cr_frame", "ag_frame",
    "__traceback__", "tb_next", "exc_info", "last_traceback", "last_exc", "last_value",
    "walk_tb", "walk_stack", "StackSummary", "TracebackException", "locals", "vars", "__dict__",
    "__get__", "attrgetter", "methodcaller", "spec_from_file_location", "module_from_spec",
}  # fmt: skip
"""Attributes, names and texts by which an object, a frame or a function is looked into."""

ALLOWED = {
    # It asks who is calling.
    "dprepro.privacy.private": {"_getframe", "f_globals"},
    # Of the types in a kernel's signature, without builtins.
    # It also enters packages without their contents, and sets its own flag of the kernels.
    "dprepro.compiled.build": {
        "eval",
        "__code__",
        "vars",
        "sys.modules",
        "module_from_spec",
        "kernels.building",
    },
    # What a template of the page may use.
    "dprepro.report.page.html": {"globals"},
    # It imports the public names when they are asked for, and keeps them.
    "dprepro": {"globals", "getattr(..., name)"},
    # It asks which code raised an error.
    "dprepro.errors": {"tb_frame", "tb_next", "__traceback__"},
    # It names the lines where an error arose, by `traceback.extract_tb`, which keeps no value.
    "dprepro.experiment.worker": {"__traceback__"},
    # It loads the methods of a user.
    "dprepro.methods.registry": {"sys.modules", "spec_from_file_location", "module_from_spec"},
    # What a fit found, to forget it: it has no way into `Private`, which has no such attributes.
    "dprepro.estimators.inputs": {"vars", "delattr(..., name)"},
    # Fields of dataclasses of results and audits, without rows.
    "dprepro.experiment.record": {"vars"},
    "dprepro.audit.cases.dp_ebm_plus": {"vars"},
    # Fields of checked YAML files, and of their errors.
    "dprepro.additive.record": {"getattr(..., name)"},
    "dprepro.data.card_parts": {"getattr(..., kind)"},
    "dprepro.data.identity": {"getattr(..., key)"},
    "dprepro.published.schema": {"getattr(..., field)", "getattr(..., field.removesuffix('s'))"},
    # A list of the modules of audits, and a function of scikit-learn's data sets: no rows are near.
    "dprepro.audit.cases": {"getattr(..., attribute)"},
    "dprepro.data.sources": {"getattr(..., f'load_{source.sklearn}')"},
    # How warnings look, how long a download may take, which texts of YAML are numbers, and where
    # new processes look for modules: other libraries leave no other way to say it.
    "dprepro.cli": {"warnings.showwarning"},
    "dprepro.data.openml_source": {"requests.Session.request"},
    "dprepro.yaml_source": {"_TextLoader.yaml_implicit_resolvers"},
    "dprepro.experiment.safe_path": {"getattr(..., name)", "setattr(..., name)"},
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def ways_in(source: str, module: str) -> list[str]:
    """Return what a module has that could open what is private, with the line."""
    allowed = ALLOWED.get(module, set())
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    foreign = _imported_names(nodes) | {n.name for n in nodes if isinstance(n, ast.ClassDef)}
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    found = [suspect for node in nodes for suspect in _suspects(node)]
    for node in nodes:
        found += [*_patches(node, foreign), *_accesses(node, foreign, called)]
    return [f"{name}, line {line}" for name, line in found if name not in allowed]


def _imported_names(nodes: list[ast.AST]) -> set[str]:
    """Return the names that imports bind."""
    return {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _patches(node: ast.AST, foreign: set[str]) -> Iterator[tuple[str, int]]:
    """Yield what puts something in the place of an attribute of a module or class."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)):
        return
    if node.attr in IDENTITY or _is_foreign(node.value, foreign):
        yield ast.unparse(node), node.lineno


def _is_foreign(node: ast.AST, foreign: set[str]) -> bool:
    """Return whether an expression is a module, a class, or something that belongs to one."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr in IDENTITY:
            return True
        node = node.value
    if isinstance(node, ast.Call):
        return _names(node.func) in ("type", "import_module", "__import__", "super") or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "import_module"
        )
    return _names(node) in foreign


def _accesses(node: ast.AST, foreign: set[str], called: set[int]) -> Iterator[tuple[str, int]]:
    """Yield accesses to attributes by a text that is made, and to those of modules and classes."""
    if isinstance(node, ast.Name) and node.id in ACCESSORS and id(node) not in called:
        yield node.id, node.lineno  # under another name it would not be found
    if not isinstance(node, ast.Call):
        return
    name, arguments = _names(node.func), node.args
    if name in ACCESSORS and not _is_written_out(arguments):
        yield f"{name}(..., {ast.unparse(arguments[1]) if arguments[1:] else ''})", node.lineno
    sets = name in ("setattr", "delattr")
    if sets and arguments and _is_foreign(arguments[0], foreign):
        yield ast.unparse(node), node.lineno
    past = isinstance(node.func, ast.Attribute) and node.func.attr in ("__setattr__", "__delattr__")
    own = arguments and _names(arguments[0]) == "self" and _is_written_out(arguments)
    if past and not own:
        yield ast.unparse(node), node.lineno


def _is_written_out(arguments: list[ast.expr]) -> bool:
    """Return whether the second argument is a text."""
    second = arguments[1] if arguments[1:] else None
    return isinstance(second, ast.Constant) and isinstance(second.value, str)


def _suspects(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name in _imported(node):
            last = name.rpartition(".")[2]
            if {name, name.partition(".")[0]} & MODULES or last in NAMES or name in DOTTED:
                yield name, node.lineno
        renamed = [a.name for a in node.names if a.asname and a.name in UNRENAMED]
        for name in renamed if isinstance(node, ast.Import) else []:
            yield f"{name} under another name", node.lineno
    elif isinstance(node, ast.Attribute):
        # `re.compile` and others are not the builtins.
        builtin = node.attr in ("exec", "eval", "compile")
        if node.attr in NAMES and not (builtin and _names(node.value) != "builtins"):
            yield node.attr, node.lineno
        if (dotted := f"{_names(node.value)}.{node.attr}") in DOTTED:
            yield dotted, node.lineno
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
        # Something else in the place of what a module or a class has.
        "import dprepro.privacy.private as wall\nwall.may_open = lambda module: True",
        "from dprepro.privacy import private\nprivate.CURATOR = 'binning'",
        "import dprepro.privacy.private\ndprepro.privacy.private.may_open = bool",
        "from dprepro.privacy.private import Private\nPrivate.open = peek",
        "from dprepro.privacy.release import Curator\ndel Curator._announce",
        "class Mine: pass\nMine.open = peek",
        "from dprepro.ebm import curator\ncurator.DPEBMCurator._check_relation = print",
        "from dprepro.ebm import curator\nfor curator.boost in [spy]: pass",
        "from dprepro.privacy import private\nsetattr(private, 'may_open', bool)",
        "importlib.import_module('dprepro.privacy.private').may_open = bool",
        "setattr(importlib.import_module('dprepro.privacy.private'), 'may_open', bool)",
        "type(rows).open = peek",
        "rows.__class__.open = peek",
        "rows.__class__ = Open",
        "object.__setattr__(query, 'bound', 9.0)",
        "object.__setattr__(self, name, 9.0)",
        # A module that calls itself a curator.
        "import sys\nsys.modules[__package__].__name__ = 'curator'",
        "import sys\nsys.modules['dprepro.ebm.curator']",
        "import sys as machine",
        "from sys import modules",
        "module.__name__ = 'curator'",
        "function.__module__ = 'curator'",
        "importlib.util.module_from_spec(spec)",
        # Names that are put together when the program runs.
        "getattr(rows, '_Pri' + 'vate__value')",
        "getattr(rows, f'_{kind}__value')",
        "getattr(rows, name)",
        "setattr(rows, name, value)",
        "look = getattr",
        "map(getattr, rows, names)",
        "operator.attrgetter(name)(rows)",
        "from operator import methodcaller",
        "vars(Private)['_Pri' + 'vate__value'].__get__(rows)",
        "Private.__dict__",
        "print(locals())",
        # Frames of errors.
        "error.__traceback__.tb_next",
        "sys.exc_info()[2]",
        "from sys import exc_info",
        "sys.last_traceback",
        "traceback.walk_tb(trace)",
        "traceback.walk_stack(None)",
        "from traceback import TracebackException",
        "traceback.StackSummary.extract(frames)",
        "inspect.trace()",
        "from inspect import stack",
    ],
)
def test_planted_ways_in_are_found(source: str) -> None:
    assert ways_in(source, "dprepro.ebm.binning")


@pytest.mark.parametrize(
    "source",
    ["import re\nre.compile('a')", "import inspect\ninspect.signature(f)", "if __name__ == 'x': 1",
     "'compile this'", "rows.open()", "self.x = 1", "model.classes_ = labels", "tags.x.y = True",
     "getattr(estimator, 'ledger_', None)", "object.__setattr__(self, 'x', 1)", "np.stack(parts)",
     "import os\nos.environ['A'] = 'b'", "import traceback\ntraceback.print_exception(error)"],
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
