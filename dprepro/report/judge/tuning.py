"""Choose, among the settings of a grid, the best at each privacy level: a config with the winners.

The choice reads the results of every setting, and is not covered by epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import JsonValue

from dprepro.config import ExperimentConfig, MethodEntry
from dprepro.errors import DpreproError
from dprepro.report.levels import level_in_words
from dprepro.report.read.metrics import find_metric
from dprepro.report.read.results import ResultCell, Results

NOT_COVERED = (
    "Chosen by results on the rows themselves. This choice is not covered by epsilon: the "
    "guarantees hold for parameters that are fixed before the rows are read."
)


@dataclass(frozen=True)
class Choice:
    """The best of `tried` settings of a method at one privacy level (``inf`` where it has none).

    `mean` is that of the config's metric over the finished splits.
    """

    label: str
    epsilon: float
    params: Mapping[str, JsonValue]
    mean: float
    tried: int


def check_tunable(config: ExperimentConfig) -> None:
    """Refuse a config without a grid, or one that would choose by the donors' test rows.

    Raises
    ------
    DpreproError
        As said.
    """
    if config.tuned_on is not None:
        raise DpreproError(
            f"{config.where('tuned_on')}: this config is tuned already. Put all grids into the "
            "config that it was tuned from: after a second choice nobody would see the first"
        )
    if not any(entry.grid for entry in config.methods):
        raise DpreproError(
            f"{config.where('methods')}: no method has a `grid` to choose from; give one, such as "
            "`grid: {rounds: [5, 9, 19]}`"
        )
    if any(len(entry.rows_per_unit or ()) > 1 for entry in config.methods):
        raise DpreproError(
            f"{config.where('rows_per_unit')}: several bounds on the rows of a unit, and "
            "parameters are chosen for one: name one"
        )
    if config.evaluation == "test-set":
        raise DpreproError(
            f"{config.where('evaluation')}: the donors' test rows would first choose the settings "
            "and then test them; tune with `evaluation: folds`"
        )


def choose_settings(config: ExperimentConfig, results: Results) -> list[Choice]:
    """Return the best setting of every entry with a grid at every epsilon, in the config's order.

    Of equal settings the first of the grid is taken.

    Raises
    ------
    DpreproError
        If a setting has not finished all splits: few splits can win by luck.
    """
    return [
        _best(config, entry, epsilon, results)
        for entry in config.methods
        if entry.grid
        for epsilon in _epsilons(config, entry, results)
    ]


def tuned_config(config: ExperimentConfig, choices: Sequence[Choice], dataset: str) -> str:
    """Return the text of a config with `by_epsilon`, or `params`, in the place of every grid.

    It says under `tuned_on` what the choices were made on; `dataset` is the name of the card.
    """
    values = config.model_dump(mode="json", exclude_defaults=True)
    values["tuned_on"] = {
        "dataset": dataset,
        "evaluation": config.evaluation,
        "seed": config.seed,
        "splits": config.splits,
        "test_share": config.test_share if config.evaluation == "random" else None,
    }
    values["methods"] = [_entry(entry, choices) for entry in config.methods]
    text = yaml.safe_dump(values, sort_keys=False, width=100, allow_unicode=True)
    return f"# {NOT_COVERED}\n{text}"


def _epsilons(config: ExperimentConfig, entry: MethodEntry, results: Results) -> list[float]:
    first = entry.expanded[0].label
    found = [c.task.epsilon for c in results.cells if c.task.label == first]
    asked = entry.epsilons or config.epsilons
    return [epsilon for epsilon in (*asked, math.inf) if epsilon in found]


def _best(config: ExperimentConfig, entry: MethodEntry, epsilon: float, results: Results) -> Choice:
    metric = find_metric(config.metric)
    sign = 1 if metric.higher_is_better else -1
    settings = entry.expanded
    cells = [_cell(config, setting.label, epsilon, results) for setting in settings]
    means = [cell.mean(metric.name) for cell in cells]
    place = max(range(len(means)), key=lambda i: sign * means[i])
    params = {name: settings[place].params[name] for name in entry.grid}
    return Choice(entry.label, epsilon, params, means[place], len(settings))


def _cell(config: ExperimentConfig, label: str, epsilon: float, results: Results) -> ResultCell:
    for cell in results.cells:
        if (cell.task.label, cell.task.epsilon) == (label, epsilon):
            if cell.is_complete(config.metric, config.splits):
                return cell
            break
    raise DpreproError(
        f"{label}, {level_in_words(epsilon)}, has not finished all {config.splits} splits: "
        f"`dprepro tune {config.name}` runs what is left, `dprepro run --retry-failed` what failed"
    )


def _entry(entry: MethodEntry, choices: Sequence[Choice]) -> dict[str, Any]:
    values: dict[str, Any] = entry.model_dump(mode="json", exclude_defaults=True)
    own = [choice for choice in choices if choice.label == entry.label]
    values.pop("grid", None)
    for choice in own:
        if math.isinf(choice.epsilon):
            values["params"] = {**entry.params, **choice.params}
            continue
        known = entry.by_epsilon.get(choice.epsilon, {})
        values.setdefault("by_epsilon", {}).pop(str(choice.epsilon), None)
        values["by_epsilon"][choice.epsilon] = {**known, **choice.params}
    return values
