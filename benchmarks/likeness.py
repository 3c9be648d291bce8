"""Try what the budget book notices: altered copies of real tables, and tables of other people.

Each of `TABLES` is released (its sketch is made) and then comes back in several forms, with the
rows, columns and noise of `--copies` seeds. Counted is how often the book says that it is alike.
Other people are the other tables, and the other half of the same table. `--rows` also times sketch
and comparison on a synthetic table of so many rows x 15. Prints Markdown.

Example: python benchmarks/likeness.py --rows 1000000 > benchmarks/outputs/likeness.txt
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from dprepro.data.dataset import Dataset, load
from dprepro.release.population_overlap import Rows

TABLES = (
    "abalone", "adult", "bike-sharing", "cal-housing", "credit-default", "mammography", "mushroom",
    "pol", "telco", "wine",
)  # fmt: skip
Table = tuple[pd.DataFrame, np.ndarray]
Change = Callable[[pd.DataFrame, np.ndarray, np.random.Generator], Table]


def rows(take: Callable[[np.random.Generator, int], np.ndarray], without: int = 0) -> Change:
    """Return the change to some rows, by position, and to all columns but some."""

    def change(X: pd.DataFrame, y: np.ndarray, chance: np.random.Generator) -> Table:
        columns = chance.permutation(X.shape[1])[without:]
        at = take(chance, len(y))
        return X.iloc[at, np.sort(columns)].reset_index(drop=True), y[at]

    return change


def part(share: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Return a choice of a share of the rows, in another order."""
    return lambda chance, n: chance.permutation(n)[: max(int(share * n), 1)]


def jittered(size: float, share: float) -> Change:
    """Return the change of numbers by a factor 1 + N(0, size^2), in a share of the columns.

    Texts of these columns get other names.
    """

    def change(X: pd.DataFrame, y: np.ndarray, chance: np.random.Generator) -> Table:
        X = X.copy()
        for name in chance.permutation(list(X))[: int(np.ceil(share * X.shape[1]))]:
            if isinstance(X[name].dtype, pd.CategoricalDtype):
                X[name] = X[name].cat.rename_categories(lambda text: f"{text} (new)")
            else:
                X[name] = X[name].astype(float) * (1 + size * chance.normal(size=len(y)))
        return X, y

    return change


def renamed(X: pd.DataFrame, y: np.ndarray, chance: np.random.Generator) -> Table:
    """Return columns in another order, with other names."""
    order = chance.permutation(X.shape[1])
    return X.iloc[:, order].set_axis([f"column {k}" for k in range(X.shape[1])], axis=1), y


def single(X: pd.DataFrame, y: np.ndarray, _: np.random.Generator) -> Table:
    """Return numbers as float32, as another format may have them."""
    return X.astype(dict.fromkeys(X.select_dtypes("number"), np.float32)), y


NOTICED: dict[str, Change] = {
    "reversed": rows(lambda _, n: np.arange(n)[::-1]),
    "a row less": rows(lambda chance, n: np.delete(np.arange(n), chance.integers(n))),
    "a column less": rows(lambda _, n: np.arange(n), 1),
    "one column and 1 % of the rows less": rows(part(0.99), 1),
    "three columns and 1 % of the rows less": rows(part(0.99), 3),
    "every row twice": rows(lambda _, n: np.repeat(np.arange(n), 2)),
    "half of the rows": rows(part(0.5)),
    "numbers in float32": single,
    "other names and order of all columns": renamed,
    "numbers moved by 1e-7 of them, texts renamed, in half of the columns": jittered(1e-7, 0.5),
}
EVADES: dict[str, Change] = {
    "numbers moved by 1e-7 of them, texts renamed, in all columns": jittered(1e-7, 1),
    "numbers moved by 1 % of them, texts renamed, in a fifth of the columns": jittered(0.01, 0.2),
    "numbers moved by 1 % of them, texts renamed, in half of the columns": jittered(0.01, 0.5),
    "numbers moved by 1 % of them, texts renamed, in all columns": jittered(0.01, 1),
    "a tenth of the rows": rows(part(0.1)),
    "3 % of the rows": rows(part(0.03)),
    "1 % of the rows": rows(part(0.01)),
    "two of the features": lambda X, y, chance: rows(lambda _, n: np.arange(n), X.shape[1] - 2)(
        X, y, chance
    ),
    "one of the features": lambda X, y, chance: rows(lambda _, n: np.arange(n), X.shape[1] - 1)(
        X, y, chance
    ),
}


def dataset(X: pd.DataFrame, y: np.ndarray) -> Dataset:
    """Return a table as the book gets it."""
    return Dataset("table", X.reset_index(drop=True), y, "binary", None, "here", "")


