"""What each part of DP-EBM+ is worth: the method without it, on the same splits and seeds.

    .venv/bin/python benchmarks/ebm_plus_ablation.py --splits 5 --json out/ebm_plus_ablation.json

"Noise in ..." answers some queries without noise, which is not private: it shows what noise costs,
while all that follows from the answers stays as cautious. Prints a table for each dataset: mean
AUROC or RMSE over the splits for every epsilon, with the mean difference to the whole method and
its standard error, and processor seconds of a fit. The last table has the differences on all
datasets.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dprepro.methods.dp_ebm_plus.function import Answer, Function
from dprepro.methods.dp_ebm_plus.low_signal import LowSignalBooster
from dprepro.methods.dp_ebm_plus.smoothing import CURVE, JUMPS, Priors, priors
from replacing import replaced
from sklearn.metrics import roc_auc_score

from dprepro.data.dataset import Dataset, load
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm_plus import algorithm, curator, losses, low_signal, strategy
from dprepro.methods.dp_ebm_plus import booster as booster_module
from dprepro.methods.dp_ebm_plus import booster as shares
from dprepro.methods.dp_ebm_plus import booster as strays
from dprepro.methods.dp_ebm_plus import function as function_module
from dprepro.methods.dp_ebm_plus import grid as fine_grid
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.queries import (
    Code,
    CodedResiduals,
    Histogram,
    Move,
    Moves,
    Residuals,
)
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.privacy.curator_base import GaussianMechanism
from dprepro.privacy.query import NoisyAnswer, Query, ScaledInteger

DATASETS = ("adult", "telco", "credit", "cal-housing")
EPSILONS = (0.1, 1.0, 8.0)
DELTA = 1e-6


@contextmanager
def setting(*replacements: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for replacement in replacements:
            stack.enter_context(replacement)
        yield


def of_both(attribute: str, value: Any) -> list[Any]:
    """Return replacements of an attribute of both losses."""
    both = (losses.LogisticLoss, losses.SquaredLoss)
    return [replaced(loss, attribute, value) for loss in both]


def even_cells(feature: Any) -> np.ndarray:
    cells = fine_grid._EVEN_CELLS if feature.lower < feature.upper else 1
    return np.linspace(feature.lower, feature.upper, cells + 1)[1:-1]


def ungrouped_deviations(
    feature: Any, bin_of_cell: np.ndarray, n_bins: int, deviation: float
) -> np.ndarray:
    used = bin_of_cell if feature.missing else bin_of_cell[:-1]
    return deviation * np.sqrt(np.bincount(used, minlength=n_bins))


def unsmoothed(scales: np.ndarray, centres: np.ndarray, *, ordered: bool) -> Priors:
    return priors(scales[-1:], centres[:1], ordered=False)


def without(kind: int) -> Callable[..., Priors]:
    def others(scales: np.ndarray, centres: np.ndarray, *, ordered: bool) -> Priors:
        models = priors(scales, centres, ordered=ordered)
        return replace(models, kinds=models.kinds[models.kinds != kind])

    return others


def forgetful(function: Function, *args: Any) -> None:
    function._answers[:] = 0.0
    function._weight = function._variance = 0.0
    remember(function, *args)


remember = Function.remember


def one_by_one(curator: Any, booster: Booster, number: int) -> None:
    """Ask for one feature of a label after another.

    Each moves half way before the next one; where rows are few, as far as its step goes.
    """
    if not booster.loss.at_once:
        whole_step(curator, booster, number)
        return
    booster.damping.value = 0.5
    shares = [booster.shares.intercept, *booster.feature_shares()]
    for function, share in zip([booster.intercept, *booster.functions], shares, strict=True):
        own = booster._code(function, 1.0)
        bound = booster.bound * strategy.typical_norm([own], [function.counts])
        query = CodedResiduals(bound, share, (own,), bound)
        release = curator.answer(query)
        answer = Answer(release.value / own.weights, release.scale / own.weights)
        values = booster.learn(function, answer, share, number)
        curator.tell(Moves((Move(function.feature, function.move(values)),)))


whole_step = algorithm.step_all


def half_steps(booster: Booster, number: int) -> float:
    return 0.5 if booster.loss.at_once else stride(booster, number)


stride = Booster._stride


def uncentred() -> list[Any]:
    """Return replacements: neither kind of booster counts codes from their mean over the rows."""
    return [replaced(kind, "_code", uncentred_code(kind)) for kind in (Booster, LowSignalBooster)]


def uncentred_code(kind: type[Booster]) -> Callable[[Booster, Function, float], Code]:
    centred_code = vars(kind)["_code"]

    def code(booster: Booster, function: Function, part: float) -> Code:
        made = centred_code(booster, function, part)
        return replace(made, centre=np.zeros_like(made.centre))

    return code


def face_value(self: Function) -> None:
    initialise(self)
    self.uncertainty = np.zeros_like(self.counts)


initialise = Function.__post_init__


def exactly(*kinds: type[Query]) -> Any:
    """Return a replacement that answers some queries without noise, which no fit may do.

    What follows from the answers is as cautious as if there were noise in them.
    """

    def exact(
        uses: GaussianMechanism, numbers: np.ndarray, query: Query, unit: Any = 1.0
    ) -> NoisyAnswer:
        release = answer(uses, numbers, query, unit)
        return replace(release, value=numbers * unit) if isinstance(query, kinds) else release

    return replaced(GaussianMechanism, "answer", exact)


answer = GaussianMechanism.answer
Variant = Callable[[], Any]
VARIANTS: dict[str, Variant] = {
    "whole": lambda: setting(),
    "cells of equal width only": lambda: setting(
        replaced(fine_grid, "grid_edges", even_cells),
        replaced(low_signal, "grid_edges", even_cells),
    ),
    "bins of n/32 rows": lambda: setting(
        *of_both("bin_deviations", np.inf),
        replaced(fine_grid, "_COARSEST", 32),
    ),
    "cells without groups": lambda: setting(
        replaced(curator, "exact_answers", lambda _, counts: ScaledInteger(counts)),
        replaced(algorithm, "agreeing_counts", lambda _, counts, noise: (counts, noise)),
        replaced(function_module, "sum_deviations", ungrouped_deviations),
        replaced(fine_grid, "sum_deviations", ungrouped_deviations),
        replaced(fine_grid, "variance_steps", lambda cells: np.ones((cells, cells + 1))),
        replaced(fine_grid, "MISSING_DEVIATION", 1.0),
    ),
    "1.6 % of mu^2 for bins": lambda: setting(*of_both("binning_share", 0.016)),
    "bins regardless of the labels": lambda: setting(
        replaced(losses, "_EXPECTED", 0.0),
        replaced(losses, "_STANDING_OUT", 0.0),
    ),
    "bins regardless of the noise in labels": lambda: setting(
        replaced(losses, "_STANDING_OUT", 0.0)
    ),
    "no jumps": lambda: setting(replaced(booster_module, "priors", without(JUMPS))),
    "no curves": lambda: setting(replaced(booster_module, "priors", without(CURVE))),
    "hardly any smoothing": lambda: setting(replaced(booster_module, "priors", unsmoothed)),
    "no averaging": lambda: setting(
        replaced(Function, "remember", forgetful),
        replaced(losses.SquaredLoss, "strides", (1.0, 1.0)),
    ),
    "no strays": lambda: setting(replaced(strays, "_CONTAMINATION", 0.0)),
    "the same budget for all features": lambda: setting(replaced(shares, "EVEN_SHARE", 1.0)),
    "noisy counts not corrected": lambda: setting(replaced(Function, "__post_init__", face_value)),
    "labels: bound 1; regression: half the range": lambda: setting(
        *(replaced(module, "LARGEST_RESIDUAL", 1.0) for module in (booster_module, low_signal)),
        replaced(low_signal, "LEAST", 1.0),
        replaced(booster_module, "best_bound", lambda *arguments, **options: 0.5),
    ),
    "labels: half steps": lambda: setting(replaced(Booster, "_stride", half_steps)),
    "regression: linear weights, no step beyond its end": lambda: setting(
        replaced(losses.SquaredLoss, "hurries", False),
        replaced(losses.SquaredLoss, "strides", (1.0, 1.0)),
    ),
    "codes not counted from their mean": lambda: setting(*uncentred()),
    "rare bins asked like others": lambda: setting(replaced(losses.LogisticLoss, "rare", 0.0)),
    "labels: one feature after another": lambda: setting(
        replaced(algorithm, "step_all", one_by_one)
    ),
    "many rows: bins apart": lambda: setting(replaced(Booster, "_set_decays", lambda _: None)),
    "few rows: the bound as elsewhere": lambda: setting(
        replaced(low_signal, "LEAST", booster_module.LARGEST_RESIDUAL)
    ),
    "few rows: bins apart": lambda: setting(replaced(low_signal, "smooth_sums", lambda *_: None)),
    "noise in histograms": lambda: setting(exactly(Histogram)),
    "noise in sums of residuals": lambda: setting(exactly(CodedResiduals, Residuals)),
    "4 epochs": lambda: setting(),
    "16 epochs": lambda: setting(),
    "64 epochs": lambda: setting(),
    "DP-EBM (GDP), public domain": lambda: setting(),
    "DP-EBM (sound), public domain": lambda: setting(),
}


def fit(name: str, dataset: Dataset, rows: np.ndarray, epsilon: float, seed: int) -> Any:
    methods = {"DP-EBM (GDP)": "dp-ebm-gdp", "DP-EBM (sound)": "dp-ebm-sound"}
    method = methods.get(name.split(",")[0], "dp-ebm-plus")
    params = {"n_epochs": int(name.split()[0])} if name.endswith("epochs") else {}
    assert dataset.domain is not None
    model = get(method).build(Setting(dataset.task, epsilon, DELTA, dataset.domain, seed), **params)
    with VARIANTS[name]():
        return model.fit(dataset.X.iloc[rows].reset_index(drop=True), dataset.y[rows])


def measure(name: str, dataset: Dataset, epsilon: float, split: int) -> tuple[float, float]:
    """Return the metric on the test rows and the processor seconds of the fit."""
    train, test = split_rows(len(dataset.y), 0.2, 1, dataset.name, split)
    start = time.process_time()
    model = fit(name, dataset, train, epsilon, seed=1000 + split)
    seconds = time.process_time() - start
    X, y = dataset.X.iloc[test], dataset.y[test]
    if dataset.task == "binary":
        return float(roc_auc_score(y, model.decision_function(X))), seconds
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2))), seconds


def table(dataset: Dataset, splits: int) -> dict[str, Any]:
    fit("whole", dataset, np.arange(len(dataset.y)), 1.0, 0)  # compiles
    digits = 4 if dataset.task == "binary" else 0
    results: dict[str, Any] = {}
    print(f"\n| {dataset.name} | " + " | ".join(f"{e:g}" for e in EPSILONS) + " | fit s |")
    print("| --- |" + " --- |" * (len(EPSILONS) + 1))
    for name in VARIANTS:
        runs = np.array(
            [[measure(name, dataset, e, split) for split in range(splits)] for e in EPSILONS]
        )
        results[name] = runs.tolist()
        whole = np.array(results["whole"])[:, :, 0]
        cells = []
        for own, other in zip(runs[:, :, 0], whole, strict=True):
            gap = own - other
            error = gap.std(ddof=1) / np.sqrt(splits) if splits > 1 else np.nan
            change = f" ({gap.mean():+.{digits}f} ± {error:.{digits}f})" if name != "whole" else ""
            cells.append(f"{own.mean():.{digits}f}{change}")
        print(
            f"| {name} | " + " | ".join(cells) + f" | {np.median(runs[:, :, 1]):.3f} |", flush=True
        )
    return results


def summary(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return one table of all datasets: the whole method, and by how much each variant differs."""
    heads = [f"{name}, {epsilon:g}" for name in found for epsilon in EPSILONS]
    lines = ["", "| without | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    for variant in VARIANTS:
        cells = []
        for results in found.values():
            whole = np.array(results["whole"])[:, :, 0].mean(axis=1)
            own = np.array(results[variant])[:, :, 0].mean(axis=1)
            form = ",.0f" if whole.max() > 1 else ".4f"
            shown = own if variant == "whole" else own - whole
            cells += [format(value, form if variant == "whole" else f"+{form}") for value in shown]
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {
        name: table(load(name, arguments.data_dir), arguments.splits) for name in arguments.datasets
    }
    print(*summary(found), sep="\n")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
