"""Columns of a store are in memory chunk by chunk."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.rows import store
from dprepro.rows.store import Store
from dprepro.rows.table import Table
from tests.released import published
from tests.rows.killing import Fit, fit_in_memory, model_of, rows

GROWTH = """
import sys
import numpy as np
import pandas as pd
from pathlib import Path
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm import DPEBMClassifier
from dprepro.methods.dp_ebm_plus import DPEBMPlusClassifier
from dprepro.rows import table as progress, store, table

table.CHUNK_ROWS, store.RESIDENT_BYTES = 2**15, 2**21
features = [NumericFeature(f"x{k}", 0, 1) for k in range(3)]
before = []

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

def heard(what, done, total):
    if what == "reading rows" and done == total:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is from here on
        before.append(memory("VmRSS"))

for encrypted in (False, True):
    for kind in (DPEBMClassifier, DPEBMPlusClassifier):
        model = kind(domain=Domain(features, ("0", "1")), n_epochs=1, random_state=0)
        with progress.listening(heard):
            model.fit(table.Table.open(sys.argv[1], encrypted=encrypted), "y")
        print(memory("VmHWM") - before.pop())
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are not known")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Targets and scores alone are 16 MB: plain and encrypted, two methods."""
    path = tmp_path / "table.parquet"
    X = np.random.default_rng(0).random((3, 2_000_000), np.float32)
    frame = pd.DataFrame({f"x{k}": x for k, x in enumerate(X)})
    frame.assign(y=(X[0] > 0.5).astype(int)).to_parquet(path, row_group_size=2**15)
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, path], capture_output=True, text=True, check=True
    )
    grown = [float(line) for line in done.stdout.splitlines()]
    assert len(grown) == 4
    assert max(grown) < 10, grown


def test_a_chunk_is_let_go_after_every_question(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "RESIDENT_BYTES", 0)
    held: set[int] = set()
    read, let_go = Store.read, Store.let_go

    def noted_read(self: Store, name: str, chunk: int) -> np.ndarray:
        held.add(chunk)
        assert len(held) == 1
        return read(self, name, chunk)

    def noted_let_go(self: Store, chunk: int, columns: Any) -> None:
        held.discard(chunk)
        let_go(self, chunk, columns)

    monkeypatch.setattr(Store, "read", noted_read)
    monkeypatch.setattr(Store, "let_go", noted_let_go)
    for model in ("labels", "plus regression"):
        other = replace(fit, model=model)
        target = "labels" if model == "labels" else "numbers"
        found = model_of(other).fit(Table.open(fit.table, store=fit.folder), target)
        assert repr(published(found)) == repr(fit_in_memory(other, rows()))
