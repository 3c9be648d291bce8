"""Whether two tables hold the same people, whatever their order, format, columns or names.

The budget book keeps a *sketch* of every released table: keyed digests of the cells of a few rows,
drawn at random. Of a later table all rows are at hand. How often does it have a row of the sketch,
by the columns that both have? If the rows of the sketch are people of that table, they occur as
often as its own rows do. If they are other people of the same kind, they occur as often as a row of
it does beside itself, that is once less: each is one more draw from the same population. The
likelihoods of the two are compared. So twins, small tables and lists of few values raise no alarm
by themselves, and no column needs to be an identifier.
"""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict
from scipy.optimize import linear_sum_assignment

from dprepro.data.cell_values import number_of
from dprepro.data.dataset import Dataset
from dprepro.data.register import secret_of
from dprepro.rows.folder import disk_errors

_ROWS = 128
"""Rows of a sketch: 15 of them in the other table, of 128, are found nearly always."""

_COLUMNS = 64
"""Columns of a sketch, at most: chosen by keyed digests of their names, in all tables alike."""

_FEWEST = 3
"""Columns by which rows are compared, at least: fewer agree by chance in unlike tables, too."""

_COMMON = 0.02
"""Of the cells of a column in a sketch that a column of the other table has, if it is the same."""

_SUBSETS = 24
"""Random choices of the common columns that are tried: some avoid those that were altered."""

_EVIDENCE = 15.0
"""Log likelihood ratio from which on tables are alike: e^-15 by chance, times the choices."""

_UNDECIDED = 3.0
"""Log likelihood ratio against "all rows are the same people" below which that may well be."""

_OWN = 4096
"""Rows of a table whose number of occurrences is looked up, to know how often rows occur."""

_OFTEN = 5
"""Rows that occur as often, or more often, say nothing of who they are."""

_BITS_DROPPED = 7
"""Of the 23 of a float32: numbers that agree in some five digits are one."""

_MISSING = np.uint64(0x7FF8_0000_0000_0001)
_BLOCK = 1 << 14


