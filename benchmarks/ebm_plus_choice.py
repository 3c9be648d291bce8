"""How DP-EBM+ compares with others on tables that no result of it is about.

    .venv/bin/python benchmarks/ebm_plus_choice.py --splits 4
    .venv/bin/python benchmarks/ebm_plus_choice.py --ways "as it is" "bound 1" "whole paths" --mean

The mean AUROC (binary), or the mean RMSE over that of a constant (regression), is printed: of
DP-EBM+ as it is, of its coarse and of its fine way alone, and of a linear rival. Large tables are
thinned. `--few-rows` takes the tables of few_row_tables.py instead, all of them regression.
`--positives 300` leaves out all other rows with the positive label, so that it is rare. `signal` is
what `dprepro.methods.dp_ebm_plus.low_signal.is_low_signal` compares. Other ways leave out or change
a part. docs/evidence/dp-ebm-plus-versions.md says which version brought it.

Few rows or many:
    bound B         labels: residuals are clipped at B at most (0.8 since version 13)
    uncentred       codes are not counted from their mean over the rows (version 14). Numbers have
                    codes where rows are few
    alike           labels: rare bins are asked about like others, as where rows are few anyway
                    (version 14)
    no curves       functions are no smooth curves a priori (version 17)
    no jumps        functions do not jump a priori (version 8)
    no strays       labels: no rows are expected anywhere within the bounds (version 2)
    totals as before
                    numbers: totals get 1 % of mu^2, and squares as much noise as the rest (they
                    get 2 % and a quarter of it since version 17)
    strides of S    numbers: functions go S times their way at most where rows are many (1.8 since
                    version 17, and 1.5 before)
    wide scores     labels: scores are as wide as functions of independent features make them,
                    however rare a label is (before version 21)
Where rows are many:
    each bin        no decaying sums: each bin is asked about on its own (version 18)
    alike over P    effects are alike over the part P of bins or rows (0.3 since version 18)
    wide bins       bins hold 3 deviations of noise (numbers: 2) and, labels, half of one in their
                    sum of labels, but at most a twelfth of the rows (before version 18)
Where rows are few:
    whole paths     functions are not shrunk, and steps add noise of 0.8 in all (version 13)
    flat bound      labels: the bound does not fall with the signal (version 14)
    short steps     labels: steps become shorter with the bound (version 15)
    bins apart      codes have no mix: each bin is asked about on its own (version 16)
    reach R         effects are alike over R bins (6 from version 16 to 18; by the signal since 19)
    shortest R      R bins where rows are hardly few (labels 4, numbers 1.8 since version 19)
    walks           effects are alike as in a walk, over 6 bins (version 16 to 18), and no curves
    steps as before numbers: the noise of all steps is 1 and the intercept gets 30 % of an epoch
                    (1.5 and 20 % since version 19)
    ten bins        numeric features have 10 bins (30 since version 16)
    few below S     rows are few below the signal S (150; for numbers 40 before version 16), for
                    labels of p and 1 - p below S / (2 sqrt(p (1 - p)))
    unclipped U     numbers: the intercept is clipped at U deviations of the residuals (2.5 since
                    version 20, by their median size; 2 since version 16, and 3 before)
    no middle       numbers: features are asked about from the intercept (before version 20)
    narrow bounds   numbers: bounds are as small as the noise asks for (before version 20)
    longest step S  numbers: all steps of an epoch are S times Newton's at most (3 since version 20,
                    and 2 before)
    few by rows alone
                    labels: a rare label makes no difference to which rows are few (version 17),
                    nor to the reach where they are
    sizes of an epoch
                    numbers: sizes of residuals follow from one epoch's counts (version 17)
    level averaged  numbers: the intercept is an average over all epochs (version 17), and features
                    are asked about from it
"E epochs" sets a parameter of the method. "version 22" is the method on trial, `dp-ebm-plus-22`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import few_row_tables
import numpy as np
from ebm_plus_ablation import of_both, uncentred, without
from replacing import replaced
from sklearn import metrics

from dprepro.data.dataset import load
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm_plus import (
    algorithm,
    booster,
    curator,
    grid,
    losses,
    low_signal,
    queries,
    smoothing,
    strategy,
)
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.privacy.gdp import mu_of

TABLES = {
    "mammography": "binary",
    "ai4i2020": "binary",
    "phishing": "binary",
    "cod-rna": "binary",
    "adbench-cover": "binary",
    "diabetes": "binary",
    "mushroom": "binary",
    "bike-sharing": "regression",
    "parkinson": "regression",
}
NUMBERS = {name for name, task in TABLES.items() if task == "regression"}
LABELS = [name for name in TABLES if name not in NUMBERS]
NEXT = "version 22"
RIVALS = {"binary": ("dp-gd-logistic", {}), "regression": ("ada-ssp", {"knots": 5})}
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
ROWS = 20_000


def score(
    method: str, table: tuple[Any, np.ndarray, Any], task: Any, budget: tuple[float, float],
    seed: int, split: tuple[np.ndarray, np.ndarray], params: dict[str, Any],
    log_loss: bool = False,
) -> float:  # fmt: skip
    """Return the metric of one fit on the test rows of one split."""
    (X, y, domain), (train, test) = table, split
    model: Any = get(method).build(Setting(task, *budget, domain, seed), **params)
    model.fit(X.iloc[train].reset_index(drop=True), y[train])
    if task == "binary" and log_loss:
        chances = np.clip(model.predict_proba(X.iloc[test])[:, 1], 1e-12, 1 - 1e-12)
        return float(metrics.log_loss(y[test] == model.classes_[1], chances))
    if task == "binary":
        return float(metrics.roc_auc_score(y[test], model.decision_function(X.iloc[test])))
    errors = model.predict(X.iloc[test]) - y[test]
    return float(np.sqrt(np.mean(errors**2)) / y[test].std())


def thinned(
    name: str, rows: int = ROWS, positives: int | None = None
) -> tuple[Any, np.ndarray, Any]:
    """Return at most so many rows of a table and so many of them positive, and its domain."""
    data = load(name)
    picked = np.random.default_rng(0).permutation(len(data.y))
    if positives is not None:
        is_positive = np.asarray(data.y)[picked] == max(data.y)
        picked = picked[~is_positive | (is_positive.cumsum() <= positives)]
    picked = picked[:rows]
    return data.X.iloc[picked].reset_index(drop=True), np.asarray(data.y)[picked], data.domain


def line(words: list[str]) -> None:
    print("| " + " | ".join(words) + " |", flush=True)


def shortened(
    learner: low_signal.LowSignalBooster, share: float, path: low_signal.AccumulatedSteps
) -> float:
    if not learner.loss.at_once:
        return gain(learner, share, path)
    noise = learner.loss.low_signal_noise * learner.bound / low_signal.LARGEST_RESIDUAL
    with replaced(losses.LogisticLoss, "low_signal_noise", noise):
        return gain(learner, share, path)


gain = low_signal.LowSignalBooster.gain


def bounded(bound: float) -> list[Any]:
    return [
        replaced(booster, "LARGEST_RESIDUAL", bound),
        replaced(low_signal, "LARGEST_RESIDUAL", bound),
        replaced(low_signal, "LEAST", min(bound, low_signal.LEAST)),
    ]


def averaged(
    learner: low_signal.LowSignalBooster, function: Any, answer: Any, share: float, number: int
) -> np.ndarray:
    if function is learner.intercept:
        return booster.Booster.learn(learner, function, answer, share, number)
    return learn(learner, function, answer, share, number)


learn = low_signal.LowSignalBooster.learn


def without_middle(learner: low_signal.LowSignalBooster) -> None:
    begin(learner)
    learner.middle = None


begin = low_signal.LowSignalBooster.__post_init__


def no_middle() -> list[Any]:
    return [replaced(low_signal.LowSignalBooster, "__post_init__", without_middle)]


def walking_sums(function: Any, _: float) -> np.ndarray | None:
    """Return the mix that few rows had from version 16 to 18: the covariance exp(-d / 6)."""
    with replaced(low_signal, "alike", lambda lag, _: math.exp(-lag / 6)):
        return smooth_sums(function, 6.0)


smooth_sums = low_signal.smooth_sums


NAMED: dict[str, Callable[[], list[Any]]] = {
    "as it is": list,
    "rival": list,
    NEXT: list,
    "coarse": lambda: [replaced(algorithm, "is_low_signal", lambda *_: True)],
    "fine": lambda: [replaced(algorithm, "is_low_signal", lambda *_: False)],
    "uncentred": uncentred,
    "alike": lambda: [replaced(losses.LogisticLoss, "rare", 0.0)],
    "whole paths": lambda: [
        replaced(low_signal.AccumulatedSteps, "trust", lambda _: 1.0),
        *of_both("low_signal_noise", 0.8),
    ],
    "flat bound": lambda: [replaced(low_signal, "LEAST", booster.LARGEST_RESIDUAL)],
    "short steps": lambda: [replaced(low_signal.LowSignalBooster, "gain", shortened)],
    "bins apart": lambda: [replaced(low_signal, "smooth_sums", lambda *_: None)],
    "ten bins": lambda: [replaced(low_signal, "_INTERVALS", 10)],
    "no curves": lambda: [replaced(booster, "priors", without(smoothing.CURVE))],
    "no jumps": lambda: [replaced(booster, "priors", without(smoothing.JUMPS))],
    "no strays": lambda: [replaced(losses.LogisticLoss, "expects_strays", False)],
    "totals as before": lambda: [
        *(replaced(module, "FACTORS", (1, 1, 1)) for module in (algorithm, curator, queries)),
        replaced(losses.SquaredLoss, "totals_share", 0.01),
    ],
    "few by rows alone": lambda: [replaced(losses.LogisticLoss, "few", lambda *_: losses.FEW)],
    "sizes of an epoch": lambda: [
        replaced(low_signal.LowSignalBooster, "sizes", booster.Booster.sizes)
    ],
    "each bin": lambda: [replaced(booster.Booster, "_set_decays", lambda _: None)],
    "wide bins": lambda: [
        replaced(losses.LogisticLoss, "bin_deviations", 3.0),
        replaced(losses.SquaredLoss, "bin_deviations", 2.0),
        replaced(losses, "_STANDING_OUT", 0.5),
        replaced(grid, "_COARSEST", 12),
    ],
    "walks": lambda: [replaced(low_signal, "smooth_sums", walking_sums)],
    "steps as before": lambda: [
        replaced(losses.SquaredLoss, "low_signal_noise", 1.0),
        replaced(losses.SquaredLoss, "low_signal_intercept", 0.3),
    ],
    "no middle": no_middle,
    "wide scores": lambda: [replaced(losses.LogisticLoss, "believed", lambda *_: 1.0)],
    "narrow bounds": lambda: [replaced(low_signal, "_NARROWEST", 0.0)],
    "level averaged": lambda: [
        replaced(low_signal.LowSignalBooster, "learn", averaged),
        *no_middle(),
    ],
}
NUMBERED: dict[str, Callable[[float], list[Any]]] = {
    "bound B": bounded,
    "reach R": lambda reach: [replaced(low_signal, "reach_of", lambda *_: reach)],
    "alike over P": lambda part: [replaced(strategy, "REACH", part)],
    "few below S": lambda signal: [replaced(losses, "FEW", signal)],
    "shortest R": lambda reach: of_both("low_signal_reach", reach),
    "unclipped U": lambda bound: [replaced(low_signal.LowSignalBooster, "unclipped", bound)],
    "longest step S": lambda most: [replaced(losses.SquaredLoss, "longest_step", most)],
    "strides of S": lambda most: [replaced(losses.SquaredLoss, "strides", (1.0, most))],
}
"""Ways that end with a number: the last letter stands for it."""


@contextmanager
def taking(way: str) -> Iterator[None]:
    """Let DP-EBM+ take one of the ways."""
    with ExitStack() as stack:
        for replacement in replacements(way):
            stack.enter_context(replacement)
        yield


def replacements(way: str) -> list[Any]:
    if epochs(way):
        return []  # a parameter of the method
    if way in NAMED:
        return NAMED[way]()
    for pattern, of_number in NUMBERED.items():
        before, number = pattern[:-1], way.removeprefix(pattern[:-1])
        if way.startswith(before) and is_number(number):
            return of_number(float(number))
    allowed = ", ".join([*NAMED, *NUMBERED, "E epochs"])
    raise SystemExit(f"there is no way {way!r}; allowed: {allowed}")


def is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdecimal()


def epochs(way: str) -> dict[str, int]:
    """Return the parameters of "E epochs", none of other ways."""
    number, _, rest = way.partition(" ")
    return {"n_epochs": int(number)} if rest == "epochs" and number.isdecimal() else {}


def means(name: str, way: str, given: argparse.Namespace) -> list[float]:
    """Return the mean of the metric over the splits, at each epsilon."""
    task, table = task_of(name), table_of(name, given)
    params: dict[str, Any]
    splits = [split_rows(len(table[1]), 0.2, 0, name, s) for s in range(given.splits)]
    method, params = RIVALS[task] if way == "rival" else ("dp-ebm-plus", epochs(way))
    if way == NEXT:
        method = "dp-ebm-plus-22"
    with taking(way):
        return [
            float(
                np.mean(
                    [
                        score(
                            method, table, task, (e, given.delta), s, split, params, given.log_loss
                        )
                        for s, split in enumerate(splits)
                    ]
                )
            )
            for e in given.epsilons
        ]


def task_of(name: str) -> str:
    return TABLES.get(name, "regression")


def table_of(name: str, given: argparse.Namespace) -> tuple[Any, np.ndarray, Any]:
    if given.few_rows:
        return few_row_tables.table(name)
    return thinned(name, given.rows, given.positives)


def signals(name: str, given: argparse.Namespace) -> list[str]:
    _, y, domain = table_of(name, given)
    per_mu = 0.8 * len(y) / math.sqrt(len(domain.features))
    return [f"{mu_of(e, given.delta) * per_mu:.0f}" for e in given.epsilons]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--ways", nargs="*", default=["as it is", "coarse", "fine", "rival"])
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--few-rows", action="store_true", help="tables of few_row_tables.py")
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each table, at most")
    parser.add_argument("--positives", type=int, help="rows of a table with the positive label")
    parser.add_argument("--log-loss", action="store_true", help="of labels, instead of AUROC")
    parser.add_argument("--mean", action="store_true", help="print means over the tables only")
    given = parser.parse_args()
    if given.positives and (given.few_rows or {*(given.tables or TABLES)} & NUMBERS):
        parser.error("--positives is for tables of labels; allowed: " + ", ".join(LABELS))
    line(["table", "", *(f"{epsilon:g}" for epsilon in given.epsilons)])
    line(["---"] * (len(given.epsilons) + 2))
    totals: dict[str, list[list[float]]] = {way: [] for way in given.ways}
    for name in given.tables or (few_row_tables.TABLES if given.few_rows else TABLES):
        if not given.mean:
            line([name, "signal", *signals(name, given)])
        for way in given.ways:
            cells = means(name, way, given)
            totals[way].append(cells)
            if not given.mean:
                label = RIVALS[task_of(name)][0] if way == "rival" else way
                line([name, label, *(f"{cell:.3f}" for cell in cells)])
    for way, found in totals.items():
        line(["mean", way, *(f"{cell:.4f}" for cell in np.mean(found, axis=0))])


if __name__ == "__main__":
    main()
