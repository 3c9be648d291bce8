"""Files of methods of the user's own: loads them, and says in one line what is wrong with one.

What is refused here names the file. No rows have been read by then, so a message of the user's own
code is shown. The entries of this package are checked by mypy and by tests instead.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from itertools import islice
from multiprocessing import parent_process
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from dprepro.data.domain import TaskKind
from dprepro.methods.entry import Guarantee, Method, blamed_on, kind_of
from dprepro.privacy.budget import Division
from dprepro.privacy.guarantee_status import Noise
from dprepro.runtime.errors import DpreproError, DpreproWarning, nearest

PLUGIN_VARIABLE = "DPREPRO_METHODS"
PACKAGE_FILE = "__init__.py"
"""What makes a folder a package."""
_PREFIX = "dprepro_plugin_"
_LONGEST_VALUE, _MOST_PARTS = 60, 5
"""Characters of a given text, and members of a collection, that are shown."""


def plugin_files() -> list[Path]:
    """Return the files, and those of the packages, in the folder of ``$DPREPRO_METHODS``, sorted.

    Raises
    ------
    DpreproError
        If the variable names no folder.
    """
    folder = os.environ.get(PLUGIN_VARIABLE)
    if not folder:
        return []
    if not Path(folder).is_dir():
        raise DpreproError(
            f"${PLUGIN_VARIABLE} is {folder!r}, which is not a folder; "
            "set it to a folder of Python files or packages that each define METHODS, or unset it"
        )
    return sorted([*Path(folder).glob("*.py"), *Path(folder).glob(f"*/{PACKAGE_FILE}")])


def load_file(path: Path) -> ModuleType:
    """Import a file, or the package whose ``__init__.py`` it is, with the modules beside it."""
    inside = [str(path.parent)] if path.name == PACKAGE_FILE else None
    name = f"{_PREFIX}{path.parent.name if inside else path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=inside)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with blamed_on(path, "cannot be imported"):
        spec.loader.exec_module(module)
    return module


def load_parts(*names: str) -> list[ModuleType]:
    """Return the modules called so in the packages that are loaded and have one."""
    folder = os.environ.get(PLUGIN_VARIABLE)
    found = []
    for part in sorted(Path(folder).glob("*/*.py")) if folder else []:
        package = f"{_PREFIX}{part.parent.name}"
        if part.stem in names and package in sys.modules:
            with blamed_on(part, "cannot be imported"):
                found.append(importlib.import_module(f"{package}.{part.stem}"))
    return found


def methods_of(module: ModuleType, path: Path) -> list[Method]:
    """Return the methods of a user's file, each with the file noted in it.

    A file without ``METHODS`` may be a helper of another one, so that is a warning.

    Raises
    ------
    DpreproError
        If ``METHODS`` is no list of `Method`, or one has a field of a wrong type or value.
    """
    if not hasattr(module, "METHODS"):
        if parent_process() is None:  # workers load the same files
            warnings.warn(
                f"{path}: defines no METHODS, so it adds no method. Give it a list "
                "`METHODS = [Method(...)]`; where it only helps other files, say `METHODS = []`",
                DpreproWarning,
                stacklevel=2,
            )
        return []
    given = module.METHODS
    if not isinstance(given, list | tuple):
        raise DpreproError(
            f"{path}: METHODS is {_shown(given)}, and must be a list of `Method`: "
            "write `METHODS = [Method(...)]`"
        )
    for position, method in enumerate(given):
        if not isinstance(method, Method):
            raise DpreproError(
                f"{path}: METHODS[{position}] is {_shown(method)}, and must be a `Method` of "
                "dprepro.methods.entry: write `METHODS = [Method(...)]`"
            )
        _check_fields(method, position, path)
    return [replace(method, file=path) for method in given]


def _check_fields(method: Method, position: int, path: Path) -> None:
    from dprepro.data.encode import ENCODINGS  # late: it imports pandas

    encodings = lambda value: isinstance(value, str) and value in ENCODINGS, _listed(ENCODINGS)
    for name, (is_allowed, allowed) in (_FIELDS | {"encoding": encodings}).items():
        value = getattr(method, name)
        if is_allowed(value):
            continue
        whose = f"METHODS[{position}]" if name == "name" else f"method {method.name!r}"
        near = nearest(value, ENCODINGS) if name == "encoding" and isinstance(value, str) else ""
        raise DpreproError(
            f"{path}: {whose}: `{name}` is {_shown(value)}{near or '.'} Allowed: {allowed}"
        )


def _shown(value: object) -> str:
    """Return a value as a message may show it: short, on one line, and no data of an object."""
    if isinstance(value, str | int | float) and not isinstance(value, Enum):
        text = repr(value)
        return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
    if isinstance(value, list | tuple | set | frozenset) and value:
        parts = ", ".join(sorted({_shown(one) for one in islice(value, _MOST_PARTS)}))
        more = ", ..." if len(value) > _MOST_PARTS else ""
        return f"a {type(value).__name__} of {parts}{more}"
    return kind_of(value)


def _listed(values: Iterable[str]) -> str:
    return ", ".join(map(repr, values))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _are_tasks(value: object) -> bool:
    if not isinstance(value, set | frozenset | list | tuple) or not value:
        return False
    return all(isinstance(one, str) and one in _KINDS for one in value)


def _are_defaults(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for one in value)


def _is_module_name(value: object) -> bool:
    return value is None or (
        isinstance(value, str) and all(part.isidentifier() for part in value.split("."))
    )


def _is_difference(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _one_of(kind: type[Enum], or_none: bool = False) -> _Check:
    """Return the check of a member of `kind`. Its text is none: `is` compares members."""
    members = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
    return (
        lambda value: isinstance(value, kind) or (or_none and value is None),
        f"{members}{', None' if or_none else ''} (of {kind.__module__})",
    )


_Check = tuple[Callable[[Any], bool], str]
"""Whether a value is allowed, and what is, in words."""

_KINDS = get_args(TaskKind)
_TEXT = "a text that is not empty"
_TEXTS = "a tuple or list of texts; () for none"
_SWITCH = (_is_switch, "True, False")

# `Method` itself refuses a wrong `adjacency`.
_FIELDS: dict[str, _Check] = {
    "name": (_is_text, _TEXT),
    "title": (_is_text, _TEXT),
    "tasks": (_are_tasks, f"a set with one or more of {_listed(_KINDS)}"),
    "guarantee": _one_of(Guarantee),
    "assumes": (_are_texts, _TEXTS),
    "reference": (lambda value: isinstance(value, str), "a text"),
    "build": (callable, "a function: `def build(setting, **params)`"),
    "takes_epsilon": _SWITCH,
    "version": (_is_whole, "a whole number, such as 2"),
    "defaults": (_are_defaults, "a dict of parameters by name, such as {'max_depth': 3}"),
    "requires": (_is_module_name, "the name of a module, or None"),
    "noise": _one_of(Noise, or_none=True),
    "keeps_ledger": _SWITCH,
    "takes_tables": _SWITCH,
    "divides": _one_of(Division),
    "repeats_within": (_is_difference, "a number from 0 on"),
    "cite": (_are_texts, _TEXTS),
    "gist": (lambda value: isinstance(value, str), "a text"),
    "form": (lambda value: isinstance(value, str), "a text"),
}