class Sketch(BaseModel):
    """Keyed digests of the cells of some rows: private, and of no use without the register's key.

    Attributes
    ----------
    columns
        "feature NAME", "target" and "unit", in order.
    cells
        Digests, little-endian uint32 (rows, columns), in base64.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: list[str]
    cells: str

    @property
    def digests(self) -> np.ndarray:
        """The digests, uint32 (rows, columns)."""
        cells = np.frombuffer(base64.b64decode(self.cells, validate=True), dtype="<u4")
        return cells.reshape(-1, len(self.columns))


@dataclass(frozen=True)
class Likeness:
    """That a table has rows of an earlier one.

    Attributes
    ----------
    share
        About how many of the earlier rows it has, in (0, 1]; NaN where that cannot be told.
    columns
        By how many columns rows were compared.
    """

    share: float
    columns: int

    def __str__(self) -> str:
        if math.isnan(self.share):
            return f"perhaps all of its rows: the {self.columns} common columns cannot tell"
        much = "nearly all" if self.share > 0.9 else "most" if self.share > 0.5 else "some"
        return f"{much} of its rows, by {self.columns} columns"


class Rows:
    """The rows of a table, as they are compared with sketches of others. Its repr shows none.

    Parameters
    ----------
    given
        A dataset, with X, y and, if the card has any, units; or what is kept of one in chunks.
    are_others
        Whether the owner of the data says that they are other people, however alike they are.
    """

    def __init__(self, given: Dataset | KeptDigests, are_others: bool = False) -> None:
        self.are_others = are_others
        self._given = given if isinstance(given, KeptDigests) else _Columns(given)
        self._known: dict[str, Likeness | None] = {}

    def sketch(self) -> Sketch:
        """Return the sketch of rows drawn at random, as the operating system gives randomness."""
        size, names = self._given.size, self._given.names
        drawn = np.random.default_rng().choice(size, min(size, _ROWS), replace=False)
        cells = [self._given.of(name, drawn) for name in names]
        text = base64.b64encode(np.column_stack(cells).astype("<u4").tobytes()).decode()
        return Sketch(columns=names, cells=text)

    def likeness_to(self, sketch: Sketch) -> Likeness | None:
        """Return in what these rows are like those of a sketch; None if they are other people."""
        if sketch.cells not in self._known:
            self._known[sketch.cells] = self._compared_to(sketch)
        return self._known[sketch.cells]

    def _compared_to(self, sketch: Sketch) -> Likeness | None:
        cells = sketch.digests
        pairs = _matched(sketch.columns, cells, self._ascending)
        if len(pairs) < min(_FEWEST, len(sketch.columns)) or not len(cells):
            return None
        for chosen in _choices(len(pairs)):
            some = [pairs[k] for k in chosen]
            theirs = _summed([cells[:, k] for k, _ in some])
            evidence = _compared(theirs, _summed([self._cells[name] for _, name in some]))
            if evidence.most > _EVIDENCE:
                return Likeness(evidence.share, len(some))
            if len(some) == len(pairs) and evidence.of_all > -_UNDECIDED:
                named = sum(sketch.columns[k] == name for k, name in pairs)
                if 2 * named >= max(len(sketch.columns), len(self._given.names)):
                    return Likeness(math.nan, len(some))
        return None

    @cached_property
    def _cells(self) -> dict[str, np.ndarray]:
        return {name: self._given.of(name, slice(None)) for name in self._given.names}

    @cached_property
    def _ascending(self) -> dict[str, np.ndarray]:
        return {name: self._given.keep(np.sort(cells)) for name, cells in self._cells.items()}

    def __repr__(self) -> str:
        return f"Rows({len(self._given.names)} columns)"


class _Columns:
    """The columns by which rows of a dataset are compared.

    Attributes
    ----------
    names
        "feature NAME", "target" and "unit", up to `_COLUMNS`; in the same order for all tables.
    size
        How many rows there are: private.
    """

    def __init__(self, dataset: Dataset) -> None:
        X, key = dataset.X, secret_of("likeness of rows")
        columns = {f"feature {name}": X[name] for name in X}
        columns["target"] = pd.Series(dataset.y)
        if dataset.units is not None:
            columns["unit"] = pd.Series(pd.Categorical(dataset.units))
        chosen = sorted(columns, key=lambda n: hashlib.blake2b(n.encode(), key=key).digest())
        self.names = chosen[:_COLUMNS]
        self._columns, self._key, self.size = columns, key, len(dataset.y)

    def of(self, name: str, rows: slice | np.ndarray) -> np.ndarray:
        """Return the digests of some cells of a column, uint32 (rows,)."""
        return _digests(self._columns[name].iloc[rows], self._key)

    def keep(self, digests: np.ndarray) -> np.ndarray:
        """Return digests of a column, uint32 (n,), where those of all cells are."""
        return digests


class KeptDigests:
    """What `Rows` needs of a table that comes in chunks: four bytes for each cell, all private.

    They lie in files without a name, which are gone when the process ends, however it does.

    Parameters
    ----------
    folder
        Where there is room for them; None keeps them in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.names: list[str] = []
        self.size = 0
        self._parts: dict[str, _Part] = {}

    def add(self, dataset: Dataset) -> None:
        """Add the rows of a chunk, which has the columns of all others."""
        columns = _Columns(dataset)
        self.names = columns.names
        self.size += columns.size
        for name in self.names:
            part = self._parts.setdefault(name, _Part(self._folder))
            part.add(columns.of(name, slice(None)))

    def of(self, name: str, rows: slice | np.ndarray) -> np.ndarray:
        """See `_Columns`."""
        return self._parts[name].whole()[rows]

    def keep(self, digests: np.ndarray) -> np.ndarray:
        """See `_Columns`."""
        part = _Part(self._folder)
        part.add(digests)
        return part.whole()


