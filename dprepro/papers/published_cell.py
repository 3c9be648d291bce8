"""The cells that the reproduced documents print: each is one row of a file ``cells.csv``."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dprepro.papers.folders import FOLDER, paper_folders
from dprepro.privacy.budget import PrivacyBudget
from dprepro.runtime.errors import DpreproError, Faults, nearest
from dprepro.runtime.files import MEBIBYTE, read_text

HEADER = ["paper", "table", "dataset", "method", "epsilon", "metric", "mean", "std"]
ERRORS = ["standard_error", "repeats"]
"""Columns that a file may have besides: a printed standard error of a mean over `repeats`."""
_MOST_BYTES = 64 * MEBIBYTE


@dataclass(frozen=True)
class PublishedCell:
    """One printed number.

    Attributes
    ----------
    paper, table
        Identifier of the document ("dp-ebm-2021") and of the table within it ("2").
    dataset, method
        Name of the card, and label of our results that are compared with it.
    epsilon
        Privacy level; ``inf`` if the method is not private.
    metric
        A key of `dprepro.results.margins.METRICS` ("auc", "rmse", ...).
    decimals, std_decimals
        Digits of `mean` and of `std` after the point as printed, trailing zeros included. A printed
        "87 %" is stored as 0.87 and has two.
    repeats
        Where the paper prints the standard error of a mean, over how many values it is; `std` is
        then that error times the root of `repeats`. Otherwise 1.
    line
        Where it stands in its file.
    """

    paper: str
    table: str
    dataset: str
    method: str
    epsilon: float
    metric: str
    mean: float
    std: float | None
    decimals: int = 0
    std_decimals: int = 0
    repeats: int = 1
    line: int = field(default=0, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, str, str, str, float, str]:
        """The identifier of the cell; no two cells have the same."""
        return (self.paper, self.table, self.dataset, self.method, self.epsilon, self.metric)

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit: the largest rounding error of the printed mean."""
        return 0.5 * 10.0**-self.decimals

    @property
    def sd_half_unit(self) -> float:
        """The same of the printed standard deviation; 0 where there is none."""
        return 0.0 if self.std is None else 0.5 * 10.0**-self.std_decimals * self.repeats**0.5

    @property
    def mean_in_print(self) -> str:
        """The mean with its printed digits."""
        return f"{self.mean:.{self.decimals}f}"

    @property
    def in_print(self) -> str:
        """The mean, and the standard deviation or error if there is one, with printed digits."""
        if self.std is None:
            return self.mean_in_print
        spread = f" ± {self.std / self.repeats**0.5:.{self.std_decimals}f}"
        return self.mean_in_print + spread + (" SE" if self.repeats > 1 else "")

    def __str__(self) -> str:
        level = PrivacyBudget(self.epsilon, 0.0)
        return f"{self.paper} table {self.table}: {self.dataset}, {self.method}, {level}"


def load_published(paper: str | None = None, folder: Path = FOLDER) -> list[PublishedCell]:
    """Return the printed cells, of one document or of all in `folder`, in file order.

    Raises DpreproError if the document is unknown, or a file is malformed (the message names file
    and line of every fault).
    """
    known = paper_folders(folder)
    if paper is None:
        own = [place for place in known.values() if place.parent == folder]
        return [cell for place in own for cell in _sound(place)]
    if paper not in known:
        raise DpreproError(
            f"unknown document {paper!r}{nearest(paper, known) or '.'} Allowed: {', '.join(known)}"
        )
    return _sound(known[paper])


def _sound(folder: Path) -> list[PublishedCell]:
    cells, faults = read_cells(folder / "cells.csv")
    faults.require_none()
    return list(cells)


def read_cells(path: Path) -> tuple[tuple[PublishedCell, ...], Faults]:
    """Return the cells of a file, and what is wrong with the rows that are left out."""
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError:  # the reader says it in words
        return _read(path, 0)


@cache  # every table and every document asks for all cells
def _read(path: Path, changed: int) -> tuple[tuple[PublishedCell, ...], Faults]:
    faults = Faults()
    cells: dict[tuple[object, ...], PublishedCell] = {}
    reader = csv.DictReader(io.StringIO(read_text(path, _MOST_BYTES), newline=""))
    header = list(reader.fieldnames or ())
    if header not in (HEADER, [*HEADER, *ERRORS]):
        faults.append(
            f"{path}:1: the header is {','.join(header)!r}; it must be {','.join(HEADER)}, or that "
            f"and {','.join(ERRORS)}"
        )
        return (), faults
    try:
        for row in reader:
            where = f"{path}:{reader.line_num}"
            with faults.noted():
                cell = _cell(row, header, where, reader.line_num)
                if first := cells.get(cell.key):
                    raise DpreproError(
                        f"{where}: printed twice: {cell} ({cell.metric}), first on line "
                        f"{first.line}; keep one row"
                    )
                cells[cell.key] = cell
    except csv.Error as error:
        faults.append(f"{path}:{reader.line_num}: not a CSV file: {error}")
    return tuple(cells.values()), faults


def _cell(row: dict[str, str | None], header: list[str], where: str, line: int) -> PublishedCell:
    missing = [name for name in HEADER if name != "std" and not row[name]]
    if None in row or None in row.values():
        raise DpreproError(
            f"{where}: {len(header)} fields expected, as in the header. Numbers have a decimal "
            "point, and a text with a comma stands in quotes"
        )
    if missing:
        raise DpreproError(f"{where}: nothing is given for {', '.join(missing)}")
    words = {name: str(row[name]) for name in ("paper", "table", "dataset", "method", "metric")}
    epsilon = _number(row["epsilon"], "epsilon", where)
    mean, std = _number(row["mean"], "mean", where), row["std"]
    printed, repeats = std, 1
    if row.get("standard_error") or row.get("repeats"):
        printed, repeats = row["standard_error"], _whole(row["repeats"], where)
        if std or not printed:
            raise DpreproError(
                f"{where}: a row has std, or standard_error and repeats; leave the others empty"
            )
    spread = (
        _number(printed, "standard_error" if repeats > 1 else "std", where) if printed else None
    )
    if not (epsilon > 0 and math.isfinite(mean) and (spread is None or 0 <= spread < math.inf)):
        raise DpreproError(
            f"{where}: epsilon must be positive (inf: not private), mean finite, "
            f"std at least 0 or empty; got epsilon {epsilon}, mean {mean}, std {spread}"
        )
    return PublishedCell(
        **words, epsilon=epsilon, mean=mean, std=None if spread is None else spread * repeats**0.5,
        decimals=_decimals(row["mean"]), std_decimals=_decimals(printed), repeats=repeats,
        line=line,
    )  # fmt: skip


def _whole(text: str | None, where: str) -> int:
    if not (text or "").isdecimal() or int(str(text)) < 2:
        raise DpreproError(
            f"{where}: repeats is {text!r}; give the number of values, 2 or more, that the mean of "
            "this standard_error is over"
        )
    return int(str(text))


def _number(text: str | None, field: str, where: str) -> float:
    try:
        return float(str(text))
    except ValueError:
        raise DpreproError(f"{where}: {field} is {text!r}, which is not a number") from None


def _decimals(text: str | None) -> int:
    """Return the digits after the point, trailing zeros included ("0.880" -> 3, "47" -> 0)."""
    return len((text or "").partition(".")[2])
