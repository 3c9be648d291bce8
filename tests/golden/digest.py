"""A digest of what a fitted model releases: the same for the same bits, and for no others.

`without_numbers` leaves the floating-point numbers out and returns them: the rest must be the same
on every processor, and they nearly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from sklearn.tree._tree import Tree

UNRELEASED = {"ledger_", "domain_", "n_features_in_", "feature_names_in_"}
"""Fitted attributes that no release is in: scikit-learn's own, the public domain, and the ledger,
whose scales are compared by themselves."""


def digest(value: Any) -> str:
    """Return 16 hexadecimal digits that name the bits of a value."""
    found = hashlib.sha256()
    for part in _parts(value):
        found.update(part)
    return found.hexdigest()[:16]


def without_numbers(value: Any) -> tuple[str, np.ndarray]:
    """Return a digest of all but the finite floating-point numbers, and these, float64 (n,).

    The digest tells how many there are and where, and infinities and NaN.
    """
    numbers: list[np.ndarray] = []
    found = hashlib.sha256()
    for part in _parts(value, numbers):
        found.update(part)
    return found.hexdigest()[:16], np.concatenate([np.zeros(0), *numbers])


def released(model: Any) -> dict[str, Any]:
    """Return the fitted attributes of an estimator, by name; a list of no pairs is none."""
    found = {
        name: value
        for name, value in sorted(vars(model).items())
        if name.endswith("_") and not name.startswith("_") and name not in UNRELEASED
    }
    if not found.get("pairs_", True):
        del found["pairs_"]
    return found


def _parts(value: Any, numbers: list[np.ndarray] | None = None) -> Iterator[bytes]:
    """Yield the bytes of a value, each with what kind it is and how long.

    Where `numbers` is given, finite floating-point numbers are added to it, and not yielded.
    """
    if isinstance(value, np.ndarray) and value.dtype.names:
        items = [(name, value[name]) for name in value.dtype.names]  # without padding
        yield from _items(items, numbers)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield _bytes(value, numbers)
    elif isinstance(value, float | np.floating) and numbers is not None:
        yield b"float;"
        yield _bytes(np.array([float(value)]), numbers)
    elif isinstance(value, float | np.floating):
        yield f"float {float(value).hex()};".encode()
    elif isinstance(value, Enum | str | int | np.integer | np.bool_ | None):
        yield f"plain {value!r};".encode()
    elif isinstance(value, Mapping):
        yield from _items(sorted(value.items(), key=lambda item: repr(item[0])), numbers)
    elif isinstance(value, list | tuple | np.ndarray):
        yield f"list {len(value)};".encode()
        for item in value:
            yield from _parts(item, numbers)
    else:
        yield type(value).__name__.encode()
        yield from _items(list(_state(value).items()), numbers)


def _bytes(array: np.ndarray, numbers: list[np.ndarray] | None) -> bytes:
    if numbers is not None and array.dtype.kind == "f":
        numbers.append(array[np.isfinite(array)].astype(float))
        array = np.where(np.isfinite(array), 0, array)
    return np.ascontiguousarray(array).tobytes()


def _items(items: list[tuple[Any, Any]], numbers: list[np.ndarray] | None) -> Iterator[bytes]:
    yield f"mapping {len(items)};".encode()
    for key, value in items:
        yield from _parts(key)
        yield from _parts(value, numbers)


def _state(value: Any) -> Mapping[str, Any]:
    if is_dataclass(value):
        state = {field.name: getattr(value, field.name) for field in fields(value)}
        # Of features without an order nothing is said: so it was before there were any with one.
        return {name: said for name, said in state.items() if name != "ordered" or said}
    if hasattr(value, "get_params"):
        return released(value)
    if isinstance(value, Tree):
        state = value.__getstate__()
        return {"nodes": state["nodes"], "labels": np.argmax(state["values"], axis=-1)}
    raise TypeError(f"a model holds a {type(value).__name__}: say how its bits are told")
