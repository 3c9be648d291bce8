"""Rows in Dask collections, and what workers do to make them: workers import this module."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature

N = 701

NUMBERS = (NumericFeature("x0", 0, 1, missing=True), NumericFeature("x1", -5, 5))
FEATURES = (*NUMBERS, CategoricalFeature("c", ("a", "b", "d"), missing=True))


def domain(task: str, is_frame: bool = True) -> Domain:
    """Return the public domain of the rows; arrays have no categories."""
    targets = {"y": ("0", "1"), "k": ("0", "1", "2"), "z": (-12.0, 12.0)}
    return Domain(FEATURES if is_frame else NUMBERS, targets[task])


def frame(n: int = N) -> pd.DataFrame:
    """Return the rows: more columns than the domain has, labels y, classes k and targets z."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "unused": "secret",
            "c": pd.Series(rng.choice(["a", "b", "d"], n)).mask(rng.random(n) < 0.1),
            "x1": rng.normal(0, 3, n),
            "x0": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
        }
    )
    table["z"] = table["x1"] + 3 * (table["c"] == "a") + rng.normal(size=n)
    table["y"] = (table["z"] > 1).astype(int)
    table["k"] = table["y"] + (table["z"] > 4)
    return table


def names(is_frame: bool) -> list[str]:
    return [feature.name for feature in (FEATURES if is_frame else NUMBERS)]


def in_memory(task: str, is_frame: bool) -> tuple[Any, Any]:
    """Return X and y for a fit in this process."""
    table = frame()
    X = table[names(is_frame)]
    return (X if is_frame else X.to_numpy()), table[task].to_numpy()


def collections(task: str, is_frame: bool, partitions: int) -> tuple[Any, Any]:
    """Return X and y for a fit on a cluster."""
    table = frame()
    if is_frame:
        collection = dd.from_pandas(table, npartitions=partitions)
        # By its name, or as a column of its own.
        return collection, task if partitions == 3 else collection[task]
    size = -(-N // partitions)
    X = da.from_array(table[names(False)].to_numpy(), chunks=(size, 1 if partitions == 3 else -1))
    return X, da.from_array(table[task].to_numpy(), chunks=size)


def from_files(paths: list[Path], dying: Path | None = None) -> dd.DataFrame:
    """Return a DataFrame of files with a row each partition; see `_read` for `dying`."""
    parts = [delayed(_read)(path, None if k else dying) for k, path in enumerate(paths)]
    return dd.from_delayed(parts, meta=frame(1).iloc[:0])


def _read(path: Path, dying: Path | None) -> pd.DataFrame:
    """Return the rows of a file; the first process that finds no file `dying` makes it and dies."""
    if dying is not None and not dying.exists():
        dying.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return pd.read_pickle(path)


def written(folder: Path, table: pd.DataFrame, parts: int) -> list[Path]:
    """Write rows to so many files."""
    paths = [folder / f"{k}.pickle" for k in range(parts)]
    for path, rows in zip(paths, np.array_split(np.arange(len(table)), parts), strict=True):
        table.iloc[rows].to_pickle(path)
    return paths
