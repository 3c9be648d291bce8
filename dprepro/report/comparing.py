"""Write the comparison of two methods: for terminals, and as rows of plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from dprepro.judge.comparing import AcrossDatasets, MethodComparison, Pair, PairedTest, Row
from dprepro.report.written_tables import written_tables
from dprepro.results.folder import ResultCell
from dprepro.results.margins import Metric, level
from dprepro.runtime.terminal import Renderable, Stacked, StackedColumn, below, stacked_table
from dprepro.runtime.text import csv_table, json_text

_NONE_SHOWN = "-"
_OVERLAP = (
    "splits: interval and p are about new rows of the same kind. Training sets overlap, "
    "so the variance of the mean is sd² (1/splits + n_test/n_train) (Nadeau and Bengio 2003)."
)
ABOUT = {
    "random": f"Random {_OVERLAP}",
    "stratified": f"Stratified {_OVERLAP}",
    "folds": (
        "Folds: interval and p are about new rows of the same kind, and an approximation. The "
        "variance of the mean is sd² (1/splits + n_test/n_train) (Nadeau and Bengio 2003); no "
        "estimator of it is unbiased (Bengio and Grandvalet 2004)."
    ),
    "test-set": (
        "Published test set: all splits have the same rows and differ in noise alone. Interval and "
        "p are about other draws of noise on these rows, not about new rows."
    ),
}
"""What interval and p are about, by kind of splits."""


def write_comparison(found: MethodComparison, format: str, per_split: bool) -> Renderable:
    """Return a comparison in a format of `dprepro compare`; all but ``table`` are text."""
    if format == "table":
        return render_comparison(found)
    if format == "json":
        return json_comparison(found, per_split)
    if format == "csv":
        return csv_rows(split_rows(found) if per_split else comparison_rows(found))
    notes = [*together(found), *comparison_notes(found)]
    return written_tables(_tables(found), notes, format)


def _tables(found: MethodComparison) -> list[Stacked]:
    metrics = dict.fromkeys(row.pair.metric for row in found.rows)
    return [_table(found, metric) for metric in metrics]


def render_comparison(found: MethodComparison) -> Renderable:
    """Return a table for each metric, then what the datasets say together, and notes."""
    return below(
        *_tables(found),
        *(Text(line) for line in together(found)),
        *(Text(line, style="dim") for line in comparison_notes(found)),
    )


def _table(found: MethodComparison, metric: Metric) -> Stacked:
    rows = [row for row in found.rows if row.pair.metric == metric]
    names = [row.pair.dataset for row in rows]
    is_new = [i == 0 or name != names[i - 1] for i, name in enumerate(names)]
    first = [name if new else "" for name, new in zip(names, is_new, strict=True)]
    columns = [
        StackedColumn("Dataset", first),
        StackedColumn("ε", [level(row.pair.epsilon) for row in rows]),
        StackedColumn("difference", [_difference(row) for row in rows], "right"),
        StackedColumn("95 % interval", [_interval(row) for row in rows], "right"),
        StackedColumn("p", [shown_p(row.p_holm) for row in rows], "right"),
        StackedColumn("better", [row.better or _NONE_SHOWN for row in rows]),
        StackedColumn("splits", [_counted(row) for row in rows], "right"),
    ]
    better = "higher" if metric.higher_is_better else "lower"
    title = f"{metric.title} ({better} is better): {found.first} minus {found.second}"
    # A blank line after each dataset, unless each has one row.
    ends = [i - 1 for i, new in enumerate(is_new) if new and i] if not all(is_new) else []
    return stacked_table(title, columns, 2, ends)


def _difference(row: Row) -> tuple[Text, ...]:
    mean, sd = row.test.mean, row.test.sd
    return Text(_signed(mean, row)), Text(f"±{sd:,.{_decimals(row)}f}")


def _interval(row: Row) -> tuple[Text, ...]:
    if row.test.p is None:
        return (Text(_NONE_SHOWN),)
    return Text(f"{_signed(row.test.low, row)} to"), Text(_signed(row.test.high, row))


def _counted(row: Row) -> tuple[Text, ...]:
    counts = Text(f"{row.won}/{row.tied}/{row.lost}")
    splits, planned = len(row.pair.splits), row.pair.planned
    return (counts, Text(f"[{splits} of {planned}]")) if splits < planned else (counts,)


def _signed(value: float, row: Row) -> str:
    return f"{value:+,.{_decimals(row)}f}"


def _decimals(row: Row) -> int:
    return decimals_of(row.test)


def decimals_of(test: PairedTest) -> int:
    """Return the digits after the point that show two significant digits of the spread."""
    size = test.sd or abs(test.mean)
    return min(max(1 - math.floor(math.log10(size)), 0), 8) if size else 4


def shown_p(p: float | None) -> str:
    """Return a p-value with two digits, or a dash."""
    return _NONE_SHOWN if p is None else f"{p:.2g}"


def together(found: MethodComparison) -> Iterator[str]:
    """Yield a line for each privacy level: wins over datasets, and the tests of them."""
    for across in found.across:
        tied = f", {across.tied} tied" if across.tied else ""
        is_private = math.isfinite(across.epsilon)
        at = f"Epsilon {across.epsilon:g}" if is_private else "Without privacy"
        yield (
            f"{at}: {found.first} is better in the mean on {across.won} of "
            f"{across.datasets} datasets, {found.second} on {across.lost}{tied}. {_tests(across)}"
        )


def _tests(across: AcrossDatasets) -> str:
    n = across.won + across.lost
    if across.p_sign is None:
        return "No test."
    sign = f"Sign test: p {shown_p(across.p_sign)}, n {n}"
    if across.p_wilcoxon is None:
        return f"{sign}."
    return f"{sign}; signed-rank test: p {shown_p(across.p_wilcoxon)}, n {n}."


def comparison_notes(found: MethodComparison) -> Iterator[str]:
    """Yield what the columns mean, what the tests are about, and what was left out."""
    tests = sum(row.p_holm is not None for row in found.rows)
    adjusted = f", adjusted for {tests} rows (Holm)" if tests > 1 else ""
    yield (
        "difference: the mean over the splits that both have, ± its standard deviation. p: of no "
        f"difference{adjusted}. better: which one, where p < 0.05. splits: on which {found.first} "
        "is better / equal / worse."
    )
    for evaluation in dict.fromkeys(row.pair.first.task.evaluation for row in found.rows):
        yield ABOUT[evaluation]
    without = dict.fromkeys(row.pair.dataset for row in found.rows if row.p_holm is None)
    if without:
        places = ", ".join(without)
        yield f"{places}: the difference is the same on all splits, so there is nothing to test by."
    if found.across:
        yield (
            "Over datasets: tests of Demsar (2006), with one mean difference a dataset, not "
            "adjusted for the privacy levels. The signed-rank test needs differences in one "
            "metric, and not in the units of each target."
        )
    yield from pair_notes(found)
    if found.left_out:
        yield f"Left out: {'; '.join(found.left_out)}."


def pair_notes(found: MethodComparison) -> Iterator[str]:
    """Yield what a reader must know of the results compared, with the datasets it is about."""
    datasets_of: dict[str, dict[str, None]] = {}
    for row in found.rows:
        for note in _of_pair(row.pair):
            datasets_of.setdefault(note, {})[row.pair.dataset] = None
    yield from (f"{', '.join(datasets)}: {note}." for note, datasets in datasets_of.items())


def _of_pair(pair: Pair) -> Iterator[str]:
    """Yield what a reader must know of the results compared."""
    for cell in (pair.first, pair.second):
        yield from notes_of(cell)
    if not set(pair.first.journals) & set(pair.second.journals):
        yield f"of two configs, {_journals(pair.first)} and {_journals(pair.second)}"
    domains = pair.first.task.domain, pair.second.task.domain
    if domains[0] != domains[1]:
        labels = pair.first.task.label, pair.second.task.label
        yield f"{labels[0]} has the {domains[0]} domain, {labels[1]} the {domains[1]} one"


def notes_of(cell: ResultCell) -> Iterator[str]:
    """Yield what a reader must know of the results of one method."""
    label = cell.task.label
    if cell.is_tuned:
        yield f"{label} is tuned, its parameters were chosen on rows of this dataset"
    if cell.is_unverified:
        yield f"{label} is unverified, nothing says what epsilon it spends"
    if cell.word is not None:
        yield f"{label} is a method of one's own, its epsilon its author's word, {cell.word}"
    if cell.task.is_synthetic:
        yield "SYNTHETIC data, a random stand-in that does not count over datasets"
    if cell.task.is_private:
        yield "PRIVATE rows, exact scores that are not for release"


def _journals(cell: ResultCell) -> str:
    return "+".join(cell.journals)


def comparison_rows(found: MethodComparison) -> list[dict[str, Any]]:
    """Return one flat row for each dataset and privacy level; an infinite epsilon becomes None.

    `difference` is first minus second, `p_holm` the p-value adjusted for all rows, and `won` the
    number of splits on which the first is better.
    """
    return [_flat(row) for row in found.rows]


def _flat(row: Row) -> dict[str, Any]:
    test, (mean_first, mean_second) = row.test, row.means
    return {
        **_place(row.pair),
        "evaluation": row.pair.first.task.evaluation,
        "higher_is_better": row.pair.metric.higher_is_better,
        "splits": len(row.pair.splits),
        "planned": row.pair.planned,
        "mean_first": mean_first,
        "mean_second": mean_second,
        "difference": test.mean,
        "sd": test.sd,
        "standard_error": test.standard_error,
        "freedom": test.freedom,
        "ci_low": None if test.p is None else test.low,
        "ci_high": None if test.p is None else test.high,
        "p": test.p,
        "p_holm": row.p_holm,
        "better": row.better or None,
        "won": row.won,
        "tied": row.tied,
        "lost": row.lost,
    }


def _place(pair: Pair) -> dict[str, Any]:
    return {
        "dataset": pair.dataset,
        "metric": pair.metric.name,
        "first": pair.first.task.label,
        "second": pair.second.task.label,
        "epsilon_first": finite(pair.first.task.epsilon),
        "epsilon_second": finite(pair.second.task.epsilon),
        "config_first": _journals(pair.first),
        "config_second": _journals(pair.second),
    }


def split_rows(found: MethodComparison) -> list[dict[str, Any]]:
    """Return one flat row for each split: the values of both methods, and first minus second."""
    return [
        _place(row.pair)
        | {"split": split, "value_first": ours, "value_second": theirs, "difference": ours - theirs}
        for row in found.rows
        for split, (ours, theirs) in zip(row.pair.splits, row.pair.values, strict=True)
    ]


def csv_rows(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as CSV; ``inf`` stands for a method without privacy."""
    levels = ("epsilon_first", "epsilon_second")
    found = [row | {k: "inf" if row[k] is None else row[k] for k in levels} for row in rows]
    return csv_table(found)


def json_comparison(found: MethodComparison, per_split: bool = False) -> str:
    """Return all of a comparison as JSON; with `per_split` the values of each split, too."""
    document: dict[str, Any] = {
        "first": found.first,
        "second": found.second,
        "rows": comparison_rows(found),
        "across_datasets": [_flat_across(across) for across in found.across],
        "left_out": list(found.left_out),
        "notes": list(comparison_notes(found)),
    }
    if per_split:
        document["splits"] = split_rows(found)
    return json_text(document)


def _flat_across(across: AcrossDatasets) -> dict[str, Any]:
    return {
        "epsilon": finite(across.epsilon),
        "won": across.won,
        "tied": across.tied,
        "lost": across.lost,
        "p_sign": across.p_sign,
        "p_wilcoxon": across.p_wilcoxon,
    }


def finite(epsilon: float) -> float | None:
    """Return a privacy level as JSON has it: None for a method without privacy."""
    return epsilon if math.isfinite(epsilon) else None
