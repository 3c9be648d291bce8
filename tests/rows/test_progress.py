"""How far a fit to a table has come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dprepro.rows import table
from dprepro.rows.table import Table, listening, report
from tests.rows.killing import MODELS, ROWS, Fit, model_of, rows, target_of

PASSES = {
    "labels": 9, "adaptive": 9, "regression": 9,
    "plus labels": 12, "plus classes": 12, "plus regression": 12,
}  # fmt: skip
"""Three epochs of three features; DP-EBM+ asks for the intercept, too. For labels and classes it
has twelve epochs, and one pass in each."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_rows_and_passes_are_reported_as_they_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, suffix: str
) -> None:
    monkeypatch.setattr(table, "CHUNK_ROWS", 300)
    path = tmp_path / f"table.{suffix}"
    rows().to_parquet(path) if suffix == "parquet" else rows().to_csv(path, index=False)
    heard: list[Any] = []
    with listening(lambda *told: heard.append(told)):
        model_of(Fit(model)).fit(Table.open(path), target_of(Fit(model)))
    total = ROWS if suffix == "parquet" else None
    passes = PASSES[model]
    assert heard == [
        *[("reading rows", done, total) for done in (300, 600, 900, 1000)],
        *[("boosting", done, passes) for done in range(1, passes + 1)],
    ]


def test_nobody_has_to_listen_and_nobody_hears_later() -> None:
    heard: list[Any] = []
    with listening(lambda *told: heard.append(told)):
        report("boosting", 1, 2)
    report("boosting", 2, 2)
    assert heard == [("boosting", 1, 2)]
