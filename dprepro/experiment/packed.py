"""A packed journal: one Parquet file that holds a journal's lines in columns, without loss.

A finished journal is text that says the same task and the same ledger again and again. Packed, a
line is a row: its task and its ledger stand once in a dictionary, each metric is a column, and the
file takes a twentieth of the room and of the time to read. `unpacked` returns the lines byte for
byte; the file states their SHA-256. Any reader of Parquet shows the columns:

=================  ========  ==================================================================
column             type      holds
=================  ========  ==================================================================
``kind``           text      record, plan or environment
``line``           text      the whole line, where it is no record as `Record.to_json` writes it
``key``            text      the key of the record's task
``task``           text      the task as JSON, without its split
``split``          int32     the split
``status``         text      ok, failed or skipped
``metric.NAME``    float64   a metric; null where the record has none of this name
``seconds.NAME``   float64   a time, in seconds
``ledger``         text      the ledger as JSON
``message``        text      the error or the reason
``rest``           text      all further fields as JSON
``format``         int8      how the line is tied to the line before it
``after``          text      the checksum of the line before it, as the line states it
=================  ========  ==================================================================

The records of a journal in columns: what a table of 10^6 tasks is made of.

A `Record` is an object for one task, and hundreds of thousands of them take seconds and gigabytes.
Here each metric is one array, tasks of a cell share all but the split, and a record is made when
somebody asks for it.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dprepro.experiment.record import Record, Status, Task, parsed, tie_of, tied

STATUSES: tuple[Status, ...] = get_args(Status)
KEY = "S16"
"""The NumPy type of a key."""
_Rows = NDArray[np.intp]


@dataclass(frozen=True)
class RecordTable:
    """Records in the order of their journal, one row each; a task can have several.

    Attributes
    ----------
    keys
        The keys of the tasks, 16 ASCII characters each (n,).
    tasks
        The distinct tasks up to the split; of each, the task of any split.
    task
        Positions in `tasks`, integers (n,).
    split
        Integers (n,).
    status
        Positions in `STATUSES`, integers (n,).
    metrics, seconds
        By name, float64 (n,); NaN where a record has none of this name.
    ledgers
        The distinct ledgers.
    ledger
        Positions in `ledgers`, integers (n,); -1 where a record has none.
    messages, absent
        By row, where there is any.
    """

    keys: NDArray[np.bytes_]
    tasks: Sequence[Task]
    task: NDArray[np.int64]
    split: NDArray[np.int64]
    status: NDArray[np.int64]
    metrics: Mapping[str, NDArray[np.float64]]
    seconds: Mapping[str, NDArray[np.float64]]
    ledgers: Sequence[Mapping[str, Any]]
    ledger: NDArray[np.int64]
    messages: Mapping[int, str]
    absent: Mapping[int, Mapping[str, str]]

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordTable:
        """Return a table of these records."""
        tasks: dict[str, int] = {}
        first: list[Task] = []
        codes = []
        for record in records:
            cell = record.task.cell
            code = tasks.setdefault(cell, len(tasks))
            if code == len(first):
                first.append(record.task)
            codes.append(code)
        with_ledger = [record.ledger is not None for record in records]
        return cls(
            np.array([record.task.key for record in records], KEY),
            first,
            np.array(codes, np.int64),
            np.array([record.task.split for record in records], np.int64),
            np.array([STATUSES.index(record.status) for record in records], np.int64),
            _figures([record.metrics for record in records]),
            _figures([record.seconds for record in records]),
            [record.ledger for record in records if record.ledger is not None],
            np.where(with_ledger, np.cumsum(with_ledger) - 1, -1).astype(np.int64),
            {row: record.message for row, record in enumerate(records) if record.message},
            {row: record.absent for row, record in enumerate(records) if record.absent},
        )

    def __len__(self) -> int:
        return len(self.task)

    @cached_property
    def all_finished(self) -> bool:
        """Whether the status of every record is "ok", as in nearly all journals."""
        return bool((self.status == STATUSES.index("ok")).all())

    @cached_property
    def complete(self) -> frozenset[str]:
        """The metrics that every record has."""
        return frozenset(name for name, v in self.metrics.items() if not np.isnan(v).any())

    def positions(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return, for each row, the place of its key in `keys`, or -1; integers (n,)."""
        if not len(keys):
            return np.full(len(self), -1)
        wanted = np.array(keys, KEY)
        order = np.argsort(wanted, kind="stable")
        places = np.minimum(np.searchsorted(wanted[order], self.keys), len(keys) - 1)
        return np.where(wanted[order][places] == self.keys, order[places], -1)

    def last_of_each(self, places: NDArray[np.int64], count: int) -> _Rows:
        """Return the last row of each place from 0 to `count` - 1, in their order.

        Parameters
        ----------
        places
            Of each row, integers (n,); -1 for rows that do not count.

        Returns
        -------
        Rows, integers (at most `count`,); places without a row are left out.
        """
        last = np.full(count, -1, np.intp)
        rows = np.flatnonzero(places >= 0)
        np.maximum.at(last, places[rows], rows)
        return last[last >= 0]

    @cached_property
    def last(self) -> _Rows:
        """The last row of each task, in the order of the journal."""
        distinct, codes = np.unique(self.keys, return_inverse=True)
        return np.sort(self.last_of_each(codes, len(distinct)))

    def ledger_of(self, row: int) -> Mapping[str, Any] | None:
        """Return the ledger of a row."""
        code = self.ledger[row]
        return None if code < 0 else self.ledgers[code]

    def records(self, rows: Sequence[int] | _Rows) -> Iterator[Record]:
        """Yield the records of these rows."""
        there = np.asarray(rows, np.intp)
        figures = zip(_having(self.metrics, there), _having(self.seconds, there), strict=True)
        for row, (metrics, seconds) in zip(there.tolist(), figures, strict=True):
            task = self.tasks[self.task[row]]
            yield Record(
                task_of_split(task, int(self.split[row]), self.keys[row].decode()),
                STATUSES[self.status[row]],
                metrics,
                seconds,
                self.ledger_of(row),
                self.messages.get(row, ""),
                self.absent.get(row, {}),
            )


