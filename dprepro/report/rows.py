"""Tables and verdicts as flat rows of plain values, for CSV and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dprepro.judge.check import Again, CheckReport
from dprepro.judge.claims import ClaimVerdict
from dprepro.judge.forensics import Place, column_of
from dprepro.judge.omnibus import Omnibus
from dprepro.judge.rerun import RerunReport
from dprepro.judge.snapshot import COLUMNS, in_text
from dprepro.judge.verdicts import CellVerdict
from dprepro.report.forensics import json_held_out
from dprepro.report.formatting import Style, choice_rows
from dprepro.report.layout import Entry, Group, ResultTable
from dprepro.results.folder import ResultCell
from dprepro.runtime.text import csv_table, json_text

FlatRow = dict[str, Any]
# What gets the digits that a user asks for.
_ROUNDED = ("mean", "sd", "published_mean", "published_sd", "difference")
_COLUMN = ("paper", "table", "dataset", "method")


def table_rows(tables: Iterable[ResultTable], compare: bool) -> Iterator[FlatRow]:
    """Yield one row for each measured or printed entry; an infinite epsilon becomes None.

    An entry that stands in two columns (two private methods with one non-private twin) comes once.
    Of several results with different settings each gets a row; `config` tells them apart.
    """
    for table in tables:
        seen = set()
        for group, entry in table.entries:
            place = (id(group), entry.label, entry.epsilon)
            results = entry.clash.cells if entry.clash else (entry.result,)
            if place not in seen and (entry.result or entry.verdict or entry.clash):
                seen.add(place)
                for result in results:
                    yield _entry_row(table, group, entry, result, compare)


def _entry_row(
    table: ResultTable, group: Group, entry: Entry, result: ResultCell | None, compare: bool
) -> FlatRow:
    planned = None if entry.clash else entry.planned
    row: FlatRow = {"paper": table.paper, "table": table.table}
    row |= {"dataset": group.dataset, "method": entry.label}
    row |= {"epsilon": _finite(entry.epsilon), "metric": table.metric.name}
    row |= {"is_best": entry.is_best}
    row |= measured(result, table.metric.name, planned)
    row["config"] = list(result.journals) if result else []
    return row | _judged(entry.verdict) if compare else row


def recorded_rows(tables: Iterable[ResultTable], report: CheckReport) -> list[dict[str, str]]:
    """Return all cells as `dprepro check --record` writes them: printed ones, then the rest."""
    printed = [verdict_row(cell) for cell in report.verdicts]
    places = {_place(row) for row in printed}
    others = [row for row in table_rows(tables, compare=True) if _place(row) not in places]
    rows = []
    for row in [*printed, *others]:
        found = {name: in_text(row.get(name)) for name in COLUMNS}
        found["config"] = "+".join(row.get("config") or ())
        rows.append(found)
    return rows


def _place(row: FlatRow) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("paper", "table", "dataset", "method", "epsilon", "metric"))


def csv_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return one CSV row an entry; ``inf`` stands for non-private, as in the published files."""
    rows = list(table_rows(tables, style.compare))
    for row in rows:
        if style.digits is not None:
            found = {name: row[name] for name in _ROUNDED if row.get(name) is not None}
            row |= {name: f"{value:.{style.digits}f}" for name, value in found.items()}
        row["config"] = "+".join(row["config"])
        row["epsilon"] = "inf" if row["epsilon"] is None else row["epsilon"]
    return csv_table(rows)


