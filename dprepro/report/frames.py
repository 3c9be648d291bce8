"""Results and verdicts as tidy data frames, for Python and notebooks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dprepro.judge.check import CheckReport
from dprepro.judge.verdicts import CellVerdict
from dprepro.report.rows import FlatRow, measured, verdict_row
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import find_metric

if TYPE_CHECKING:
    import pandas as pd

TEXT, NUMBER, COUNT, FLAG = "object", "float64", "Int64", "bool"
COLUMNS = {
    "dataset": TEXT, "method": TEXT, "epsilon": NUMBER, "metric": TEXT, "mean": NUMBER,
    "sd": NUMBER, "splits": COUNT, "planned": COUNT, "failed": COUNT, "skipped": COUNT,
    "delta": NUMBER, "true_epsilon": NUMBER, "unverified": FLAG, "private": FLAG,
    "config": TEXT, "paper": TEXT, "table": TEXT, "published_mean": NUMBER,
    "published_sd": NUMBER, "verdict": TEXT,
}  # fmt: skip
"""Columns of `result_frame` and their dtypes, in order."""

VERDICT_COLUMNS = {
    "paper": TEXT, "table": TEXT, "dataset": TEXT, "method": TEXT, "epsilon": NUMBER,
    "metric": TEXT, "mean": NUMBER, "sd": NUMBER, "splits": COUNT, "published_mean": NUMBER,
    "published_sd": NUMBER, "published_splits": COUNT, "difference": NUMBER, "ci_low": NUMBER,
    "ci_high": NUMBER, "margin": NUMBER, "verdict": TEXT, "splits_needed": COUNT,
    "note": TEXT, "explanation": TEXT, "config": TEXT,
}  # fmt: skip
"""Columns of `Verdicts.frame` and their dtypes, in order."""


def result_frame(
    results: Results,
    verdicts: Sequence[CellVerdict] = (),
    metrics: Collection[str] = (),
    every_metric: bool = False,
) -> pd.DataFrame:
    """Return a row for each dataset, method, epsilon and metric that has a record; see `COLUMNS`.

    Parameters
    ----------
    verdicts
        On printed cells. A result that two documents print has a row for each.
    metrics
        Only these; default that of each cell's config. A cell without it has the first that it has.
    every_metric
        All that records hold.
    """
    at: dict[tuple[str, str], list[CellVerdict]] = {}
    for verdict in verdicts:
        if verdict.result is not None:
            name = find_metric(verdict.published.metric).name
            at.setdefault((verdict.result.task.cell, name), []).append(verdict)
    rows = []
    for cell in results.cells:
        for metric in _metrics(cell, metrics, every_metric):
            found = at.get((cell.task.cell, metric), ())
            rows += [_row(cell.answering, metric, verdict) for verdict in found]
            rows += [] if found else [_row(cell, metric, None)]
    return frame_of(rows, COLUMNS)


def _metrics(cell: ResultCell, wanted: Collection[str], every: bool) -> Iterator[str]:
    if every or wanted:
        yield from (name for name in cell.values if every or name in wanted)
        return
    usual = (
        cell.metric if cell.metric in cell.values or not cell.values else next(iter(cell.values))
    )
    yield usual


def _row(cell: ResultCell, metric: str, verdict: CellVerdict | None) -> FlatRow:
    row: FlatRow = {"dataset": cell.dataset, "method": cell.task.label, "metric": metric}
    row |= {"epsilon": cell.task.epsilon, "private": cell.task.is_private}
    row |= {"config": "+".join(cell.journals)}
    found = measured(cell, metric, None)
    row |= {name: value for name, value in found.items() if name in COLUMNS}
    if verdict is not None:
        printed = verdict.published
        row |= {"paper": printed.paper, "table": printed.table, "verdict": verdict.verdict.value}
        row |= {"published_mean": printed.mean, "published_sd": printed.std}
    return row


def frame_of(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """Return rows as a frame of these columns and dtypes; what a row lacks is missing."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns)).astype(dict(columns))


@dataclass(frozen=True, repr=False)
class Verdicts:
    """What `dprepro.verdicts` found: a verdict on each printed number.

    Attributes
    ----------
    report
        All of the check: claims, columns as wholes, margins.
    """

    report: CheckReport

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each printed number.

        Texts are ``paper``, ``table``, ``dataset``, ``method``, ``metric``, ``verdict``, ``note``,
        ``explanation`` (None where there is none) and ``config``. ``epsilon`` (infinite without
        privacy), ``mean``, ``sd``, ``published_mean``, ``published_sd``, ``difference``,
        ``ci_low``, ``ci_high`` and ``margin`` are float64, NaN where unknown; ``splits``,
        ``published_splits`` and ``splits_needed`` are Int64, missing where unknown.
        """
        rows = []
        for cell in self.report.verdicts:
            row = verdict_row(cell) | {"epsilon": cell.published.epsilon}
            rows.append(row | {"config": "+".join(row["config"])})
        return frame_of(rows, VERDICT_COLUMNS)

    @property
    def counts(self) -> dict[str, int]:
        """Number of printed numbers by verdict, every verdict named."""
        return {verdict.value: count for verdict, count in self.report.counts.items()}

    @property
    def passed(self) -> bool:
        """Whether `dprepro check` passes: each deviation, and each claim that fails, is explained.

        What was not run does not count; see `counts`.
        """
        return self.report.passes()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        papers = ", ".join(self.report.papers)
        return f"Verdicts({papers}: {'passed' if self.passed else 'not passed'}; {counts})"

    def _repr_html_(self) -> str:
        """Return the line of the repr, and the frame as pandas shows it."""
        from html import escape

        said = repr(self).removeprefix("Verdicts(").removesuffix(")")
        return f"<p>{escape(said)}</p>{self.frame.to_html(max_rows=20, max_cols=12)}"
