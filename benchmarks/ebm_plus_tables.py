"""The tables of DP-EBM+ beside its rivals, from the committed journals of `dprepro run rivals`.

    .venv/bin/python benchmarks/ebm_plus_tables.py          # print them
    .venv/bin/python benchmarks/ebm_plus_tables.py --write  # put them into the pages

In each cell the best rival is the one with the best mean of all other methods. p is the one-sided
p-value of a paired test that DP-EBM+ is no better (`ebm_plus_paired`). A rival with the better mean
is printed bold.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from ebm_plus_paired import p_value
from scipy.stats import ttest_rel

from dprepro.papers.published_cell import load_published
from dprepro.results.folder import read_results

ROOT = Path(__file__).resolve().parent.parent
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
PLUS, PAIRS, PLAIN = "dp-ebm-plus", "dp-ebm-plus-pairs", "dp-ebm-gdp"
TABLES = {
    "Adult": "plus-adult",
    "Telco": "plus-telco",
    "Credit fraud": "plus-credit",
    "California housing": "plus-cal-housing",
    "Elevators": "plus-elevators",
    "Pol": "plus-pol",
    "Wine": "plus-wine",
}
LABELS = ("Adult", "Telco", "Credit fraud")
NUMBERS = ("California housing", "Elevators", "Pol", "Wine")
METRICS = {
    "auc": ("AUROC", 1, LABELS),
    "rmse": ("RMSE", -1, NUMBERS),
    "accuracy": ("accuracy", 1, LABELS),
    "log_loss": ("log loss", -1, LABELS),
    "brier_score": ("Brier score", -1, LABELS),
}
"""By name in journals: title, 1 if larger is better, and the datasets."""

DIGITS = {("rmse", "Elevators"): 4, ("rmse", "Pol"): 1, ("log_loss", "Credit fraud"): 4,
          ("brier_score", "Credit fraud"): 5, ("accuracy", "Credit fraud"): 4}  # fmt: skip
"""Decimals, where they are not 3. Means in thousands are printed in tens."""

SMALL = {
    "Adult, AUROC": ("sbdt-adult", "auc", 1, 4),
    "Adult, accuracy": ("sbdt-adult", "accuracy", 1, 4),
    "Abalone, RMSE": ("sbdt-abalone", "rmse", -1, 3),
}
"""S-BDT's protocol: journal, metric, 1 if larger is better, decimals."""


UNITS = ("unit=row", "rows_per_unit=1", "rows_per_unit=2", "rows_per_unit=5")
BEFORE = "21"
"""The version that the last table has beside the one of today."""

PROTOCOLS = {
    "plus-adult": "Adult", "plus-telco": "Telco", "plus-credit": "Credit fraud",
    "plus-cal-housing": "California housing", "plus-elevators": "Elevators", "plus-pol": "Pol",
    "plus-wine": "Wine", "sbdt-adult": "Adult, complete", "sbdt-abalone": "Abalone",
    "maddock-adult": "Adult, five splits", "maddock-credit1": "Give Me Some Credit",
    "maddock-credit2": "Credit default", "unit-diabetes": "Diabetes 130",
    "unit-parkinson": "Parkinson",
}  # fmt: skip
"""All configs with DP-EBM+, and what the last table calls them."""


@cache
def cells(config: str, folder: str = "results") -> dict[tuple[str, float], Any]:
    """Return the cells of one committed journal by label and epsilon."""
    found = read_results(ROOT / folder, [config]).cells
    return {(cell.task.label, cell.task.epsilon): cell for cell in found}


def number(value: float, digits: int) -> str:
    """Return a mean as the pages print it."""
    return f"{round(value, -1):,.0f}" if value > 1000 else f"{value:.{digits}f}"


def line(words: list[str]) -> str:
    return "| " + " | ".join(words) + " |"


def head(words: list[str]) -> list[str]:
    return [line(words), line(["---"] * len(words))]


def rivals(config: str, metric: str, epsilon: float, of: str = PLUS) -> dict[str, Any]:
    """Return the cells of all methods but DP-EBM+ that have the splits and the unit of a label."""
    found = cells(config)
    splits = found[of, epsilon].splits(metric)
    return {
        label: cell
        for (label, e), cell in found.items()
        if e == epsilon
        and cell.task.method != PLUS
        and cell.splits(metric) == splits
        and label.partition(" ")[2] == of.partition(" ")[2]
    }


def gains(ours: Any, theirs: Any, metric: str, sign: int) -> np.ndarray:
    """Return by how much DP-EBM+ is better in each split, float64 (splits,)."""
    return sign * (np.array(ours.values[metric]) - np.array(theirs.values[metric]))


def best(config: str, metric: str, epsilon: float) -> tuple[str, Any]:
    """Return the label and the cell of the best rival."""
    sign = METRICS[metric][1]
    return max(rivals(config, metric, epsilon).items(), key=lambda c: sign * c[1].mean(metric))