class _Part:
    """Numbers that come one after the other, uint32, in a file without a name or in memory."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        with disk_errors(folder or ""):
            # It has no name, and is there as long as somebody looks at it.
            self._file = BytesIO() if folder is None else TemporaryFile(dir=folder)  # noqa: SIM115

    def add(self, numbers: np.ndarray) -> None:
        with disk_errors(self._folder or ""):
            self._file.write(np.ascontiguousarray(numbers, np.uint32).data.cast("B"))

    def whole(self) -> np.ndarray:
        """Return all of them, (n,)."""
        if isinstance(self._file, BytesIO):
            return np.frombuffer(self._file.getbuffer(), np.uint32)
        with disk_errors(self._folder or ""):
            self._file.flush()
            if not self._file.tell():
                return np.empty(0, np.uint32)
            return np.memmap(self._file, np.uint32, "r")


def holds_most_of(dataset: Dataset, X: pd.DataFrame, y: np.ndarray) -> bool:
    """Return whether half or more of some rows are, value for value, rows of a table.

    Whoever publishes a release says that the rows X, (m, K), and y are public and are not those of
    the table. That is refused where this is true, so the existence of the release tells that it is
    not. No epsilon is paid for that. What can it tell, and of whom?

    - A row of the table counts only if it equals one of the rows given. Neither the size of the
      table nor any other row of it makes a difference. So of whoever has no row with the values of
      a public one it tells nothing at all, whatever else is known.
    - Of whoever has one it tells something only if the table holds about m / 2 public rows, one
      more or less. The statement lists it among what is taken as public.

    A comparison with the whole table would be no such check: with the same m rows and one more, of
    somebody who is in no file, the release would exist, and without that row it would not. So would
    be `Rows.likeness_to`, which asks how often rows of the table are equal to each other. A part
    of the table, and a copy in any order, are found. Where columns have few values, rows of
    different people are often identical. Then a file of public rows may be refused by mistake, and
    the attack can use synthetic rows instead.
    """
    columns = sorted(X.columns)
    if columns != sorted(dataset.X.columns):
        raise ValueError(f"the columns are {columns}, and those of the table are others")
    key = secret_of("likeness of rows")

    def digests(features: pd.DataFrame, targets: np.ndarray) -> np.ndarray:
        cells = [_digests(features[name], key) for name in columns]
        return _summed([*cells, _digests(pd.Series(targets), key)])

    found = np.isin(digests(X, y), digests(dataset.X, dataset.y))
    return bool(2 * found.sum() >= len(y))


@dataclass(frozen=True)
class _Evidence:
    """Log likelihood ratios for "same people": of the likeliest share of them, and of all."""

    most: float
    share: float
    of_all: float


def _matched(
    names: list[str], cells: np.ndarray, table: dict[str, np.ndarray]
) -> list[tuple[int, str]]:
    """Return which column of a sketch is which of a table: by name, else by what is in it.

    Of each column of the table the digests are given in order.
    """
    common, alike = np.zeros((2, len(names), len(table)))
    for k, column in enumerate(cells.T):
        values, times = np.unique(column, return_counts=True)
        for j, theirs in enumerate(table.values()):
            found = _times(values, theirs)
            common[k, j] = times[found > 0].sum() / len(column)
            alike[k, j] = np.minimum(times / len(column), found / max(len(theirs), 1)).sum()
    place = {name: j for j, name in enumerate(table)}
    known = [(k, place[name]) for k, name in enumerate(names)
             if name in place and common[k, place[name]] >= _COMMON]  # fmt: skip
    for k, j in known:
        common[k, :] = common[:, j] = 0
    # Renamed columns: what is in them, and of several with the same values how often each is.
    guessed = zip(*linear_sum_assignment(common + alike, maximize=True), strict=True)
    known += [(k, j) for k, j in guessed if common[k, j] >= _COMMON]
    return [(int(k), list(table)[j]) for k, j in known]


def _choices(columns: int) -> list[np.ndarray]:
    """Return all columns, and random halves and quarters of them, `_FEWEST` at least."""
    chance = np.random.default_rng(0)
    sizes = [max(columns // part, _FEWEST) for part in (2, 4)] * (_SUBSETS // 2)
    some = [chance.permutation(columns)[:size] for size in sizes if size < columns]
    return [np.arange(columns), *some]


def _summed(cells: list[np.ndarray]) -> np.ndarray:
    """Return digests of rows, uint64 (n,), from those of their cells."""
    factors = np.random.default_rng(1).integers(2**63, size=len(cells), dtype=np.uint64)
    total = np.zeros(len(cells[0]), np.uint64)
    for factor, column in zip(factors, cells, strict=True):
        total += column * (2 * factor + np.uint64(1))
    return total


def _compared(theirs: np.ndarray, ours: np.ndarray) -> _Evidence:
    """Compare how often rows of a sketch occur in a table with how often its own do."""
    ours.sort()
    own = ours[np.random.default_rng(2).integers(len(ours), size=_OWN)]
    same, other = (_law(_times(own, ours) - less) for less in (0, 1))
    # Once each: what is often in one table and seldom in the other are different people.
    found = np.minimum(_times(np.unique(theirs), ours), _OFTEN)
    shares = np.linspace(0, 1, 201)[:, None]
    gains = np.log((1 - shares) + shares * (same / other)[found]).sum(axis=1)
    best = int(gains.argmax())
    return _Evidence(float(gains[best]), float(shares[best, 0]), float(gains[-1]))


def _times(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return how often each row occurs in a sorted table."""
    return np.searchsorted(table, rows, "right") - np.searchsorted(table, rows, "left")