def task_of_split(task: Task, split: int, key: str) -> Task:
    """Return the task of another split, whose key is known, without checking or hashing it anew."""
    made = object.__new__(Task)
    vars(made).update(vars(task), split=split, key=key)
    return made


def _figures(found: Sequence[Mapping[str, float]]) -> dict[str, NDArray[np.float64]]:
    names = dict.fromkeys(name for figures in found for name in figures)
    return {
        name: np.array([figures.get(name, np.nan) for figures in found], np.float64)
        for name in names
    }


def _having(columns: Mapping[str, NDArray[np.float64]], rows: _Rows) -> Iterator[dict[str, float]]:
    found = np.array([values[rows] for values in columns.values()]).reshape(len(columns), len(rows))
    is_whole = ~np.isnan(found).any(axis=0)  # most are
    for figures, whole in zip(found.T.tolist(), is_whole.tolist(), strict=True):
        named = zip(columns, figures, strict=True)
        yield dict(named) if whole else {name: v for name, v in named if v == v}


SUFFIX = ".parquet"
# Arrow's own keeps tens of megabytes of what was read and let go, journal after journal.
pa.set_memory_pool(pa.system_memory_pool())

_FORMAT, _DIGEST, _CHECKSUM = b"dprepro.format", b"dprepro.sha256", b"dprepro.crc32"
_VERSION, _NO_CHECKSUM = b"1", b"00000000"
_OF_LENGTH = b"\x18\x08"
"""In the footer, between the name of a text of 8 bytes and the text."""
_METRIC, _SECONDS = _FIGURES = "metric.", "seconds."
_SPLIT = "split"
_TIE = ("format", "after")
_BEFORE_SPLIT = "delta"  # in the order of `Task.to_json`
_FIELDS = ("kind", "key", "task", "status", "metrics", "seconds", "ledger", "message")
_TEXTS = ("kind", "line", "key", "task", "status", "ledger", "message", "rest")
_Number = TypeVar("_Number", np.int32, np.float64)
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def packed(raw: bytes) -> bytes:
    """Return the Parquet file of a journal's bytes.

    Raises ValueError if the last line does not end in a newline, or a line is not UTF-8.
    """

    if raw[-1:] not in (b"", b"\n"):
        raise ValueError("its last line was torn by a crash")
    digest = hashlib.sha256(raw).hexdigest()
    found = as_file(columns_of(raw.split(b"\n")[:-1]), digest)
    if unpacked(found) != raw:
        raise AssertionError("a packed journal must hold every byte of its lines")
    return found


