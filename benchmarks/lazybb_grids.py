"""What the grids of the LazyBB paper show on Adult: the best setting at each privacy level.

    .venv/bin/python benchmarks/lazybb_grids.py

Reads the packed journals of `results/trials`, and prints the tables of its README. A setting counts
by its mean accuracy over five folds. For 1-Rules, Table 8 of the paper prints the authors' choice.
"""

from __future__ import annotations

import lzma
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dprepro.experiment.config import load_config
from dprepro.experiment.journal import read_journal

TRIALS = Path(__file__).resolve().parent.parent / "results" / "trials"
GRIDS = ("lazybb-grid", "lazybb-figure3")
NAMES = ("rounds", "learning_rate", "density")
HEADS = [
    "grid", "method", "epsilon", "best", "accuracy", "se",
    "Table 8", "accuracy", "place", "within one se",
]  # fmt: skip

Setting = tuple[float, ...]
Found = dict[tuple[str, float], dict[Setting, list[float]]]
"""By method and epsilon: for each setting its accuracies, one for each fold."""


class Best(NamedTuple):
    """A setting, the mean of its accuracies, and the standard error of that mean."""

    setting: Setting
    mean: float
    error: float


def read(grid: str) -> Found:
    """Return the accuracies of a packed journal; its lines are checked as every journal's are."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{grid}.jsonl"
        path.write_bytes(lzma.decompress((TRIALS / f"{path.name}.xz").read_bytes()))
        records = read_journal(path).records
    found: Found = defaultdict(lambda: defaultdict(list))
    for record in records:
        task = record.task
        setting = tuple(float(task.params[name]) for name in NAMES)
        found[task.method, task.epsilon][setting].append(record.metrics["accuracy"])
    return found


def best_of(settings: dict[Setting, list[float]]) -> Best:
    """Return the setting with the highest mean; the first of several."""
    setting = max(settings, key=lambda at: np.mean(settings[at]))
    return Best(setting, *mean_and_error(settings[setting]))


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return the mean, and the standard deviation over the folds by the root of their number."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))


def authors_choice() -> dict[tuple[str, float], Setting]:
    """Return Table 8's settings by method and epsilon: those of the first in lazybb-adult.yaml."""
    entry = load_config("lazybb-adult").methods[0]
    return {
        (entry.method, float(epsilon)): tuple(float(str(params[name])) for name in NAMES)
        for epsilon, params in (entry.by_epsilon or {}).items()
    }


def rows(found: dict[str, Found]) -> Iterator[list[str]]:
    """Yield the cells of the table, a row for each grid, method and epsilon."""
    printed = authors_choice()
    for grid, cells in found.items():
        for (method, epsilon), settings in sorted(cells.items()):
            best = best_of(settings)
            figures = [words(best.setting), f"{best.mean:.4f}", f"{best.error:.4f}"]
            choice = printed.get((method, epsilon))
            beside = [""] * 4 if choice is None else _beside(choice, settings, best)
            yield [grid, method, f"{epsilon:g}", *figures, *beside]


def _beside(setting: Setting, settings: dict[Setting, list[float]], best: Best) -> list[str]:
    mean, _ = mean_and_error(settings[setting])
    place = 1 + sum(float(np.mean(values)) > mean for values in settings.values())
    within = "yes" if best.mean - mean <= best.error else "no"
    return [words(setting), f"{mean:.4f}", str(place), within]


def words(setting: Setting) -> str:
    """Return a setting as it stands in the table."""
    return ", ".join(f"{value:g}" for value in setting)


def figure3(found: dict[str, Found]) -> Iterator[list[str]]:
    """Yield what Figure 3 of the paper shows, a row for each epsilon.

    That is the best accuracy of 1-Rules without delta, with it, and the second less the first.
    """
    without, relaxed = (found[grid] for grid in GRIDS)
    for method, epsilon in sorted(relaxed):
        means = [
            best_of(without["lazybb-1r", epsilon]).mean,
            best_of(relaxed[method, epsilon]).mean,
        ]
        yield [f"{epsilon:g}", *(f"{mean:.4f}" for mean in means), f"{means[1] - means[0]:+.4f}"]


def markdown(heads: list[str], body: Iterator[list[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *body)]


def tables(found: dict[str, Found]) -> list[list[str]]:
    """Return the lines of both tables."""
    heads = ["epsilon", "delta 0", "delta 1e-5", "difference"]
    return [markdown(HEADS, rows(found)), markdown(heads, figure3(found))]


if __name__ == "__main__":
    for lines in tables({grid: read(grid) for grid in GRIDS}):
        print("\n".join(lines), end="\n\n")
