"""The plan line of a journal: what its config asks for, by the keys of all its tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from dprepro.config import ExperimentConfig
from dprepro.config_keys import MetricName
from dprepro.experiment.record import Task

_LENGTH, _DIGITS = 16, b"0123456789abcdef"  # of a key


@dataclass(frozen=True)
class StatedCell:
    """One method at one privacy level: the keys of its tasks, in the order of the splits."""

    label: str
    epsilon: float
    keys: tuple[str, ...]


@dataclass(frozen=True)
class StatedPlan:
    """All that a config asks for, whatever part of it a run is told to do.

    Attributes
    ----------
    config, title, metric, splits
        The config's; `config` is its name.
    paper, table
        The printed table that it answers to, or None.
    looks
        After how many splits verdicts are looked at, where it adds splits to another config's.
    is_builtin, has_builtin_card
        Whether the config, and the card of its dataset, are those that ship with dprepro.
    hypotheses
        Whether the config tries what a document does not state; None in plans that are older than
        this field.
    cells
        In the order of the config's methods, then by epsilon.
    """

    config: str
    title: str
    metric: str
    splits: int
    paper: str | None
    table: str | None
    is_builtin: bool
    has_builtin_card: bool
    cells: tuple[StatedCell, ...]
    hypotheses: bool | None = None
    looks: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return one journal line as a dict that strict JSON can hold."""
        looks = {"looks": list(self.looks)} if self.looks else {}
        published = (
            None if self.paper is None else {"paper": self.paper, "table": self.table, **looks}
        )
        return {
            "kind": "plan",
            "config": self.config,
            "title": self.title,
            "metric": self.metric,
            "splits": self.splits,
            "published": published,
            "builtin": self.is_builtin,
            "builtin_card": self.has_builtin_card,
            **({} if self.hypotheses is None else {"hypotheses": self.hypotheses}),
            "cells": [
                {
                    "label": cell.label,
                    "epsilon": None if math.isinf(cell.epsilon) else cell.epsilon,
                    "keys": list(cell.keys),
                }
                for cell in self.cells
            ],
        }

    def agrees_with(self, earlier: StatedPlan | None) -> bool:
        """Whether an earlier plan says the same.

        One of earlier versions does not say whether its config runs hypotheses. Of a built-in
        config that is known.
        """
        if earlier is not None and earlier.hypotheses is None and self.is_builtin:
            earlier = replace(earlier, hypotheses=self.hypotheses)
        return self == earlier

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> StatedPlan:
        """Read what `to_json` wrote.

        Raises
        ------
        KeyError, TypeError, ValueError
            If a field is missing, of another type, or beyond what a plan can say.
        """
        published = line["published"]
        paper, table = (None, None) if published is None else (
            _text(published, "paper"), _text(published, "table")
        )  # fmt: skip
        splits = _of_type(line, "splits", int)
        if splits < 1:
            raise ValueError(f"splits is {splits}")
        metric = _text(line, "metric")
        if metric not in get_args(MetricName):
            raise ValueError(f"metric is {metric!r}")
        cells = tuple(_cell(cell) for cell in _of_type(line, "cells", list))
        if not cells:
            raise ValueError("cells are none")
        return cls(
            _text(line, "config"),
            _text(line, "title"),
            metric,
            splits,
            paper,
            table,
            _of_type(line, "builtin", bool),
            _of_type(line, "builtin_card", bool),
            cells,
            _of_type(line, "hypotheses", bool) if "hypotheses" in line else None,
            _looks(published or {}),
        )


def state_plan(config: ExperimentConfig, tasks: Iterable[Task]) -> StatedPlan:
    """Return the plan line of a config, given all of its tasks."""
    keys: dict[tuple[str, float], list[tuple[int, str]]] = {}
    for task in tasks:
        keys.setdefault((task.label, task.epsilon), []).append((task.split, task.key))
    labels = [entry.label for method in config.methods for entry in method.expanded]
    order = {label: position for position, label in enumerate(dict.fromkeys(labels))}
    published = config.published
    return StatedPlan(
        config.name,
        config.title,
        config.metric,
        config.splits,
        published.paper if published else None,
        published.table if published else None,
        config.is_builtin,
        not Path(config.card).is_file(),
        tuple(
            StatedCell(label, epsilon, tuple(key for _, key in sorted(keys[label, epsilon])))
            for label, epsilon in sorted(keys, key=lambda cell: (order[cell[0]], cell[1]))
        ),
        config.hypotheses,
        published.looks if published else (),
    )


def _cell(fields: Mapping[str, Any]) -> StatedCell:
    epsilon = fields["epsilon"]
    level = math.inf if epsilon is None else float(epsilon)
    if not level > 0:
        raise ValueError(f"epsilon is {epsilon}")
    keys = tuple(_of_type(fields, "keys", list))
    # A plan can have 10^6 keys: they are looked at together.
    of_one_kind = set(map(type, keys)) == {str} and set(map(len, keys)) == {_LENGTH}
    if not of_one_kind or "".join(keys).encode().translate(None, _DIGITS):
        raise ValueError("keys are 16 hex digits each, one or more")
    return StatedCell(_text(fields, "label"), level, keys)


def _looks(published: Mapping[str, Any]) -> tuple[int, ...]:
    looks = _of_type(published, "looks", list) if "looks" in published else []
    if any(type(look) is not int or look < 1 for look in looks) or looks != sorted(set(looks)):
        raise ValueError("looks are whole numbers above 0 in ascending order")
    return tuple(looks)


def _text(fields: Mapping[str, Any], name: str) -> str:
    return str(_of_type(fields, name, str))


def _of_type(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    value = fields[name]
    if type(value) is not kind:
        raise TypeError(f"{name} is no {kind.__name__}")
    return value
