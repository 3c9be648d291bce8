"""Time how a CSV is read, beside other readers, in one run; nothing here asserts a time.

Each reader parses the same file of n rows with 9 numbers, 4 categories, of which one has quotes
and a comma in it, a whole number and a label. Seconds are those of all processors together.
`clean` is the whole of `dprepro.load`: records checked and counted, codes and bounds applied.
With --old a checkout of another version is timed in the same turns. Prints Markdown.

Example: python benchmarks/reading.py --rows 1000000 --old ../dprepro-0.2.0
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from machine import describe

CARD = """\
name: timed
task: binary
file: {path}
target: y
positive: "yes"
features:
{numbers}
{categories}
  i: {{numeric: [0, 1000]}}
"""
ONE = """
import sys, time
from dprepro import load
times = []
for _ in range(3):
    start = time.process_time()
    load(sys.argv[1])
    times.append(time.process_time() - start)
print(min(times))
"""


def write(folder: Path, rows: int) -> tuple[Path, Path]:
    """Write the table and its card; return their paths."""
    rng = np.random.default_rng(0)
    colours = ["red", "green", "blue, dark", "it is"]
    columns = {f"x{k}": rng.normal(size=rows).round(4) for k in range(9)}
    columns |= {f"c{k}": rng.choice(colours, rows) for k in range(4)}
    columns |= {"i": rng.integers(0, 1000, rows), "y": rng.choice(["no", "yes"], rows)}
    table, card = folder / "timed.csv", folder / "timed.yaml"
    pd.DataFrame(columns).to_csv(table, index=False)
    numbers = "\n".join(f"  x{k}: {{numeric: [-10, 10]}}" for k in range(9))
    categories = "\n".join(f"  c{k}: {{categories: {colours}}}" for k in range(4))
    card.write_text(CARD.format(path=table, numbers=numbers, categories=categories))
    return table, card


def by_arrow(path: Path) -> None:
    """As Arrow reads a CSV that is known to be well formed."""
    import pyarrow.csv

    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    pyarrow.csv.read_csv(path, parse_options=options).to_pandas()


def by_csv(path: Path) -> None:
    """Fields alone, by Python's csv."""
    with path.open(encoding="utf-8", newline="") as file:
        sum(1 for _ in csv.reader(file))


def by_duckdb(path: Path) -> None:
    """As DuckDB reads a CSV, with its checks of quotes."""
    import duckdb

    duckdb.sql(f"select * from read_csv('{path}', strict_mode=true)").df()


READERS: dict[str, Callable[[Path], object]] = {
    "pyarrow": by_arrow,
    "pandas": pd.read_csv,
    "csv of Python": by_csv,
    "DuckDB": by_duckdb,
}


def seconds(reader: Callable[[Path], object], path: Path) -> float:
    """Return the processor time of one reading."""
    start = sum(os.times()[:2])
    reader(path)
    return sum(os.times()[:2]) - start


def loading(card: Path, checkout: Path) -> float:
    """Return the processor time of the best of three loads by a version of dprepro."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-c", ONE, str(card)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print medians, and what they are of this version's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--old", type=Path, help="a checkout of another version")
    given = parser.parse_args()
    versions = {"dprepro.load": Path(__file__).resolve().parents[1]}
    if given.old:
        versions[f"dprepro.load of {given.old.name}"] = given.old.resolve()
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        table, card = write(Path(folder), given.rows)
        size = table.stat().st_size / 2**20
        for _ in range(given.turns):
            for name, checkout in versions.items():
                times.setdefault(name, []).append(loading(card, checkout))
            for name, reader in READERS.items():
                times.setdefault(name, []).append(seconds(reader, table))
    print(f"{given.rows:,} rows of 15 columns, {size:.0f} MiB; {describe()['cpu']}\n")
    print("| reader | median s | least s | of dprepro.load |\n| --- | ---: | ---: | ---: |")
    own = np.median(times["dprepro.load"])
    for name, found in times.items():
        median = np.median(found)
        print(f"| {name} | {median:.2f} | {min(found):.2f} | {median / own:.2f} |")


if __name__ == "__main__":
    main()
