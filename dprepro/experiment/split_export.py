"""The splits of experiments as row numbers, for other programs: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dprepro import __version__
from dprepro.data.card import load_card
from dprepro.data.dataset import Dataset, load_with_places
from dprepro.data.sources import Place
from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.plan import plan
from dprepro.experiment.splits import SplitKey, row_numbers
from dprepro.privacy.budget import ROW
from dprepro.rows.table import PARQUET_SUFFIXES
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import appearing_complete, owner_only
from dprepro.runtime.text import one_line

SCHEMA = pa.schema(
    {
        "config": pa.string(), "dataset": pa.string(), "split": pa.int32(),
        "rows_per_unit": pa.int32(), "part": pa.string(), "row": pa.int64(), "line": pa.int64(),
    }
)  # fmt: skip
METADATA = b"dprepro"
"""The key of what a Parquet file says of itself; a CSV says it in lines that begin with #."""
_COLUMNS = (
    "part: train or test. row: the number of the row in the cleaned table, from 0. line: where the "
    "row begins in its file, from 1; empty if that is not known. rows_per_unit: how many rows of a "
    "unit train; empty if the unit is the row"
)


@dataclass(frozen=True)
class Experiment:
    """The splits of one config, and the tables that they split.

    Attributes
    ----------
    keys
        What decides each of its splits, in their order.
    places
        Where the rows of `dataset` stand.
    test_places
        Where those of its published test set stand; empty unless they are the test rows.
    is_private
        Whether the number of rows is private.
    """

    config: ExperimentConfig
    keys: Sequence[SplitKey]
    dataset: Dataset
    places: Sequence[Place]
    test_places: Sequence[Place]
    is_private: bool

    @classmethod
    def of(cls, config: ExperimentConfig, data_dir: Path | None = None) -> Experiment:
        """Return that of a config. Its data are loaded, and downloaded if they are not here.

        Raises DpreproError if the config is not valid, or if the data cannot be had. Also if the
        rows of a unit that train are drawn in secret.
        """
        tasks = [one.task for one in plan(config, data_dir, identify=False, try_parameters=False)]
        # What a method knows of the domain splits no rows.
        keys = list(dict.fromkeys(replace(SplitKey.of(task), domain="") for task in tasks))
        if config.seed is None and any(key.unit != ROW for key in keys):
            raise DpreproError(
                f"{config.where('seed')}: with `seed: null` each fit draws in secret which rows of "
                "a unit train, so there is no list of them. Give a seed, or `rows_per_unit: row`"
            )
        card = load_card(config.card)
        dataset, places = load_with_places(card, data_dir)
        test_places: list[Place] = []
        has_test = config.evaluation == "test-set"
        if has_test and card.test_card is not None:
            test, test_places = load_with_places(card.test_card, data_dir)
            dataset = replace(dataset, test=test)
        return cls(config, keys, dataset, places, test_places, card.is_private(data_dir, has_test))

    def tables(self) -> Iterator[pa.Table]:
        """Yield a table of `SCHEMA` for each part of each split, its rows in ascending order.

        Raises DpreproError if the rows cannot be split as the config says.
        """
        lines = _lines(self.places, len(self.dataset.y))
        test = self.dataset.test
        test_lines = lines if test is None else _lines(self.test_places, len(test.y))
        for key in self.keys:
            try:
                train, held_out = row_numbers(self.dataset, key)
            except ValueError as error:
                raise DpreproError(f"{self.config.name}, split {key.split}: {error}") from error
            yield self._table(key, "train", train, lines)
            yield self._table(key, "test", held_out, test_lines)

    def _table(self, key: SplitKey, part: str, rows: np.ndarray, lines: np.ndarray) -> pa.Table:
        bound = pa.scalar(None if key.unit == ROW else key.rows_per_unit, pa.int32())
        constants = (self.config.name, key.dataset, pa.scalar(key.split, pa.int32()), bound, part)
        columns = [pa.repeat(value, len(rows)) for value in constants]
        found = lines[rows]
        return pa.Table.from_arrays(
            [*columns, pa.array(rows), pa.array(found, mask=found == 0)], schema=SCHEMA
        )

    def said(self) -> Iterator[str]:
        """Yield what there is to know of the splits, line by line."""
        config = self.config
        match config.evaluation:
            case "test-set":
                share = "test-set, the published test rows"
            case "folds":
                share = f"folds, {round(1 / config.held_out)} of each partition"
            case _:
                share = f"{config.evaluation}, test share {config.held_out:g}"
        seed = "null, which splits as 0 does" if config.seed is None else str(config.seed)
        yield f"{config.name}: {config.splits} splits, evaluation {share}, seed {seed}"
        yield from _said_of(f"{config.name}, {self.dataset.name}", self.dataset, self.places)
        if self.dataset.test is not None:
            whose = f"{config.name}, {self.dataset.name}, part test (its rows count from 0, too)"
            yield from _said_of(whose, self.dataset.test, self.test_places)


def _lines(places: Iterable[Place], rows: int) -> np.ndarray:
    """Return the line of each row, int64 (rows,); 0 where it is not known."""
    lines = np.zeros(rows, dtype=np.int64)
    for place in places:
        if place.lines is not None:
            lines[place.rows.start : place.rows.stop] = place.lines
    return lines


def _said_of(whose: str, dataset: Dataset, places: Sequence[Place]) -> Iterator[str]:
    yield f"{whose}: {len(dataset.y)} rows, from {_name(dataset.source)}"
    for place in places if len(places) > 1 else ():
        ends = f"{place.rows.start} to {place.rows.stop - 1}" if place.rows else "none"
        yield f"{whose}: rows {ends}: {_name(place.origin)}"


def _name(origin: str) -> str:
    """Return an origin without the folders of this machine."""
    return " + ".join(part if "://" in part else Path(part).name for part in origin.split(" + "))


def write_splits(experiments: Sequence[Experiment], output: Path) -> int:
    """Write the splits to a file that appears complete; return the number of its rows.

    Raises DpreproError if the suffix says no format, if the file cannot be written, or if rows
    cannot be split.
    """
    check_suffix(output)
    said = [f"Splits, written by dprepro {__version__}", _COLUMNS]
    said += [one_line(line) for experiment in experiments for line in experiment.said()]
    schema = SCHEMA.with_metadata({METADATA: "\n".join(said).encode()})
    count = 0
    is_private = any(experiment.is_private for experiment in experiments)
    with owner_only(is_private), appearing_complete(output) as unfinished:
        tables = (table for experiment in experiments for table in experiment.tables())
        if _is_parquet(output):
            with pa.parquet.ParquetWriter(str(unfinished), schema) as writer:
                for table in tables:
                    writer.write_table(table.replace_schema_metadata(schema.metadata))
                    count += table.num_rows
            return count
        with unfinished.open("wb") as file:
            file.write("".join(f"# {line}\n" for line in said).encode())
            options = pa.csv.WriteOptions(quoting_style="needed")
            with pa.csv.CSVWriter(file, SCHEMA, write_options=options) as writer:
                for table in tables:
                    writer.write_table(table)
                    count += table.num_rows
    return count


def check_suffix(output: Path) -> None:
    """Raise DpreproError if the suffix of a file says no format."""
    if not _is_parquet(output) and output.suffix.lower() != ".csv":
        raise DpreproError(
            f"cannot tell the format of {output} by its suffix. Allowed: .csv, "
            f"{', '.join(PARQUET_SUFFIXES)}"
        )


def _is_parquet(output: Path) -> bool:
    return output.name.lower().endswith(PARQUET_SUFFIXES)