def as_file(table: pa.Table, digest: str) -> bytes:
    """Return the Parquet file of columns (see `columns_of`), with the SHA-256 of their lines."""
    file = io.BytesIO()
    floats = [name for name in table.column_names if name.startswith(_FIGURES)]
    with pq.ParquetWriter(
        file,
        table.schema,
        compression="zstd",
        compression_level=19,
        use_dictionary=[
            name for name in table.column_names if name != "key" and name not in floats
        ],
        store_schema=False,
        write_statistics=False,
    ) as writer:
        writer.write_table(table)
        stated = {_FORMAT: _VERSION, _DIGEST: digest.encode(), _CHECKSUM: _NO_CHECKSUM}
        writer.add_key_value_metadata(stated)
    content = file.getvalue()
    return content.replace(_CHECKSUM + _OF_LENGTH + _NO_CHECKSUM, _stated(content))


def _stated(content: bytes) -> bytes:
    """Return how a file states the checksum of its bytes, given those with zeros in its place."""
    return _CHECKSUM + _OF_LENGTH + b"%08x" % zlib.crc32(content)


def unpacked(content: bytes) -> bytes:
    """Return the bytes of the journal that was packed.

    Raises ValueError if it is no packed journal, or its lines are not those that were packed.
    """
    table = _table(content)
    raw = b"".join(_lines(table))
    if hashlib.sha256(raw).hexdigest().encode() != table.schema.metadata[_DIGEST]:
        raise ValueError("its lines do not agree with its checksum")
    return raw


def _row(line: bytes) -> dict[str, Any]:
    """Return the columns of a line without its newline."""
    try:
        fields = parsed(line)
    except (ValueError, RecursionError):
        fields = {}
    row = _row_of(fields) if tuple(fields)[: len(_FIELDS)] == _FIELDS else None
    if row is None:
        return {"kind": str(fields.get("kind", "")), "line": line.decode()}
    return {**row, **dict(zip(_TIE, tie_of(line), strict=True))}


