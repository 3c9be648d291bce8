"""Small stores, and fits that use one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dprepro.rows.folder import ANSWERS, MANIFEST, Folder
from dprepro.rows.ingest import Source
from dprepro.rows.partition import SortedRows
from dprepro.rows.store import Store
from dprepro.rows.table import Table
from tests.rows.killing import Fit, model_of

FILES = [MANIFEST, ANSWERS, "targets", "scores", "marks", "codes-0", "cells-1"]
ENDS = [5, 10, 12]
PARTS = [slice(0, 5), slice(5, 10), slice(10, 12)]
TARGETS = np.arange(100, 112, dtype=np.int32)
CELLS = {0: np.arange(12) % 3, 1: (np.arange(12) * 25).astype(np.uint16)}
SIZES = (3, 300)


def sort(part: slice) -> SortedRows:
    cells = {k: found[part] for k, found in CELLS.items()}
    counts = [np.bincount(cells[k], minlength=size) for k, size in enumerate(SIZES)]
    return SortedRows(TARGETS[part], cells, counts)


def source(chunks: Any = PARTS, **identity: Any) -> Source:
    return Source({"of": "this", **identity}, chunks, sort)


def left(path: Path) -> None:
    """Leave what a fit leaves that was interrupted: one feature has codes, two answers."""
    made = Store.open(Folder(path), source())
    for chunk, columns in enumerate(made.columns()):
        columns.codes[0] = columns.cells[0] + np.uint8(7)
        columns.scores[:] = chunk
        columns.followed = chunk
        columns.let_go()
    made.finish(0)
    answers = made.answers()
    answers.keep("a", np.array([1]))
    answers.close()
    made.close(finished=False)


def fitted(fit: Fit, **place: Any) -> Any:
    return model_of(fit).fit(Table.open(fit.table, **(place or {"store": fit.folder})), "labels")