def groups(*metrics: str) -> Iterator[tuple[str, str, str]]:
    """Yield metric, dataset and config of each group of rows."""
    for metric in metrics:
        for dataset in METRICS[metric][2]:
            yield metric, dataset, TABLES[dataset]


def beside(*metrics: str) -> list[str]:
    """Return the table of DP-EBM, DP-EBM+ and the best rival, with p-values."""
    lines = head(["dataset", "", *(f"{e:g}" for e in EPSILONS)])
    for metric, dataset, config in groups(*metrics):
        title, sign, _ = METRICS[metric]
        digits, found = DIGITS.get((metric, dataset), 3), cells(config)
        rows: dict[str, list[str]] = {
            name: []
            for name in ("DP-EBM", "DP-EBM+", "p, DP-EBM", "best rival", "which", "p, best rival")
        }
        for epsilon in EPSILONS:
            plain, plus = found[PLAIN, epsilon], found[PLUS, epsilon]
            name, rival = best(config, metric, epsilon)
            ahead = sign * (rival.mean(metric) - plus.mean(metric)) > 0
            rows["DP-EBM"].append(number(plain.mean(metric), digits))
            rows["DP-EBM+"].append(number(plus.mean(metric), digits))
            rows["p, DP-EBM"].append(chance(gains(plus, plain, metric, sign)))
            shown = number(rival.mean(metric), digits)
            rows["best rival"].append(f"**{shown}**" if ahead else shown)
            rows["which"].append(name)
            rows["p, best rival"].append(chance(gains(plus, rival, metric, sign)))
        for place, (name, row) in enumerate(rows.items()):
            lines.append(line(["" if place else f"{dataset}, {title}", name, *row]))
    return lines


def short() -> list[str]:
    """Return the means alone of the first table."""
    means = ("", "---", "DP-EBM", "DP-EBM+", "best rival")
    return [row for row in beside("auc", "rmse") if row.split("|")[2].strip() in means]


def chance(gain: np.ndarray) -> str:
    """Return the p-value of "no better" as the pages print it; "same" if no split differs."""
    return f"{p_value(gain):.1g}" if gain.any() else "same"


def counts() -> list[str]:
    """Return how many cells of the first table DP-EBM+ wins and loses, as a list."""

    def plain(config: str, metric: str, epsilon: float) -> tuple[str, Any]:
        return PLAIN, cells(config)[PLAIN, epsilon]

    return [counted("DP-EBM", plain), counted("the best rival", best)]


def counted(name: str, choose: Callable[[str, str, float], tuple[str, Any]]) -> str:
    """Return the sentence about one rival, which may be another in each cell."""
    found = {}
    for metric, dataset, config in groups("auc", "rmse"):
        for epsilon in EPSILONS:
            _, rival = choose(config, metric, epsilon)
            plus = cells(config)[PLUS, epsilon]
            found[dataset, f"{epsilon:g}"] = gains(plus, rival, metric, METRICS[metric][1])
    better = sum(p_value(gain) < 0.05 for gain in found.values())
    behind: dict[str, list[str]] = {}
    for (dataset, epsilon), gain in found.items():
        if gain.mean() < 0:
            behind.setdefault(dataset, []).append(epsilon)
    places = "; ".join(f"{dataset} at {', '.join(at)}" for dataset, at in behind.items())
    return (
        f"- Against {name}: better in {better} of {len(found)} cells (p < 0.05), and the worse "
        f"mean in {sum(map(len, behind.values()))} ({places})."
    )


def pairs() -> list[str]:
    """Return the table of DP-EBM+ with and without pairs; p is that of a paired t test."""
    lines = head(["dataset", "", *(f"{e:g}" for e in EPSILONS)])
    for metric, dataset, config in groups("rmse", "auc"):
        digits = {"Elevators": 5, "Pol": 2}.get(dataset, 4)
        found, rows = cells(config), ([], [], [])
        for epsilon in EPSILONS:
            alone, both = found[PLUS, epsilon], found[PAIRS, epsilon]
            rows[0].append(number(alone.mean(metric), digits))
            rows[1].append(number(both.mean(metric), digits))
            first, second = alone.values[metric], both.values[metric]
            same = list(first) == list(second)
            rows[2].append("same" if same else f"{ttest_rel(first, second).pvalue:.0e}")
        names = ("features alone", "with pairs", "p")
        for place, (name, row) in enumerate(zip(names, rows, strict=True)):
            first_word = "" if place else f"{dataset}, {METRICS[metric][0]}"
            lines.append(line([first_word, name, *row]))
    return lines


