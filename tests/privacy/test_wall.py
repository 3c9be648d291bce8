"""No module but curators and the reader has a way to open what is private: by the sources.

`Private.open` refuses other callers when the program runs. What could get round it, Python's own
ways to look into objects, frames and memory, has no place in the package.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dprepro.privacy.private_rows import CURATOR, READER, may_open
from tests.privacy.ways_in import name_of, ways_in

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "dprepro").rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def misplaced(module: str) -> bool:
    """Return whether a module may open what is private, but is not the curator of a method.

    One other curator measures how good a released model is on rows that were held out.
    """
    fits = re.fullmatch(rf"dprepro\.methods\.\w+\.{CURATOR}", module)
    return may_open(module) and module not in (READER, "dprepro.release.curator") and not fits


def test_no_module_gets_round_the_wall() -> None:
    found = {
        module_of(path): ways_in(path.read_text(encoding="utf-8"), module_of(path))
        for path in SOURCES
    }
    assert len(found) > 300
    assert {module: ways for module, ways in found.items() if ways} == {}


def test_curators_are_in_the_packages_of_methods_but_for_that_of_held_out_rows() -> None:
    modules = [module_of(path) for path in SOURCES]
    assert [m for m in modules if misplaced(m)] == []
    assert {m.split(".")[-2] for m in modules if m.endswith(f".{CURATOR}")} >= {
        "dp_ebm", "dp_ebm_plus", "dpboost", "lazybb", "release",
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
    assert hands_out(path.read_text(encoding="utf-8")) == []


def test_planted_methods_that_open_for_others_are_found() -> None:
    assert hands_out("def opened(self):\n    return self._exact.open()") == [2]


@pytest.mark.parametrize(
    "module",
    ["dprepro.curator", "dprepro.privacy.curator", "dprepro.methods.curator", "curator",
     "dprepro.report.ebm.curator"],
)  # fmt: skip
def test_planted_curators_elsewhere_are_found(module: str) -> None:
    assert misplaced(module)


@pytest.mark.parametrize(
    "module", ["dprepro.methods.dp_ebm.curator", "dprepro.methods.dp_bag.curator"]
)
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
        "import dprepro.privacy.query as wall\nwall.may_open = lambda module: True",
        "from dprepro.privacy import query as private\nprivate.CURATOR = 'binning'",
        "import dprepro.privacy.query\ndprepro.privacy.private.may_open = bool",
        "from dprepro.privacy.query import Private\nPrivate.open = peek",
        "from dprepro.privacy.curator_base import Curator\ndel Curator._announce",
        "class Mine: pass\nMine.open = peek",
        "from dprepro.methods.dp_ebm import curator\ncurator.DPEBMCurator._check_relation = print",
        "from dprepro.methods.dp_ebm import curator\nfor curator.boost in [spy]: pass",
        "from dprepro.privacy import query as private\nsetattr(private, 'may_open', bool)",
        "importlib.import_module('dprepro.privacy.query').may_open = bool",
        "setattr(importlib.import_module('dprepro.privacy.query'), 'may_open', bool)",
        "type(rows).open = peek",
        "kind = type(rows)\nkind.open = peek",
        "from dprepro.privacy import query as private\nwall = private\nwall.may_open = bool",
        "cls.open = peek",
        "rows.__class__.open = peek",
        "rows.__class__ = Open",
        "object.__setattr__(query, 'bound', 9.0)",
        "object.__setattr__(self, name, 9.0)",
        # A module that calls itself a curator.
        "import sys\nsys.modules[__package__].__name__ = 'curator'",
        "import sys\nsys.modules['dprepro.methods.dp_ebm.curator']",
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
        "builtins.getattr(rows, name)",
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
    assert ways_in(source, "dprepro.methods.dp_ebm.binning")


@pytest.mark.parametrize(
    "source",
    ["import re\nre.compile('a')", "import inspect\ninspect.signature(f)", "if __name__ == 'x': 1",
     "'compile this'", "rows.open()", "self.x = 1", "model.classes_ = labels", "tags.x.y = True",
     "getattr(estimator, 'ledger_', None)", "object.__setattr__(self, 'x', 1)", "np.stack(parts)",
     "import os\nos.environ['A'] = 'b'", "import traceback\ntraceback.print_exception(error)"],
)  # fmt: skip
def test_ordinary_code_is_no_fault(source: str) -> None:
    assert ways_in(source, "dprepro.methods.dp_ebm.binning") == []


def reached_into(source: str) -> list[str]:
    """Return attributes with an underscore that no class of this module has itself."""
    nodes = list(ast.walk(ast.parse(source)))
    private = [n for n in nodes if isinstance(n, ast.Attribute) and re.match(r"_(?!_)", n.attr)]
    own = {n.attr for n in private if name_of(n.value) in ("self", "cls")}
    own |= {n.name for n in nodes if isinstance(n, ast.FunctionDef)}
    own |= {n.attr for n in private if isinstance(n.value, ast.Call)}  # super()._x
    return [f"{n.attr}, line {n.lineno}" for n in private if n.attr not in own]


METHODS = [
    path for path in sorted((ROOT / "dprepro/methods").glob("*/*.py")) if path.stem != CURATOR
]


def test_no_method_reaches_into_a_curator() -> None:
    """From the generator in a curator the noise could be drawn again, and subtracted."""
    found = {module_of(path): reached_into(path.read_text(encoding="utf-8")) for path in METHODS}
    assert len(found) > 50
    assert {module: names for module, names in found.items() if names} == {}


def test_reaching_in_is_found() -> None:
    source = "curator._source.generator\nself._x\ncls._y\nsuper()._z()\ncurator._uses[0] = 1"
    assert reached_into(source) == ["_source, line 1", "_uses, line 5"]
