"""Time whole commands of two checkouts side by side, in one run; nothing here asserts a time.

Each command is a process of its own, as a user starts it, by one interpreter, with the results that
its checkout holds. The checkouts take turns. One untimed turn warms the disk and compiles kernels,
but for what is cold. Processor seconds are those of a command with its workers, peak memory is that
of its largest process. Byte code is kept, as for a user. With --records, `table wine-white` also
reads synthetic results of growing size, on this checkout. Prints Markdown.

Example: python benchmarks/commands.py --old ../before --commands table check --turns 5
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from machine import describe

HERE = Path(__file__).resolve().parents[1]
MODEL = "results/models/adult-dp-ebm-gdp-4.json"
COLD = "quickstart, cold"
COMMANDS = {
    "help": ["--help"],
    "typo": ["compare", "dp-ebm-pluss", "dp-ebm-gdp"],
    "table": ["table"],
    "table --metric auc": ["table", "--metric", "auc"],
    "compare": ["compare", "dp-ebm-plus", "dp-ebm-gdp"],
    "check": ["check"],
    "forensics": ["forensics"],
    "run, finished": ["run", "wine-white", "--results", "{kept}"],
    "report": ["report", "--output", "{new}/report.html"],
    "plot curves": ["plot", "curves", "--output", "{new}"],
    "predict": ["predict", MODEL, "{rows}", "--output", "{new}/predicted.csv"],
    "run, one task": [
        *("run", "quickstart", "--method", "dp-ebm-gdp", "--epsilon", "1", "--splits", "1"),
        *("--results", "{new}"),
    ],
    "quickstart, warm": ["run", "quickstart", "--results", "{new}"],
    COLD: ["run", "quickstart", "--results", "{new}"],
}
"""Arguments, where `{new}` is an empty folder, `{kept}` a copy of the results, `{rows}` a table."""
MISTAKES = {"typo": 2}
"""Exit codes, where they are not 0."""
MOST_SPLITS = 10_000
"""Of a plan (`dprepro.experiment.config.Splits`)."""
LAUNCHER = """
import os, sys
said, *command = sys.argv[1:]
streams = [(os.POSIX_SPAWN_DUP2, int(said), stream) for stream in (1, 2)]
process = os.posix_spawn(command[0], command, os.environ, file_actions=streams)
_, status, used = os.wait4(process, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
"""Starts a command. Its peak memory is at least that of who starts it: this program has 100 MiB."""


@dataclass(frozen=True)
class Cost:
    """What one process, with those that it started, took: seconds, seconds, MiB."""

    wall: float
    processor: float
    memory: float


def cost(checkout: Path, arguments: Sequence[str], cache: Path, code: int = 0) -> Cost:
    """Run a command of a checkout to its end, in its folder."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "DPREPRO_CACHE": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "dprepro", *arguments]
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        found = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCHER, str(said.fileno()), *command],
            cwd=checkout,
            env=environment,
            stdout=subprocess.PIPE,
            pass_fds=[said.fileno()],
            check=True,
        )
        wall = time.perf_counter() - start
        returned, processor, memory = map(float, found.stdout.split())
        if returned != code:
            said.seek(0)
            sys.exit(f"{checkout}: {arguments}: {returned:.0f}\n{said.read().decode()}")
    return Cost(wall, processor, memory)


def new_rows(path: Path, rows: int) -> None:
    """Write a table that the model can predict: numbers and categories at random."""
    rng = np.random.default_rng(0)
    columns = {}
    for feature in json.loads((HERE / MODEL).read_text())["features"]:
        if feature["kind"] == "numeric":
            values = rng.uniform(feature["lower"], feature["upper"], rows).round(2)
        else:
            values = rng.choice(feature["categories"], rows)
        columns[feature["name"]] = values
    pd.DataFrame(columns).to_csv(path, index=False)


def synthetic(path: Path, records: int) -> None:
    """Write a packed journal of at least so many records: one of ours, with more splits.

    Where a plan can have no more splits, methods stand in it again under other labels.
    """
    import pyarrow as pa

    from dprepro.experiment.journal import JournalTable, read_journal
    from dprepro.experiment.packed import as_file, columns_of
    from dprepro.experiment.plan_record import StatedCell
    from dprepro.experiment.record import written

    given = HERE / "results" / "wine-white.parquet"
    own = {record.task.cell: record for record in read_journal(given).records}.values()
    copies = math.ceil(records / (len(own) * MOST_SPLITS))
    splits = math.ceil(records / (len(own) * copies))
    cells = [
        replace(record, task=replace(record.task, label=f"{record.task.label}{' again' * copy}"))
        for copy in range(copies)
        for record in own
    ]
    keys = [
        tuple(replace(record.task, split=split).key for split in range(splits)) for record in cells
    ]
    stated = JournalTable(given).plan.model_copy(
        update={
            "splits": splits,
            "cells": tuple(
                StatedCell(label=record.task.label, epsilon=record.task.epsilon, keys=found)
                for record, found in zip(cells, keys, strict=True)
            ),
        }
    )
    head = columns_of([written(stated.to_json())[:-1]])
    rows = columns_of([written(record.to_json())[:-1] for record in cells])
    every = np.repeat(np.arange(len(rows)), splits)
    table = rows.take(pa.array(every))
    rng, columns = np.random.default_rng(0), {}
    for field in table.schema:
        column = table.column(field.name)
        if field.name == "key":
            column = pa.array([key for found in keys for key in found])
        elif field.name == "split":
            column = pa.array(np.tile(np.arange(splits, dtype=np.int32), len(rows)))
        elif field.type == pa.float64():  # digits as measured ones have, and nulls where they are
            noise = pa.array(rng.normal(1, 0.05, len(table)))
            column = pa.compute.multiply(column, noise)
        columns[field.name] = column
    whole = pa.concat_tables([head, pa.table(columns)], promote_options="default")
    path.parent.mkdir(parents=True)
    # No lines were packed: what reads columns never asks for the digest of lines.
    path.write_bytes(as_file(whole, hashlib.sha256(b"").hexdigest()))


def growth(sizes: Sequence[int], turns: int, folder: Path) -> None:
    """Print what `table` takes with results of growing size."""
    print("\n| records | MiB on disk | wall s: min | median | max | processor s | peak MiB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in sizes:
        path = folder / str(size) / "wine-white.parquet"
        synthetic(path, size)
        arguments = ["table", "wine-white", "--results", str(path.parent)]
        found = [cost(HERE, arguments, folder / "cache") for _ in range(turns + 1)][1:]
        walls = sorted(each.wall for each in found)
        print(
            f"| {size:,} | {path.stat().st_size / 2**20:.1f} | {walls[0]:.2f} | "
            f"{statistics.median(walls):.2f} | {walls[-1]:.2f} | "
            f"{statistics.median(each.processor for each in found):.2f} | "
            f"{max(each.memory for each in found):.0f} |",
            flush=True,
        )


def side_by_side(
    versions: dict[str, Path], names: Sequence[str], turns: int, rows: int, folder: Path
) -> None:
    """Print what commands take in each version, and the ratio of the first one's to it."""
    table = folder / "rows.csv"
    if "predict" in names:
        new_rows(table, rows)
    if "run, finished" in names:
        for version, checkout in versions.items():
            shutil.copytree(checkout / "results", folder / "kept" / version)
    print("| command | version | wall s: min | median | max | ratio ", end="")
    print("| processor s: min | median | max | ratio | peak MiB | ratio |")
    print("| --- | --- |" + " ---: |" * 10)
    for name in names:
        found: dict[str, list[Cost]] = {version: [] for version in versions}
        for turn in range(turns if name == COLD else turns + 1):
            for version, checkout in versions.items():
                new = Path(tempfile.mkdtemp(dir=folder))
                kept = folder / "kept" / version
                given = [part.format(new=new, kept=kept, rows=table) for part in COMMANDS[name]]
                cache = new / "cache" if name == COLD else folder / "cache" / version
                spent = cost(checkout, given, cache, MISTAKES.get(name, 0))
                shutil.rmtree(new)
                if turn or name == COLD:
                    found[version].append(spent)
        _print(name, found)


def _print(name: str, found: dict[str, list[Cost]]) -> None:
    first = next(iter(found.values()))
    for version, costs in found.items():
        cells = [name, version]
        for measure in ("wall", "processor"):
            values = sorted(getattr(each, measure) for each in costs)
            median = statistics.median(values)
            before = statistics.median(getattr(each, measure) for each in first)
            cells += [f"{value:.2f}" for value in (values[0], median, values[-1])]
            cells.append(f"{before / median:.2f}")
        peak, before = (max(each.memory for each in costs_of) for costs_of in (costs, first))
        cells += [f"{peak:.0f}", f"{before / peak:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print one table, or two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, help="a checkout of another version")
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10**6, help="of the table to predict")
    parser.add_argument("--records", type=int, nargs="*", default=[], help="e.g. 1000 1000000")
    given = parser.parse_args()
    versions = {"old": given.old.resolve()} if given.old else {}
    machine = describe()
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_average']:.1f}\n")
    with tempfile.TemporaryDirectory() as folder:
        if given.commands:
            both = versions | {"new": HERE}
            side_by_side(both, given.commands, given.turns, given.rows, Path(folder))
        if given.records:
            growth(given.records, given.turns, Path(folder))


if __name__ == "__main__":
    main()
