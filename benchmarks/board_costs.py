"""What a fit of each method of the leaderboard costs: seconds of one core, and memory.

Each fit is at epsilon 1, on the first training split of a table, in a fresh process on one core,
after a fit to a small table of the same kind. Memory is the peak of the fit beyond the process that
is about to start it, which holds the encoded rows. Seconds are those of the processor.

Example: python benchmarks/board_costs.py --tables adult dry-bean cal-housing
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from ebm_fit import as_markdown
from fit_memory import peak, start_peak
from machine import describe, pin_to_one_core

from dprepro.data.card import load_card
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.worker import DataRef, compile_kernels, fit_task, rows_of

SMALL = {"binary": "pima", "multiclass": "car", "regression": "wine"}
"""A table of each kind on which everything is loaded before a fit is measured."""


def fit(table: str, label: str, data_dir: Path | None) -> dict[str, float]:
    """Fit once to a small table, then once to this one: seconds and MiB."""
    warnings.simplefilter("ignore")
    pin_to_one_core()
    found: dict[str, float] = {}
    for name in (SMALL[load_card(table).task], table):
        config = load_config(f"board-{name}")
        task = next(t.task for t in plan(config, data_dir) if _is_asked(t.task, label))
        data = DataRef.of(config, data_dir)
        compile_kernels([task.method], load_card(name).task)
        rows_of(task, data)
        gc.collect()
        before, start = start_peak(), time.process_time()
        fit_task(task, data)
        found = {"s": time.process_time() - start, "MiB": (peak() - before) / 2**20}
    return found


def _is_asked(task: Any, label: str) -> bool:
    return task.label == label and (task.epsilon is None or task.epsilon in (1, math.inf))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=["adult", "dry-bean", "cal-housing"])
    parser.add_argument("--data-dir", type=Path, help="folder of local files, else $DPREPRO_DATA")
    parser.add_argument("--fit", nargs=2, metavar=("TABLE", "LABEL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        print(json.dumps(fit(*given.fit, given.data_dir)))
        return
    print("\n".join(f"- {name}: {value}" for name, value in describe().items()))
    where = ["--data-dir", str(given.data_dir)] if given.data_dir else []
    for table in given.tables:
        rows = []
        for entry in load_config(f"board-{table}").methods:
            command = [sys.executable, __file__, *where, "--fit", table, entry.label]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append({"method": entry.label, **json.loads(done.stdout)})
        print(f"\n{table}\n\n{as_markdown(rows)}", flush=True)


if __name__ == "__main__":
    main()
