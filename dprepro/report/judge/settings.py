"""The values that a config or a method has, to hold against those that a document states."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from dprepro.errors import DpreproError, nearest
from dprepro.published.facts import SettingsOf
from dprepro.resources import builtin

if TYPE_CHECKING:
    from dprepro.config import ExperimentConfig
    from dprepro.config_keys import MethodEntry


def found_values(stated: SettingsOf) -> dict[str, Any]:
    """Return our value of everything that `stated` names.

    Raises
    ------
    DpreproError
        If there is no such built-in config, key, method or parameter.
    """
    found: dict[str, Any] = {}
    if stated.config is not None:
        keys = dict(_config(stated.config))
        found |= _select(keys, stated.keys, f"config {stated.config}")
    if stated.method is not None:
        owner = f"{stated.method} in {stated.config or 'its defaults'}"
        found |= _select(_grid(stated), stated.grid, owner)
        params = found_params(stated.config, stated.method, stated.epsilon)
        found |= _select(params, stated.params, owner)
    return found


def found_params(
    config: str | None, method: str, epsilon: float | None = None
) -> Mapping[str, Any]:
    """Return the parameters of a method: its defaults, and what a config has in their place.

    Parameters
    ----------
    config
        The name of a config, or None for the defaults alone.
    method
        A label in the config, or the name of a method.
    epsilon
        The privacy level whose own parameters count, if any.

    Raises
    ------
    DpreproError
        If there is no such config or method.
    """
    from dprepro.methods.registry import get

    if config is None:
        return get(method).defaults
    entry = _entry(config, method)
    own = entry.by_epsilon.get(epsilon, {}) if epsilon is not None else {}
    return ChainMap(own, entry.params, get(entry.method).defaults)  # type: ignore[arg-type]


def same(stated: Any, ours: Any) -> bool:
    """Whether two values agree; lists entry by entry, numbers up to the last binary digits."""
    if isinstance(stated, list):
        is_list = isinstance(ours, (list, tuple)) and len(stated) == len(ours)
        return is_list and all(map(same, stated, ours))
    if isinstance(stated, (int, float)) and isinstance(ours, (int, float)):
        return math.isclose(stated, ours, rel_tol=1e-9)
    return bool(stated == ours)


def _grid(stated: SettingsOf) -> Mapping[str, Any]:
    if not stated.grid or stated.config is None or stated.method is None:
        return {}
    return _entry(stated.config, stated.method).grid


@cache  # built-in configs do not change, and a table of settings asks for each row
def _config(name: str) -> ExperimentConfig:
    from dprepro.config import load_config

    path = builtin("configs") / f"{name}.yaml"  # a file of that name here would win
    if not path.is_file():
        names = [found.stem for found in path.parent.glob("*.yaml")]
        raise DpreproError(
            f"unknown config {name!r}{nearest(name, names) or '.'} Only built-in configs count"
        )
    return load_config(path)


def _entry(config: str, method: str) -> MethodEntry:
    entries = {entry.label: entry for entry in _config(config).methods}
    if method not in entries:
        raise DpreproError(
            f"config {config!r} has no method {method!r}{nearest(method, list(entries)) or '.'} "
            f"Allowed: {', '.join(entries)}"
        )
    return entries[method]


def _select(ours: Mapping[str, Any], stated: Mapping[str, Any], owner: str) -> dict[str, Any]:
    for name in stated:
        if name not in ours:
            raise DpreproError(
                f"{owner} has no {name!r}{nearest(name, list(ours)) or '.'} "
                f"Allowed: {', '.join(ours)}"
            )
    return {name: ours[name] for name in stated}