def _law(times: np.ndarray) -> np.ndarray:
    """Return how likely each number of times is, (`_OFTEN` + 1,); none is impossible."""
    found = np.bincount(np.minimum(times, _OFTEN), minlength=_OFTEN + 1)
    law: np.ndarray = 0.99 * found / len(times) + 0.01 / len(found)
    return law


def _digests(column: pd.Series, key: bytes) -> np.ndarray:
    """Return keyed digests of cells, uint32 (n,): of what is in them, whatever their type."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = map(str, column.cat.categories)
        words = np.array([*map(_word_of, texts), _MISSING], np.uint64)
        return _keyed(words, key)[column.cat.codes.to_numpy()]
    digests = np.empty(len(column), np.uint32)
    values = column.to_numpy()
    for start in range(0, len(values), _BLOCK):  # blocks that fit into the cache
        block = values[start : start + _BLOCK]
        digests[start : start + _BLOCK] = _keyed(_words(block), key)
    return digests


def _words(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as uint64, to some five digits, so that formats do not matter."""
    with np.errstate(over="ignore", invalid="ignore"):
        bits = (numbers.astype(np.float32) + np.float32(0)).view(np.uint32).astype(np.uint64)
    half, kept = np.uint64(1 << (_BITS_DROPPED - 1)), np.uint64(2**64 - (1 << _BITS_DROPPED))
    return np.where(np.isnan(numbers), _MISSING, (bits + half) & kept)


def _word_of(text: str) -> np.uint64:
    number = number_of(text)
    if number is not None and math.isfinite(number):
        return np.uint64(_words(np.array([number]))[0])
    digest = hashlib.blake2b(text.strip().encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _keyed(words: np.ndarray, key: bytes) -> np.ndarray:
    """Return the upper halves of `siphash`, uint32 (n,)."""
    upper: np.ndarray = (siphash(words, key) >> np.uint64(32)).astype(np.uint32)
    return upper


def siphash(words: np.ndarray, key: bytes) -> np.ndarray:
    """Return SipHash-2-4 of each word, its 8 bytes little-endian: uint64 (n,).

    Aumasson, Bernstein 2012: whoever does not know the key, 16 bytes, cannot check a guess.
    """
    low, high = (np.uint64(int.from_bytes(key[k : k + 8], "little")) for k in (0, 8))
    start = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    v = [np.full(words.shape, half ^ np.uint64(constant), np.uint64)
         for half, constant in zip((low, high, low, high), start, strict=True)]  # fmt: skip
    for word in (words, np.uint64(8 << 56)):
        v[3] ^= word
        _mix(v, 2)
        v[0] ^= word
    v[2] ^= np.uint64(0xFF)
    _mix(v, 4)
    mixed: np.ndarray = v[0] ^ v[1] ^ v[2] ^ v[3]
    return mixed


def _mix(v: list[np.ndarray], rounds: int) -> None:
    """Add, rotate and exclusive-or the four words of the state, in place."""
    for _ in range(rounds):
        for (a, b, by), (c, d, other), turned in (
            ((0, 1, 13), (2, 3, 16), 0),
            ((2, 1, 17), (0, 3, 21), 2),
        ):
            for x, y, bits in ((a, b, by), (c, d, other)):
                v[x] += v[y]
                v[y] = (v[y] << np.uint64(bits)) | (v[y] >> np.uint64(64 - bits))
                v[y] ^= v[x]
            v[turned] = (v[turned] << np.uint64(32)) | (v[turned] >> np.uint64(32))
