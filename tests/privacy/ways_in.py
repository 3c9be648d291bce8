"""What a source has that could open what is private, or put something in the place of the wall."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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
    "dprepro.privacy.private_rows": {"_getframe", "f_globals"},
    # Of the types in a kernel's signature, without builtins.
    # It also enters packages without their contents, and sets its own flag of the kernels.
    "dprepro.runtime.kernels": {
        "eval",
        "__code__",
        "vars",
        "sys.modules",
        "module_from_spec",
    },
    # What a template of the page may use.
    "dprepro.report.web": {"globals"},
    # It imports the public names when they are asked for, and keeps them.
    "dprepro": {"globals", "getattr(..., name)"},
    # It asks which code raised an error.
    "dprepro.runtime.errors": {"tb_frame", "tb_next", "__traceback__"},
    # It names the lines where an error arose, by `traceback.extract_tb`, which keeps no value.
    "dprepro.experiment.worker": {"__traceback__"},
    # It loads the methods of a user.
    "dprepro.methods.plugins": {
        "sys.modules",
        "spec_from_file_location",
        "module_from_spec",
        "getattr(..., name)",  # fields of an entry
    },
    # Tags of scikit-learn's, which know nothing of a fit.
    "dprepro.estimators.base": {"setattr(..., name)"},
    # The class of an estimator, by the name that its entry has. The line of the user's file where
    # an error arose is found as below.
    "dprepro.methods.entry": {"getattr(..., name)", "__traceback__"},
    # What a fit found, to forget it: it has no way into `Private`, which has no such attributes.
    "dprepro.estimators.inputs": {"vars", "delattr(..., name)"},
    # Fields of dataclasses of results and audits, without rows.
    "dprepro.experiment.record": {"vars"},
    "dprepro.experiment.packed": {"vars"},
    "dprepro.results.folder": {"vars"},
    # Fields of checked YAML files, and of their errors.
    "dprepro.additive.record": {"getattr(..., name)"},
    "dprepro.data.card_parts": {"getattr(..., kind)"},
    "dprepro.data.fingerprint": {"getattr(..., key)"},
    "dprepro.papers.schema": {"getattr(..., field)", "getattr(..., field.removesuffix('s'))"},
    # A list of the modules of audits, and a function of scikit-learn's data sets: no rows are near.
    "dprepro.audit.subjects": {"getattr(..., attribute)"},
    "dprepro.data.sources": {"getattr(..., f'load_{source.sklearn}')"},
    # How long a download by OpenML's client may take, which server it asks, and where it caches.
    "dprepro.data.network": {"requests.Session.request", "config.server"},
    # Whether IPython is loaded.
    "dprepro.experiment.notebook": {"sys.modules"},
    # Names of scikit-learn and SciPy that diffprivlib imports and newer releases lack: lent while
    # it is imported, and taken away again.
    "dprepro.methods.diffprivlib_adapter": {
        "vars",
        "setattr(..., attribute)",
        "setattr(module, attribute, value)",
        "delattr(..., attribute)",
        "delattr(module, attribute)",
        "logistic_regression.optimize",
    },
    # Whether NumPy is loaded, and its types by name.
    "dprepro.runtime.threads": {"sys.modules"},
    "dprepro.runtime.arguments": {"sys.modules", "getattr(..., name)"},
    # The pace of the collection of garbage, for commands that only read: what could look through
    # memory is in NAMES. How warnings look, that destructors without memory are not named, which
    # texts of YAML are numbers, and where new processes look for modules: other libraries leave
    # no other way. Each command is a function of its name.
    "dprepro.cli": {
        "gc",
        "warnings.showwarning",
        "sys.unraisablehook",
        "getattr(..., name.replace('-', '_'))",
    },
    "dprepro.runtime.yaml_files": {"_TextLoader.yaml_implicit_resolvers"},
    "dprepro.experiment.environment": {"getattr(..., name)", "setattr(..., name)"},
}


def ways_in(source: str, module: str) -> list[str]:
    """Return what a module has that could open what is private, with the line."""
    allowed = ALLOWED.get(module, set())
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    foreign = _modules_and_classes(nodes)
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    found = [suspect for node in nodes for suspect in _suspects(node)]
    for node in nodes:
        found += [*_patches(node, foreign), *_accesses(node, foreign, called)]
    return [f"{name}, line {line}" for name, line in found if name not in allowed]


def _modules_and_classes(nodes: list[ast.AST]) -> set[str]:
    """Return the names of classes and of what is imported, and other names for the same."""
    found = {"cls"} | {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    for _ in range(3):  # a name for a name for a name
        for node in nodes:
            if isinstance(node, ast.Assign) and _is_foreign(node.value, found):
                found |= {name_of(target) for target in node.targets} - {""}
    return found


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
        return name_of(node.func) in ("type", "import_module", "__import__", "super") or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "import_module"
        )
    return name_of(node) in foreign


def _accesses(node: ast.AST, foreign: set[str], called: set[int]) -> Iterator[tuple[str, int]]:
    """Yield accesses to attributes by a text that is made, and to those of modules and classes."""
    if isinstance(node, ast.Name) and node.id in ACCESSORS and id(node) not in called:
        yield node.id, node.lineno  # under another name it would not be found
    if isinstance(node, ast.Attribute) and node.attr in ACCESSORS:
        yield node.attr, node.lineno  # of `builtins`
    if not isinstance(node, ast.Call):
        return
    name, arguments = name_of(node.func), node.args
    if name in ACCESSORS and not _is_written_out(arguments):
        yield f"{name}(..., {ast.unparse(arguments[1]) if arguments[1:] else ''})", node.lineno
    sets = name in ("setattr", "delattr")
    if sets and arguments and _is_foreign(arguments[0], foreign):
        yield ast.unparse(node), node.lineno
    past = isinstance(node.func, ast.Attribute) and node.func.attr in ("__setattr__", "__delattr__")
    own = arguments and name_of(arguments[0]) == "self" and _is_written_out(arguments)
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
        if node.attr in NAMES and not (builtin and name_of(node.value) != "builtins"):
            yield node.attr, node.lineno
        if (dotted := f"{name_of(node.value)}.{node.attr}") in DOTTED:
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


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""
