"""DP-EBM+ against DP-EBM (GDP) or its best rival, split by split, from the journals of `plus`.

    .venv/bin/python benchmarks/ebm_plus_paired.py --against best

Differences are paired by split; their standard error allows for overlapping training sets (Nadeau
and Bengio 2003), so that p is the one-sided p-value of the corrected resampled t-test. The last two
columns compare the mean with the printed one. The best rival is the label with the best mean of all
others in the journal, DP-EBM included, but DP-EBM+ with pairs is none.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

from dprepro.experiment.journal import journal_files, read_journal
from dprepro.papers.published_cell import PublishedCell, load_published

TEST_SHARE = 0.2
PLUS, PLAIN = "dp-ebm-plus", "dp-ebm-gdp"
_PRINTED = "dp-ebm-gdp-2021"
"""The method behind the printed column of DP-EBM."""


def scores(*journals: Path) -> tuple[bool, dict[tuple[str, float], dict[int, float]]]:
    """Return whether larger is better, and (label, epsilon) -> split -> metric of journals."""
    found: dict[tuple[str, float], dict[int, float]] = defaultdict(dict)
    is_auc = False
    for record in (record for path in journals for record in read_journal(path).records):
        if record.status == "ok":
            is_auc = "auc" in record.metrics
            value = record.metrics["auc" if is_auc else "rmse"]
            found[record.task.label, record.task.epsilon][record.task.split] = value
    return is_auc, found


def verdict(mean: float, sign: float, printed: PublishedCell) -> str:
    """Say whether a mean beats what was printed, which stands for anything that rounds to it."""
    if abs(mean - printed.mean) <= 0.5 * 10.0**-printed.decimals:
        return "within rounding"
    return "yes" if sign * (mean - printed.mean) > 0 else "no"


def p_value(gains: np.ndarray) -> float:
    """Return the p-value of "no better" from gains by split, float64 (J,), positive if better.

    NaN if no gain differs from another.
    """
    ratio = TEST_SHARE / (1 - TEST_SHARE)
    error = gains.std(ddof=1) * math.sqrt(1 / gains.size + ratio)
    return float(stats.t.sf(gains.mean() / error, gains.size - 1)) if error else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument(
        "--history", type=Path, help="an earlier DP-EBM+ instead, e.g. results/history/v1"
    )
    parser.add_argument("--against", default=PLAIN, help="a label, or best")
    arguments = parser.parse_args()
    folder = arguments.results
    printed = {
        (cell.dataset, cell.epsilon): cell
        for cell in load_published("dp-ebm-2021")
        if cell.method == _PRINTED
    }
    print("| dataset | epsilon | rival | its | DP-EBM+ | gain | p | printed DP-EBM | better |")
    print("| --- " * 9 + "|")
    history = journal_files(arguments.history) if arguments.history else {}
    for config, journal in journal_files(folder).items():
        if not config.startswith("plus-"):
            continue
        earlier = [history[config]] if history else []
        is_auc, found = scores(journal, *earlier)  # what is read last counts
        name = config.removeprefix("plus-")
        for epsilon in sorted({epsilon for _, epsilon in found}):
            rival = arguments.against
            if rival == "best":
                rival = best_rival(is_auc, found, epsilon)
            if len(set(found[rival, epsilon]) & set(found[PLUS, epsilon])) < 2:
                continue
            print(row(name, epsilon, rival, is_auc, found, printed.get((name, epsilon))))


def best_rival(
    is_auc: bool, found: dict[tuple[str, float], dict[int, float]], epsilon: float
) -> str:
    """Return the label with the best mean of all but DP-EBM+'s, of those with all its splits."""
    splits = found[PLUS, epsilon].keys()
    means = {
        label: float(np.mean(list(values.values())))
        for (label, e), values in found.items()
        if e == epsilon and not label.startswith(PLUS) and values.keys() >= splits
    }
    return (max if is_auc else min)(means, key=lambda label: means[label])


def row(
    name: str,
    epsilon: float,
    rival: str,
    is_auc: bool,
    found: dict[tuple[str, float], dict[int, float]],
    printed: PublishedCell | None,
) -> str:
    plain, plus = found[rival, epsilon], found[PLUS, epsilon]
    splits = sorted(set(plain) & set(plus))
    ours, theirs = (np.array([run[split] for split in splits]) for run in (plus, plain))
    sign = 1.0 if is_auc else -1.0
    gains = sign * (ours - theirs)
    numbers = [f"{mean:.4g}" for mean in (theirs.mean(), ours.mean(), gains.mean())]
    last = (
        ["", ""] if printed is None else [f"{printed.mean:g}", verdict(ours.mean(), sign, printed)]
    )
    return (
        f"| {' | '.join([name, f'{epsilon:g}', rival, *numbers, f'{p_value(gains):.1g}', *last])} |"
    )


if __name__ == "__main__":
    main()
