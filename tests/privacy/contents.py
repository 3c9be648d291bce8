"""What can be reached from an object without opening what is private."""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.tree._tree import Tree

from dprepro.privacy.private_rows import Private

_PLAIN = (type(None), bool, int, float, complex, str, bytes, enum.Enum, np.generic)
_PUBLIC = (
    Private,  # keeps what it holds
    type, types.ModuleType, types.BuiltinFunctionType, np.ufunc,
    # A generator is moved by draws, whose number may depend on the number of rows.
    np.random.Generator, np.random.BitGenerator,
)  # fmt: skip
_LISTS = (list, tuple, set, frozenset, range)
_ITERATORS = tuple(type(iter(of)) for of in ([], (), range(0)))
_TABLES = (pd.DataFrame, pd.Series, pd.Index, sparse.sparray, sparse.spmatrix)


def contents(thing: Any, path: str = "", seen: set[int] | None = None) -> dict[str, Hashable]:
    """Return every value that can be reached, by the path to it: of arrays shape and bytes.

    Raises
    ------
    TypeError
        On a thing whose inside cannot be seen: teach `_parts` to.
    """
    seen = set() if seen is None else seen
    if isinstance(thing, _PLAIN):
        return {path: repr(thing)}
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return {path: (thing.shape, thing.tobytes())}
    if isinstance(thing, _PUBLIC) or id(thing) in seen:
        return {}
    seen.add(id(thing))
    found: dict[str, Hashable] = {}
    for name, part in _parts(thing, path):
        found.update(contents(part, path + name, seen))
    return found


def _parts(thing: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what a thing holds, each with the end of its path."""
    if isinstance(thing, _TABLES):
        values = thing.toarray() if sparse.issparse(thing) else thing.to_numpy()
        yield "", values
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield f"[{key!r}]", value
    elif isinstance(thing, np.ndarray):
        yield ".shape", thing.shape
        yield "", thing.ravel().tolist()
    elif isinstance(thing, Tree):
        for name in ("feature", "threshold", "children_left", "children_right", "value"):
            yield f".{name}", getattr(thing, name)
    elif isinstance(thing, _LISTS):
        items = sorted(thing, key=repr) if isinstance(thing, set | frozenset) else thing
        for k, item in enumerate(items):
            yield f"[{k}]", item
    elif isinstance(thing, types.FunctionType):
        for k, cell in enumerate(thing.__closure__ or ()):
            yield f".{thing.__code__.co_freevars[k]}", cell.cell_contents
        yield ".defaults", [thing.__defaults__, thing.__kwdefaults__]
    elif isinstance(thing, types.MethodType):
        yield ".self", thing.__self__
        yield ".function", thing.__func__
    elif isinstance(thing, functools.partial):
        yield ".partial", [thing.func, thing.args, thing.keywords]
    elif isinstance(thing, _ITERATORS):
        yield ".iterator", thing.__reduce__()
    elif isinstance(thing, types.GeneratorType):
        yield ".locals", {} if thing.gi_frame is None else dict(thing.gi_frame.f_locals)
    else:
        yield from _attributes(thing, path)


def _attributes(thing: Any, path: str) -> Iterator[tuple[str, Any]]:
    slots = [s for base in type(thing).__mro__ for s in getattr(base, "__slots__", ())]
    if not slots and not hasattr(thing, "__dict__"):
        raise TypeError(f"{path} is of {type(thing)}: teach {__name__} to look inside it")
    for name in [*slots, *getattr(thing, "__dict__", {})]:
        if hasattr(thing, name):
            yield f".{name}", getattr(thing, name)
