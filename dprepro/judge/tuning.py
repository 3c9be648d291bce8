"""Choose, among the settings of a grid, the best at each privacy level: a config with the winners.

The choice reads the results of every setting, and is not covered by epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import JsonValue

from dprepro.experiment.config import ExperimentConfig, MethodEntry
from dprepro.experiment.method_names import names_in_config
from dprepro.judge.two_means import score_difference
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import find_metric, level_in_words
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import shell

_Cells = Mapping[tuple[str, float], ResultCell]
"""By label and epsilon."""

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
    """Raise DpreproError for a config without a grid, or that would choose by donors' test rows."""
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


def part_of(
    config: ExperimentConfig, methods: Sequence[str] = (), epsilons: Sequence[float] = ()
) -> ExperimentConfig:
    """Return the config with these methods, by name or label, and these privacy levels alone.

    Raises DpreproError if the config has no such method or level.
    """
    names = [name for e in config.methods for name in dict.fromkeys((e.label, e.method))]
    methods = names_in_config(methods, names)
    entries = [e for e in config.methods if not methods or {e.label, e.method} & set(methods)]
    levels = {level for entry in entries for level in entry.epsilons or config.epsilons}
    for epsilon in epsilons:
        if epsilon not in levels:
            allowed = ", ".join(f"{level:g}" for level in sorted(levels))
            raise DpreproError(f"no epsilon {epsilon:g} in the config. Allowed: {allowed}")
    kept = set(epsilons) or levels
    return config.model_copy(
        update={
            "epsilons": tuple(level for level in config.epsilons if level in kept),
            "methods": tuple(_at_levels(entry, kept) for entry in entries),
        }
    )


def _at_levels(entry: MethodEntry, kept: Collection[float]) -> MethodEntry:
    own = None if entry.epsilons is None else tuple(e for e in entry.epsilons if e in kept)
    by_epsilon = {e: params for e, params in entry.by_epsilon.items() if e in kept}
    return entry.model_copy(update={"epsilons": own, "by_epsilon": by_epsilon})


def choose_settings(config: ExperimentConfig, results: Results) -> list[Choice]:
    """Return the best setting of every entry with a grid at every epsilon, in the config's order.

    Of equal settings the first of the grid is taken.

    Raises DpreproError if a setting has not finished all splits: few splits can win by luck.
    """
    cells = {(c.task.label, c.task.epsilon): c for c in reversed(results.cells)}
    return [
        _best(config, entry, epsilon, cells)
        for entry in config.methods
        if entry.grid
        for epsilon in (*(entry.epsilons or config.epsilons), math.inf)
        if (entry.expanded[0].label, epsilon) in cells
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
        "test_share": None if config.evaluation in ("folds", "test-set") else config.test_share,
    }
    values["methods"] = [_entry(entry, choices) for entry in config.methods]
    text = yaml.safe_dump(values, sort_keys=False, width=100, allow_unicode=True)
    return f"# {NOT_COVERED}\n{text}"


def _best(config: ExperimentConfig, entry: MethodEntry, epsilon: float, cells: _Cells) -> Choice:
    metric = find_metric(config.metric)
    sign = 1 if metric.higher_is_better else -1
    settings = entry.expanded
    tried = [_cell(config, setting, epsilon, cells) for setting in settings]
    means = [cell.mean(metric.name) for cell in tried]
    best = max(means, key=lambda mean: sign * mean)
    place = next(
        (i for i, mean in enumerate(means) if not score_difference(mean, best)), means.index(best)
    )
    params = {name: settings[place].params[name] for name in entry.grid}
    return Choice(entry.label, epsilon, params, means[place], len(settings))


def _cell(
    config: ExperimentConfig, setting: MethodEntry, epsilon: float, cells: _Cells
) -> ResultCell:
    label, splits = setting.label, setting.splits or config.splits
    cell = cells.get((label, epsilon))
    if cell is not None and cell.is_complete(config.metric, splits):
        return cell
    if cell is not None and config.metric in cell.absent:
        raise DpreproError(
            f"{label} has no {find_metric(config.metric).title} to be chosen by: "
            f"{cell.absent[config.metric]}. Name another `metric` in {config.name}"
        )
    raise DpreproError(
        f"{label}, {level_in_words(epsilon)}, has not finished all {splits} splits: "
        f"`dprepro tune {shell(config.name)}` runs what is left, `dprepro run --retry-failed` what "
        "failed"
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
