"""Seeds that depend on what a task is, never on when or where it runs."""

from __future__ import annotations

import hashlib

import numpy as np

from dprepro.experiment.record import Task


def task_seed(task: Task, all_rows: bool = False) -> int | None:
    """Return the estimator's seed (uint32), or None when the config's seed is null.

    It derives from (config seed, dataset, split, method, epsilon). Parameters do not enter, so
    that variants of one method meet the same random numbers. A fit to `all_rows` has noise of its
    own, whatever the task's split.
    """
    if task.seed is None:
        return None
    parts = [f"dataset {task.dataset}", f"method {task.method}", f"epsilon {float(task.epsilon)!r}"]
    if all_rows:
        return int(_sequence(task.seed, 0, [*parts, "all rows"]).generate_state(1)[0])
    return int(_sequence(task.seed, task.split, parts).generate_state(1)[0])


def split_generator(seed: int | None, dataset: str, split: int) -> np.random.Generator:
    """Return the generator that draws a split, from (seed, dataset, split) alone.

    A null seed gives the splits of seed 0: which rows are held out protects nobody.
    """
    return np.random.default_rng(_sequence(seed or 0, split, [f"split of {dataset}"]))


def _sequence(seed: int, split: int, parts: list[str]) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, split, *(_hash(part) for part in parts)])


def _hash(text: str) -> int:
    # Python's own hash differs from one process to the next.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
