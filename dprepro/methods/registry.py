"""The registry: which methods there are, found by looking through this folder and the user's.

Users' files of earlier versions import `Guarantee`, `Method` and `Setting` from here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType

from dprepro.methods.entry import Guarantee as Guarantee
from dprepro.methods.entry import Method
from dprepro.methods.entry import Setting as Setting
from dprepro.methods.own import code_of
from dprepro.methods.plugins import PLUGIN_VARIABLE, load_file, load_parts, methods_of, plugin_files
from dprepro.runtime.errors import DpreproError, nearest


def get(name: str) -> Method:
    """Return the method called `name`.

    Raises
    ------
    DpreproError
        If there is no such method; the message lists the names and the nearest match, or those
        of which `name` is the beginning.
    """
    methods = all_methods()
    refuse_shared(name, methods)
    if name not in methods:
        raise DpreproError(
            f"unknown method {name!r}{nearest(name, methods, 3) or '.'} "
            f"Allowed: {', '.join(methods)}. `dprepro methods` describes them. "
            f"Methods of your own are found in the folder that {PLUGIN_VARIABLE} names."
        )
    return methods[name]


def refuse_shared(given: str, known: Iterable[str]) -> None:
    """Ask which method is meant where a user gives what several names begin with, as ``dp-ebm``.

    Raises
    ------
    DpreproError
        If `given` is none of the `known` names, and two or more of them that are methods begin
        with it and a hyphen. The message has a line for each of these, with its gist.
    """
    names, start = {*known}, f"{given.strip().casefold()}-"
    if given in names:
        return
    found = [m for name, m in all_methods().items() if name in names and name.startswith(start)]
    if len(found) > 1:
        width = max(len(method.name) for method in found)
        lines = [f"  {method.name:<{width}}  {method.gist or method.title}" for method in found]
        raise DpreproError(
            "\n".join([f"{given!r} is the beginning of several methods; name one:", *lines])
        )


@cache
def all_methods() -> dict[str, Method]:
    """Return every method by name, sorted: this folder's, then those of ``$DPREPRO_METHODS``.

    A package joins by having a top-level ``METHODS``, a list of `Method`.
    """
    ours = (m for module in _package_modules() for m in getattr(module, "METHODS", []))
    found: dict[str, Method] = {}
    for method in chain(ours, _own_methods()):
        if method.name in found:
            places = [str(one.file or "dprepro itself") for one in (method, found[method.name])]
            raise DpreproError(
                f"{places[0]}: two methods are called {method.name!r}, this one and one of "
                f"{places[1]}; rename this one"
            )
        found[method.name] = method
    return dict(sorted(found.items()))


def _own_methods() -> Iterator[Method]:
    found: list[tuple[Path, list[Method]]] = []
    for path in plugin_files():
        found.append((path, methods_of(load_file(path), path)))
    helpers = [path for path, methods in found if not methods]
    for path, methods in found:
        yield from (replace(method, code=code_of(path, helpers)) for method in methods)


def audit_modules() -> list[ModuleType]:
    """Return the modules of audit cases: ``audit.py`` beside a method, ours and then the user's."""
    all_methods()  # loads the packages
    ours = [package for package in _package_modules() if _has_part(package, "audit")]
    return [
        *(importlib.import_module(f"{package.__name__}.audit") for package in ours),
        *load_parts("audit", "audit_case"),
    ]


def _has_part(package: ModuleType, name: str) -> bool:
    return any(info.name == name for info in pkgutil.iter_modules(package.__path__))


def _package_modules() -> list[ModuleType]:
    import dprepro.methods as package

    found = [info.name for info in pkgutil.iter_modules(package.__path__) if info.ispkg]
    return [importlib.import_module(f"dprepro.methods.{name}") for name in sorted(found)]
