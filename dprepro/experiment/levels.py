"""Privacy levels that are asked of methods without a privacy budget: refused, not passed over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dprepro.config import ExperimentConfig
from dprepro.errors import DpreproError
from dprepro.experiment.record import Task
from dprepro.methods.registry import Method


def check_asked(methods: Sequence[str], epsilons: Sequence[float], tasks: Iterable[Task]) -> None:
    """Refuse epsilons of methods, by name or label, that all have no budget.

    `tasks` are those of the whole config.

    Raises
    ------
    DpreproError
        If a finite epsilon is asked, methods are named, and none of them has tasks at one.
    """
    asked = [epsilon for epsilon in epsilons if math.isfinite(epsilon)]
    tasks = list(tasks)
    named = [task for task in tasks if {task.label, task.method} & {*methods}]
    if not asked or not named or any(math.isfinite(task.epsilon) for task in named):
        return
    names = list(dict.fromkeys(task.method for task in named))
    private = list(dict.fromkeys(task.method for task in tasks if math.isfinite(task.epsilon)))
    instead = f", or name a method that has one: {', '.join(private)}" if private else ""
    raise DpreproError(
        f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} no privacy budget, so "
        f"--epsilon {asked[0]:g} cannot be kept. Leave --epsilon out to train without "
        f"privacy{instead}"
    )


def check_stated(config: ExperimentConfig, position: int, method: Method) -> None:
    """Refuse a config's entry that gives a method without a budget an epsilon or a delta.

    Raises
    ------
    DpreproError
        The message names file, line and key.
    """
    if method.takes_epsilon:
        return
    entry = config.methods[position]
    stated = {"epsilons": entry.epsilons, "delta": entry.delta, "by_epsilon": entry.by_epsilon}
    for key, value in stated.items():
        if value:
            raise DpreproError(
                f"{config.where('methods', position, key)}: {method.name} has no privacy budget; "
                f"leave `{key}` out, or choose a private method (`dprepro methods` lists them)"
            )