def small() -> list[str]:
    """Return the table of S-BDT, as printed and as run here, beside DP-EBM+ at small epsilons."""
    printed = {
        (cell.dataset, cell.metric, cell.epsilon): cell.mean
        for cell in load_published("sbdt-2024")
        if cell.method == "s-bdt"
    }
    lines = head(["dataset", "epsilon", "S-BDT, printed", "s-bdt", "s-bdt-sound", "dp-ebm-plus"])
    for title, (config, metric, sign, digits) in SMALL.items():
        found = cells(config)
        for epsilon in sorted(e for label, e in found if label == PLUS):
            means = [found[label, epsilon].mean(metric) for label in ("s-bdt", "s-bdt-sound", PLUS)]
            dataset = found[PLUS, epsilon].task.dataset
            all_four = [printed[dataset, metric, epsilon], *means]
            winner = max(all_four, key=lambda mean: sign * mean)
            shown = [f"**{m:.{digits}f}**" if m == winner else f"{m:.{digits}f}" for m in all_four]
            lines.append(line([title, f"{epsilon:g}", *shown]))
    return lines


def versions() -> list[str]:
    """Return the table of this version beside the one before it, in every cell that both have.

    In brackets is the gain over its standard error, of paired splits. A rank is that of the mean
    among those of the `rivals`.
    """
    labels = {"plus": [PLUS, PAIRS], "unit": [f"{PLUS} {unit}" for unit in UNITS]}
    shown, all_gains = [], []
    ranks = np.zeros((0, 2))
    for config, title in PROTOCOLS.items():
        now, then = cells(config), cells(config, f"results/history/v{BEFORE}")
        for label in labels.get(config.split("-")[0], [PLUS]):
            found = []
            for epsilon in sorted(e for name, e in now if name == label):
                own, old = now[label, epsilon], then[label, epsilon]
                metric = next(m for m in ("auc", "rmse") if m in own.values)
                gain = gains(own, old, metric, METRICS[metric][1])
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                all_gains.append(float(gain.mean() / error) if gain.any() else 0.0)
                ranks = np.vstack(
                    [ranks, _ranks(rivals(config, metric, epsilon, label), metric, old, own)]
                )
                means = [
                    number(each.mean(metric), digits_of(each.mean(metric))) for each in (old, own)
                ]
                found.append(f"{epsilon:g}: {means[0]}, {means[1]} ({all_gains[-1]:+.1f})")
            name = label.removeprefix(PLUS).strip(" -").replace("=", " ").replace("_", " ")
            shown.append(line([title, name, METRICS[metric][0], "; ".join(found)]))
    better, worse = (sum(sign * gain > 2 for gain in all_gains) for sign in (1, -1))
    return [
        f"Of {len(all_gains)} cells {better} are better by more than two standard errors, and "
        f"{worse} worse. Mean rank over the {len(ranks)} cells, 1 is best: "
        f"{ranks[:, 0].mean():.2f} of version {BEFORE}, {ranks[:, 1].mean():.2f} of this one.",
        "",
        *head(["dataset", "", "metric", f"epsilon: mean of version {BEFORE}, of this one (gain)"]),
        *shown,
    ]


def _ranks(others: dict[str, Any], metric: str, *versions: Any) -> list[int]:
    """Return the rank of each version among others, as if there were no other version."""
    sign = METRICS[metric][1]
    means = [sign * other.mean(metric) for other in others.values()]
    return [1 + sum(mean > sign * each.mean(metric) for mean in means) for each in versions]


def digits_of(mean: float) -> int:
    """Return how many decimals show three digits or four of a mean."""
    return 5 if mean < 0.01 else 4 if mean < 1 else 3 if mean < 10 else 1


BLOCKS: dict[str, dict[str, Callable[[], list[str]]]] = {
    "docs/dp-ebm-plus.md": {"short": short, "counts": counts},
    "docs/evidence/dp-ebm-plus-tables.md": {
        "beside": lambda: beside("auc", "rmse"),
        "probabilities": lambda: beside("accuracy", "log_loss", "brier_score"),
        "small": small,
    },
    "docs/evidence/dp-ebm-plus-pairs.md": {"pairs": pairs},
    "docs/evidence/dp-ebm-plus-versions.md": {"versions": versions},
}


def filled(page: str) -> str:
    """Return a page with its tables as the journals have them now."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, make in BLOCKS[page].items():
        block = "\n".join([f"<!-- begin: {name} -->", "", *make(), "", f"<!-- end: {name} -->"])
        parts = re.split(rf"<!-- begin: {name} -->.*?<!-- end: {name} -->", text, flags=re.S)
        if len(parts) != 2:
            raise SystemExit(f"{page}: expected one block {name!r}, found {len(parts) - 1}")
        text = block.join(parts)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into the pages")
    if parser.parse_args().write:
        for page in BLOCKS:
            (ROOT / page).write_text(filled(page), encoding="utf-8")
        return
    for blocks in BLOCKS.values():
        for name, make in blocks.items():
            print(f"## {name}\n", *make(), "", sep="\n")


if __name__ == "__main__":
    main()
