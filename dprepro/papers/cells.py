"""The cells that the reproduced documents print: each is one row of a file ``cells.csv``."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dprepro
from dprepro.privacy.budget import PrivacyBudget
from dprepro.runtime.errors import DpreproError, nearest

FOLDER = Path(dprepro.__file__).resolve().parent / "papers" / "library"
"""The papers that are reproduced here, a folder each; its README says which files one has."""
HEADER = ["paper", "table", "dataset", "method", "epsilon", "metric", "mean", "std"]


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
        return 0.0 if self.std is None else 0.5 * 10.0**-self.std_decimals

    @property
    def mean_in_print(self) -> str:
        """The mean with its printed digits."""
        return f"{self.mean:.{self.decimals}f}"

    @property
    def in_print(self) -> str:
        """Mean and standard deviation, if there is one, with their printed digits."""
        spread = "" if self.std is None else f" ± {self.std:.{self.std_decimals}f}"
        return self.mean_in_print + spread

    def __str__(self) -> str:
        level = PrivacyBudget(self.epsilon, 0.0)
        return f"{self.paper} table {self.table}: {self.dataset}, {self.method}, {level}"


def files_of(name: str, path: Path | None = None) -> list[Path]:
    """Return `path` alone if it is given, else the files called `name` of all papers."""
    return sorted(FOLDER.glob(f"*/{name}")) if path is None else [path]


def load_published(paper: str | None = None, folder: Path = FOLDER) -> list[PublishedCell]:
    """Return the printed cells, of one document or of all, in file order.

    Raises DpreproError if the document is unknown, or a file is malformed (the message names file
    and line).
    """
    cells = [cell for path in sorted(folder.glob("*/cells.csv")) for cell in _read(path)]
    if paper is None:
        return cells
    papers = sorted({cell.paper for cell in cells})
    if paper not in papers:
        raise DpreproError(
            f"unknown document {paper!r}{nearest(paper, papers) or '.'} "
            f"Allowed: {', '.join(papers)}"
        )
    return [cell for cell in cells if cell.paper == paper]


@cache  # every table and every document asks for all cells
def _read(path: Path) -> tuple[PublishedCell, ...]:
    with path.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        if reader.fieldnames != HEADER:
            raise DpreproError(
                f"{path}: the header is {reader.fieldnames}; it must be {','.join(HEADER)}"
            )
        cells = [_cell(row, f"{path}:{reader.line_num}") for row in reader]
    seen = set()
    for cell in cells:
        if cell.key in seen:
            raise DpreproError(f"{path}: printed twice: {cell} ({cell.metric}); keep one row")
        seen.add(cell.key)
    return tuple(cells)


def _cell(row: dict[str, str | None], where: str) -> PublishedCell:
    missing = [name for name in HEADER if name != "std" and not row[name]]
    if missing or None in row:
        raise DpreproError(f"{where}: {len(HEADER)} fields expected; missing: {missing or 'none'}")
    words = {name: str(row[name]) for name in ("paper", "table", "dataset", "method", "metric")}
    epsilon = _number(row["epsilon"], "epsilon", where)
    mean, std = _number(row["mean"], "mean", where), row["std"]
    spread = _number(std, "std", where) if std else None
    if not (epsilon > 0 and math.isfinite(mean) and (spread is None or 0 <= spread < math.inf)):
        raise DpreproError(
            f"{where}: epsilon must be positive (inf: not private), mean finite, "
            f"std at least 0 or empty; got epsilon {epsilon}, mean {mean}, std {spread}"
        )
    return PublishedCell(
        **words, epsilon=epsilon, mean=mean, std=spread,
        decimals=_decimals(row["mean"]), std_decimals=_decimals(std),
    )  # fmt: skip


def _number(text: str | None, field: str, where: str) -> float:
    try:
        return float(str(text))
    except ValueError:
        raise DpreproError(f"{where}: {field} is {text!r}, which is not a number") from None


def _decimals(text: str | None) -> int:
    """Return the digits after the point, trailing zeros included ("0.880" -> 3, "47" -> 0)."""
    return len((text or "").partition(".")[2])