def alike(X: pd.DataFrame, y: np.ndarray, sketch: object) -> bool:
    """Return whether a table is like that of a sketch."""
    return Rows(dataset(X, y)).likeness_to(sketch) is not None  # type: ignore[arg-type]


def altered(tables: dict[str, Dataset], copies: int) -> None:
    """Print how many altered copies are noticed, and which tables' are not."""
    print(f"| {len(tables)} tables, {copies} copies of each | alike | not all of |")
    print("| --- | --- | --- |")
    for name, change in {**NOTICED, **EVADES}.items():
        missed: dict[str, int] = {}
        for k, (title, d) in enumerate(tables.items()):
            for seed in range(copies):
                chance = np.random.default_rng([k, seed])
                X, y = change(d.X, d.y, chance)
                if not alike(X, y, Rows(d).sketch()):
                    missed[title] = missed.get(title, 0) + 1
        total = len(tables) * copies
        told = ", ".join(f"{title} ({copies - n})" for title, n in missed.items())
        print(f"| {name} | {total - sum(missed.values())} of {total} | {told} |", flush=True)


def unlike(tables: dict[str, Dataset], copies: int) -> None:
    """Print how often tables of other people are called alike."""
    pairs = [(a, b) for a, b in combinations(tables, 2)]
    wrong = [(a, b) for a, b in pairs
             if alike(tables[b].X, tables[b].y, Rows(tables[a]).sketch())]  # fmt: skip
    print(f"\nOther tables: {len(wrong)} of {len(pairs)} pairs are called alike {wrong or ''}")
    ordered = [title for title, d in tables.items() if alike(
        d.X.iloc[len(d.y) // 2 :], d.y[len(d.y) // 2 :],
        Rows(dataset(d.X.iloc[: len(d.y) // 2], d.y[: len(d.y) // 2])).sketch(),
    )]  # fmt: skip
    print(f"The second half of the rows, as the file has them: {', '.join(ordered) or 'none'}")
    for columns in (0, 3):
        count: dict[str, int] = {}
        for k, (title, d) in enumerate(tables.items()):
            for seed in range(copies):
                chance = np.random.default_rng([k, seed])
                order = chance.permutation(len(d.y))
                one, other = np.array_split(order, 2)
                half = dataset(d.X.iloc[one], d.y[one])
                kept = np.sort(chance.permutation(d.X.shape[1])[columns:])
                X, y = d.X.iloc[other, kept], d.y[other]
                count[title] = count.get(title, 0) + alike(X, y, Rows(half).sketch())
        told = ", ".join(f"{title} {n}" for title, n in count.items() if n) or "none"
        less = f", {columns} columns less" if columns else ""
        print(f"The other half of the rows{less}, of {copies} each: {told}")


def timed(n: int) -> None:
    """Print time and memory on a synthetic table."""
    chance = np.random.default_rng(0)
    X = pd.DataFrame({f"x{k}": chance.normal(size=n) for k in range(10)})
    for k in range(5):
        X[f"c{k}"] = pd.Categorical(chance.choice(list("abcde"), n))
    d = dataset(X, chance.integers(2, size=n))
    size = X.memory_usage().sum() / 2**20
    tracemalloc.start()
    start = time.process_time()
    sketch = Rows(d).sketch()
    made = time.process_time() - start
    print(f"\n{n:,} rows x 15 ({size:.0f} MiB): sketch {made:.2f} s, {len(sketch.cells):,} bytes")
    half, other = d.X.iloc[::2], d.X.iloc[1::2]
    for title, (Z, y) in {"the same rows": (d.X[::-1], d.y[::-1]),
                          "other people": (half, d.y[::2])}.items():  # fmt: skip
        made_of = d if title == "the same rows" else dataset(other, d.y[1::2])
        sketch, rows_ = Rows(made_of).sketch(), Rows(dataset(Z, y))
        tracemalloc.reset_peak()
        before, start = tracemalloc.get_traced_memory()[0], time.process_time()
        found = rows_.likeness_to(sketch)
        seconds = time.process_time() - start
        peak = (tracemalloc.get_traced_memory()[1] - before) / 2**20
        print(f"{len(y):,} rows, {title}: {found or 'unlike'}; {seconds:.2f} s, {peak:.0f} MiB")


def main() -> None:
    """Parse arguments and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["DPREPRO_STATE"] = state
        tables = {name: load(name, online=False) for name in given.tables}
        if tables:
            altered(tables, given.copies)
            unlike(tables, given.copies)
        if given.rows:
            timed(given.rows)


if __name__ == "__main__":
    main()