def _row_of(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    task, metrics, seconds = fields["task"], fields["metrics"], fields["seconds"]
    if not all(type(each) is dict for each in (task, metrics, seconds)) or _SPLIT not in task:
        return None
    floats = [*metrics.values(), *seconds.values()]
    if not re.fullmatch("[0-9a-f]{16}", str(fields["key"])) or type(task[_SPLIT]) is not int:
        return None
    if any(type(value) is not float for value in floats):
        return None
    rest = {name: value for name, value in fields.items() if name not in _FIELDS}
    return {
        "kind": fields["kind"],
        "key": fields["key"],
        "task": _encode({name: value for name, value in task.items() if name != _SPLIT}),
        "split": task[_SPLIT],
        "status": fields["status"],
        **{f"{_METRIC}{name}": value for name, value in metrics.items()},
        **{f"{_SECONDS}{name}": value for name, value in seconds.items()},
        "ledger": None if fields["ledger"] is None else _encode(fields["ledger"]),
        "message": fields["message"],
        "rest": _encode(rest) if rest else None,
    }


def _line(row: Mapping[str, Any]) -> bytes:
    """Return the line of a row, with its newline."""
    if row.get("line") is not None:
        return str(row["line"]).encode() + b"\n"
    task = _with_split(json.loads(row["task"]), row[_SPLIT])
    fields = {
        "kind": row["kind"],
        "key": row["key"],
        "task": task,
        "status": row["status"],
        "metrics": _named(row, _METRIC),
        "seconds": _named(row, _SECONDS),
        "ledger": None if row["ledger"] is None else json.loads(row["ledger"]),
        "message": row["message"],
        **({} if row["rest"] is None else json.loads(row["rest"])),
    }
    return tied(fields, *(row[name] for name in _TIE))


def _with_split(task: Mapping[str, Any], split: int) -> dict[str, Any]:
    """Return a task with its split, which stands where `Task.to_json` has it."""
    found: dict[str, Any] = {}
    for name, value in task.items():
        found[name] = value
        if name == _BEFORE_SPLIT:
            found[_SPLIT] = split
    return found


def _named(row: Mapping[str, Any], prefix: str) -> dict[str, float]:
    return {
        name.removeprefix(prefix): value
        for name, value in row.items()
        if name.startswith(prefix) and value is not None
    }


def columns_of(lines: Sequence[bytes]) -> pa.Table:
    """Return the columns of lines without their newlines."""
    rows = [_row(line) for line in lines]
    orders = dict.fromkeys(tuple(n for n in row if n.startswith(_FIGURES)) for row in rows)
    floats = sorted(_in_one_order(orders), key=lambda name: name.startswith(_SECONDS))
    kinds = {
        **{name: pa.string() for name in _TEXTS},
        _SPLIT: pa.int32(),
        _TIE[0]: pa.int8(),
        _TIE[1]: pa.string(),
        **{name: pa.float64() for name in floats},
    }
    for number, line in enumerate(lines):
        row = {name: rows[number].get(name) for name in kinds}
        if _line(row) != line + b"\n":  # an earlier version wrote it, say
            rows[number] = {"kind": row["kind"], "line": line.decode()}
    return pa.table(
        {name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()}
    )


def _in_one_order(orders: Iterable[Sequence[str]]) -> list[str]:
    """Return all names in an order that agrees with all of `orders`, or as they come."""
    before: dict[str, set[str]] = {name: set() for order in orders for name in order}
    for order in orders:
        for first, second in pairwise(order):
            before[second].add(first)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError:
        return list(before)


def _lines(table: pa.Table) -> Iterator[bytes]:
    names = table.column_names
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield _line(dict(zip(names, values, strict=True)))


def _keys(column: pa.Array) -> NDArray[np.bytes_]:
    """Return the keys of a column, 16 characters each, of which Arrow has the text in one piece."""
    if column.null_count == len(column):
        return np.array([], KEY)
    count, start = len(column) - column.null_count, int(_starts(column)[0])
    return np.frombuffer(column.buffers()[2], KEY, count, start)


def _starts(column: pa.Array) -> NDArray[np.int32]:
    """Return where texts begin, and where the last ends, (n + 1,); a null is an empty one."""
    if not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)


class PackedJournal:
    """A packed journal, of which columns are read when they are asked for.

    That each key is its task's was seen when it was packed.

    Raises ValueError, KeyError, TypeError if it is no packed journal; also from its properties.

    Parameters
    ----------
    content
        Of the file.
    """

    def __init__(self, content: bytes) -> None:
        self._file = _opened(content, read_dictionary=["kind", "task", "ledger", "status"])

    @cached_property
    def lines(self) -> list[Line]:
        """All lines that are kept as they are: those of no record, nearly always."""
        kinds, texts, _ = self._begun
        places = np.flatnonzero(_is_valid(texts)).tolist()
        return [
            Line(place - number, kinds[place].as_py(), texts[place].as_py().encode())
            for number, place in enumerate(places)
        ]

    @cached_property
    def _begun(self) -> list[pa.Array]:
        # Read at once: each look into a small file takes as long as what it finds.
        return self._columns(["kind", "line", "task"])

    @property
    def has_records_as_lines(self) -> bool:
        """Whether `table` and `tasks` are not all: a record that no `Record` wrote is a line."""
        return any(line.kind == "record" for line in self.lines)

    @cached_property
    def tasks(self) -> list[Task]:
        """The distinct tasks of the records, each as that of split 0."""
        return [_task(text) for text in self._begun[2].dictionary.to_pylist()]

    @cached_property
    def table(self) -> RecordTable:
        """The records, without those among `lines`."""
        begun = ("kind", "line", "task")
        names = [n for n in self._file.schema_arrow.names if n not in (*begun, *_TIE)]
        columns = dict(zip(names, self._columns(names), strict=True))
        columns["task"] = self._begun[2]
        is_record = _is_valid(columns["key"])

        def codes(name: str) -> NDArray[np.int64]:
            return _numbers(columns[name].indices, np.int32, -1)[is_record].astype(np.int64)

        def figures(prefix: str) -> dict[str, NDArray[np.float64]]:
            # A null, and only that, is NaN: journals hold finite numbers.
            return {
                name.removeprefix(prefix): _numbers(column, np.float64, np.nan)[is_record]
                for name, column in columns.items()
                if name.startswith(prefix)
            }

        def texts(name: str) -> dict[int, str]:
            is_said = np.diff(_starts(columns[name])) > 0
            rows = np.cumsum(is_record) - 1
            places = np.flatnonzero(is_said & is_record).tolist()
            return {int(rows[place]): columns[name][place].as_py() for place in places}

        statuses = [STATUSES.index(each) for each in columns["status"].dictionary.to_pylist()]
        rest = {row: json.loads(text) for row, text in texts("rest").items()}
        return RecordTable(
            _keys(columns["key"]),
            self.tasks,
            codes("task"),
            _numbers(columns[_SPLIT], np.int32, 0)[is_record].astype(np.int64),
            np.array(statuses, np.int64)[codes("status")],
            figures(_METRIC),
            figures(_SECONDS),
            [json.loads(text) for text in columns["ledger"].dictionary.to_pylist()],
            codes("ledger"),
            texts("message"),
            {row: fields["absent"] for row, fields in rest.items() if fields.get("absent")},
        )

    def _columns(self, names: Sequence[str]) -> list[pa.Array]:
        table = _read(self._file, names).combine_chunks()
        found = (table.column(name) for name in names)
        return [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in found]