def json_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return a JSON list with one object an entry; epsilon is null for non-private ones."""
    rows = list(table_rows(tables, style.compare))
    if style.digits is not None:
        for row in rows:
            found = {name: row[name] for name in _ROUNDED if row.get(name) is not None}
            row |= {name: round(value, style.digits) for name, value in found.items()}
    return json_text(rows)


def verdict_row(cell: CellVerdict) -> FlatRow:
    """Return one verdict as a flat row."""
    printed = cell.published
    row: FlatRow = {"paper": printed.paper, "table": printed.table, "dataset": printed.dataset}
    row |= {"method": printed.method, "epsilon": _finite(printed.epsilon)}
    row |= {"metric": printed.metric}
    row["config"] = list(cell.result.journals) if cell.result else []
    found = measured(cell.result, printed.metric, None)
    found.pop("planned")
    return row | found | _judged(cell)


def check_json(report: CheckReport, require_all: bool = False) -> dict[str, Any]:
    """Return a whole check as what strict JSON can hold."""
    return {
        "passes": report.passes(require_all),
        "counts": {verdict.value: count for verdict, count in report.counts.items()},
        "judged": report.judged,
        "unfinished": [str(cell.published) for cell in report.unfinished],
        "unexplained": len(report.unexplained),
        "explained": len(report.understood),
        "cause_unknown": [str(cell.published) for cell in report.unknown],
        "margins": {metric: asdict(width) for metric, width in report.margins.items()},
        "documents": _together(report),
        "cells": [verdict_row(cell) | _chosen(cell, report) for cell in report.verdicts],
        "known": [str(cell.published) for cell in report.known],
        "choices": [
            {"paper": paper, "settings": settings}
            | {verdict.value: count for verdict, count in counts.items()}
            for paper, settings, counts in choice_rows(report)
        ],
        "fitted": [dict(zip(_COLUMN, place, strict=True)) for place in report.fitted],
        "held_out": json_held_out(report.held_out),
        "unverified": [str(cell.published) for cell in report.unverified],
        "tuned": [str(cell.published) for cell in report.tuned],
        "untested_columns": [str(column) for column in report.untested],
        "unexplained_claims": len(report.unexplained_claims),
        "claims": [claim_row(claim) for claim in report.claims],
        "stale": [
            {**verdict_row(stale.cell), "expected": stale.entry.expected} for stale in report.stale
        ],
        "stale_claims": [claim.claim.name for claim in report.stale_claims],
        "notes": list(report.notes),
    }


def claim_row(verdict: ClaimVerdict) -> FlatRow:
    """Return one claim; `published` is what the printed cells say that answer to ours."""
    claim = verdict.claim
    findings = {"measured": verdict.measured, "published": verdict.published}
    return {
        "paper": verdict.paper,
        "claim": claim.name,
        "section": claim.section,
        "states": claim.states,
        "note": claim.note,
        "verdict": verdict.outcome.value,
        "verdict_in_words": verdict.words,
        **{
            name: asdict(finding) if finding else None
            for name, finding in {**findings, "published_whole": verdict.whole}.items()
        },
        "missing": [str(cell) for cell in verdict.missing],
        "impossible": [str(cell.published) for cell in verdict.impossible],
        "explanation": verdict.explanation,
    }


def rerun_json(report: RerunReport) -> dict[str, Any]:
    """Return the comparison of a fresh run with committed records for strict JSON."""
    return {
        "passes": report.passes,
        "matched": report.matched,
        "missing": len(report.missing),
        "largest": report.largest,
        # JSON has no infinity; None is a method whose metrics are not compared.
        "tolerances": {
            name: value if value < math.inf else None for name, value in report.tolerances.items()
        },
        "mismatches": [str(mismatch) for mismatch in report.mismatches],
    }


def again_json(found: Again) -> dict[str, Any]:
    """Return what `--fast` compares for strict JSON."""
    changed = None if found.changed is None else list(found.changed)
    return {"rerun": rerun_json(found.rerun), "changed": changed, "stale_entries": found.stale}


def measured(result: ResultCell | None, metric: str, planned: int | None) -> FlatRow:
    """Return what there is of a result in a metric; `planned` overrides its own number."""
    if result is None:
        return dict.fromkeys(
            (
                "mean", "sd", "splits", "planned", "failed", "skipped", "delta", "true_epsilon",
                "unverified", "authors_word", "tuned", "unit", "rows_per_unit",
            )
        )  # fmt: skip
    has_values = result.splits(metric) > 0
    return {
        "mean": result.mean(metric) if has_values else None,
        "sd": result.sd(metric) if has_values else None,
        "splits": result.splits(metric),
        "planned": planned or result.planned,
        "failed": result.failed,
        "skipped": result.skipped,
        "delta": result.task.delta if result.has_records else None,
        "true_epsilon": result.spent_epsilon,
        "unverified": result.is_unverified,
        "authors_word": None if result.word is None else result.word.value,
        "tuned": result.is_tuned,
        "unit": result.task.unit,
        "rows_per_unit": result.task.rows_per_unit,
    }


def _judged(cell: CellVerdict | None) -> FlatRow:
    printed = cell.published if cell else None
    comparison = cell.comparison if cell else None
    undecided = cell.undecided if cell else None
    return {
        "published_mean": printed.mean if printed else None,
        "published_sd": printed.std if printed else None,
        "published_splits": cell.published_splits if cell else None,
        "difference": cell.difference if cell else None,
        "z": _finite(comparison.z) if comparison else None,
        "p_difference": comparison.p_difference if comparison else None,
        "ci_low": comparison.low if comparison else None,
        "ci_high": comparison.high if comparison else None,
        "margin": cell.margin if cell else None,
        "p_equivalence": comparison.p_equivalence if comparison else None,
        "equivalent": comparison.is_equivalent if comparison else None,
        "verdict": cell.verdict.value if cell else None,
        "limited_by": undecided.limited_by.value if undecided else None,
        "splits_needed": undecided.splits if undecided else None,
        "note": cell.note if cell else None,
        "explanation": cell.explanation if cell else None,
    }


def _chosen(cell: CellVerdict, report: CheckReport) -> FlatRow:
    choice = report.choices.get(column_of(cell.published))
    return {"selected_from": choice.selected_from if choice else None}


def _selection(place: Place, report: CheckReport) -> FlatRow:
    choice = report.choices.get(place)
    looked_at = choice.selected_on if choice else ()
    return {
        "selected_from": choice.selected_from if choice else None,
        "selected_on": [one.model_dump(exclude_none=True) for one in looked_at],
        "fitted": place in report.fitted,
    }


def _together(report: CheckReport) -> FlatRow:
    """Return what the cells of each document say together, and its columns as wholes."""
    return {
        paper: {
            **_omnibus(own.omnibus),
            "columns": [
                {
                    "table": column.table,
                    "dataset": column.dataset,
                    "method": column.method,
                    "metric": column.metric,
                    **_omnibus(column.omnibus),
                    "verdict": column.state.value,
                    **_selection(column.place, own),
                }
                for column in own.columns
            ],
        }
        for paper, own in ((paper, report.of_paper(paper)) for paper in report.papers)
    }


def _omnibus(found: Omnibus | None) -> FlatRow:
    return {
        "cells": found.cells if found else 0,
        "far": found.far if found else 0,
        "sum_of_squares": found.sum_of_squares if found else None,
        "p_value": found.p_value if found else None,
    }


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None