@dataclass(frozen=True)
class Line:
    """A line of a packed journal that is kept as it is.

    Attributes
    ----------
    before
        How many records stand before it.
    kind
        As in the column of this name.
    text
        Without its newline.
    """

    before: int
    kind: str
    text: bytes


def _task(text: str) -> Task:
    """Return the task of split 0, given its JSON without a split."""
    return Task.from_json(_with_split(json.loads(text), 0))


def _table(content: bytes) -> pa.Table:
    file = _opened(content)
    return _read(file, None).replace_schema_metadata(file.metadata.metadata)


def _opened(content: bytes, **options: Any) -> pq.ParquetFile:
    # Parquet has checksums of pages, and none of its footer: the names of the columns.
    start = content.rfind(_CHECKSUM + _OF_LENGTH)
    end = start + len(_CHECKSUM + _OF_LENGTH + _NO_CHECKSUM)
    zeroed = content[: end - len(_NO_CHECKSUM)] + _NO_CHECKSUM + content[end:]
    if start < 0:
        raise ValueError("it is no packed journal, or damaged: it states no checksum")
    if content[start:end] != _stated(zeroed):
        raise ValueError("it is damaged: it has not the checksum it states")
    with _no_parquet():
        file = pq.ParquetFile(pa.BufferReader(content), **options)
    if (file.metadata.metadata or {}).get(_FORMAT) != _VERSION:
        raise ValueError("it is no packed journal of this version")
    return file


def _read(file: pq.ParquetFile, columns: Sequence[str] | None) -> pa.Table:
    with _no_parquet():
        # One thread: to start others takes longer than these few pages.
        return file.read(columns, use_threads=False)


@contextmanager
def _no_parquet() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"it is no Parquet file, or damaged ({error})") from error


def _numbers(column: pa.Array, kind: type[_Number], missing: float) -> NDArray[_Number]:
    """Return a column, (n,), with `missing` for nulls.

    Its bytes are read as they are: to convert an array, Arrow loads pandas, half a second.
    """
    data = column.buffers()[1]
    found = np.frombuffer(data, kind, len(column), column.offset * np.dtype(kind).itemsize)
    return np.where(_is_valid(column), found, kind(missing)) if column.null_count else found


def _is_valid(column: pa.Array) -> NDArray[np.bool_]:
    """Return where a column is not null, (n,). Arrow's own function takes a twentieth of a second
    to import.
    """
    if not column.null_count:
        return np.ones(len(column), bool)
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(bool)
