"""The journal: one line a finished task, on disk before the next one counts.

Lines of three other kinds stand between them: the environment of a run, before the tasks that it
added, the plan of its config, whenever that is not the one stated last, and the end of a run. See
`dprepro.experiment.record` for what a line looks like.
"""

from __future__ import annotations

import contextlib
import warnings
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ValidationError

from dprepro.experiment.packed import SUFFIX, PackedJournal, RecordTable, unpacked
from dprepro.experiment.plan_record import StatedPlan
from dprepro.experiment.record import (
    NOT_NEXT,
    Chain,
    DamagedLineError,
    Record,
    Task,
    is_chained,
    parsed,
    written,
)
from dprepro.runtime import files
from dprepro.runtime.append_only_file import AppendedFile, JournalWarning, free_name
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import MEBIBYTE, NoFileError, refusal
from dprepro.runtime.text import shell

Entry = Record | StatedPlan | dict[str, Any]
"""What a line says; a dict is an environment, or the end of a run."""

MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)
NO_END = (
    "no run has ended here: one was killed, or lines at the end were deleted. The next "
    "`dprepro run` of the config runs tasks without a record, and ends it"
)
CRLF = (
    "lines end in CR LF, as git writes them with core.autocrlf, or an editor. Check the file out "
    "again after `git config core.autocrlf false`, or let `dprepro results repair` make them LF"
)
_MOST_BYTES = 1024 * MEBIBYTE
_END = b'{"kind":"end"'
_PLAN = b'{"kind":"plan"'
_RECORD = b'{"kind":"record","key":"'
_KEY = slice(len(_RECORD), len(_RECORD) + 16)


def journal_files(folder: Path) -> dict[str, Path]:
    """Return the journals of a folder by name, sorted: packed ones, and those of lines.

    While a run adds to a packed journal, and where it was killed then, both forms are there. The
    lines count as soon as there are any, since they begin with those that were packed.
    """
    packed = (path for path in folder.glob(f"*{SUFFIX}") if not path.is_dir())
    found = [*folder.glob("*.jsonl"), *packed]
    paths = sorted({path.with_suffix(".jsonl") for path in found})
    return {path.stem: as_it_lies(path) for path in paths}


def as_it_lies(path: Path) -> Path:
    """Return the packed journal in the place of one of lines that is not there, or empty."""
    packed = path.with_suffix(SUFFIX)
    is_packed = packed.is_file() and not (path.is_file() and path.stat().st_size)
    return packed if is_packed else path


def refuse_two_forms(path: Path, lines: bytes) -> None:
    """Raise DpreproError if a packed journal is beside `path` that its lines do not begin with."""
    packed = path.with_suffix(SUFFIX)
    if packed != path and packed.is_file() and not lines.startswith(journal_bytes(packed)):
        raise DpreproError(
            f"{path} and {packed.name} are two journals of one config: move one of them to another "
            "folder, and join them with `dprepro results merge`"
        )


def is_packed(path: Path) -> bool:
    """Whether a journal is a packed one, by its name."""
    return path.suffix == SUFFIX


@dataclass(frozen=True)
class JournalContents:
    """What a journal holds.

    Attributes
    ----------
    environments
        One dict a run that added something, oldest first.
    records
        In the order written; of several with one key only the last.
    computed_in
        By the key of a record's task the environment that precedes it; nothing where none does.
    plan
        What the config asked for at the last run; None where no run has said.
    """

    environments: list[dict[str, Any]]
    records: list[Record]
    computed_in: dict[str, dict[str, Any]]
    plan: StatedPlan | None = None


def read_journal(path: Path, keys: Collection[str] | None = None) -> JournalContents:
    """Read a journal; a last line torn by a crash is left out with a `JournalWarning`.

    Raises DpreproError if the file cannot be read, or a line that is read is not what `Journal`
    wrote.

    Parameters
    ----------
    keys
        Of the tasks whose records are read; None: all. Other records are passed over unseen, which
        takes a twentieth of the time.
    """
    if is_packed(path):
        with _blaming(path):
            packed = PackedJournal(_read_file(path))
            if not packed.has_records_as_lines:
                return _contents_of_packed(packed, keys)
    return contents_of(entry for _, entry in entries(journal_bytes(path), path, keys))


class JournalTable:
    """A journal, packed or not, with its records in columns; see `JournalContents`.

    What it holds is read when it is asked for, once. Each part raises DpreproError as
    `read_journal` does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def environments(self) -> list[dict[str, Any]]:
        """One dict a run that added something, oldest first."""
        if self._packed is None:
            return self._contents.environments
        lines = (line.text for line in self._packed.lines if line.kind == "environment")
        return contents_of(map(entry_of, lines)).environments

    @cached_property
    def plan(self) -> StatedPlan | None:
        """What the config asked for at the last run; None where no run has said."""
        if self._packed is None:
            return self._contents.plan
        lines = [line.text for line in self._packed.lines if line.kind == "plan"]
        with _blaming(self.path):
            return contents_of(map(entry_of, lines[-1:])).plan

    @property
    def last_plan(self) -> StatedPlan | None:
        """The plan, read without a look at the records; None also where it cannot be read."""
        try:
            if is_packed(self.path):
                return self.plan
            raw = _read_file(self.path)
            start = raw.rfind(b"\n" + _PLAN) + 1
            line = raw[start:].partition(b"\n")[0]
            return StatedPlan.from_json(parsed(line)) if line.startswith(_PLAN) else None
        except (DpreproError, *MALFORMED):
            return None

    @cached_property
    def tasks(self) -> Sequence[Task]:
        """One task of each cell that it holds records of."""
        if self._packed is None:
            return self.table.tasks
        with _blaming(self.path):
            return self._packed.tasks

    @cached_property
    def table(self) -> RecordTable:
        """Its records."""
        if self._packed is None:
            return RecordTable.of(self._contents.records)
        with _blaming(self.path):
            return self._packed.table

    @cached_property
    def _packed(self) -> PackedJournal | None:
        if not is_packed(self.path):
            return None
        with _blaming(self.path):
            found = PackedJournal(_read_file(self.path))
            return None if found.has_records_as_lines else found

    @cached_property
    def _contents(self) -> JournalContents:
        return read_journal(self.path)


def journal_bytes(path: Path) -> bytes:
    """Return the bytes of a journal's lines, also of a packed one. Raises DpreproError."""
    if not is_packed(path):
        return _read_file(path)
    with _blaming(path):
        return unpacked(_read_file(path))


def _read_file(path: Path) -> bytes:
    try:
        return files.read_bytes(path, _MOST_BYTES)
    except NoFileError as error:
        raise DpreproError(
            f"no journal {path}; `dprepro run {shell(path.stem)}` writes it"
        ) from error


@contextlib.contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Say of which packed journal something cannot be read."""
    try:
        yield
    except MALFORMED as error:
        raise DpreproError(
            f"{path}: {_said(error)}. If it is a file of another kind, move it to another folder. "
            "Nothing repairs a packed journal: take it from where it was packed, or run its config "
            "again with --fresh"
        ) from error


def _contents_of_packed(packed: PackedJournal, keys: Collection[str] | None) -> JournalContents:
    others = contents_of(entry_of(line.text) for line in packed.lines)
    starts = [line.before for line in packed.lines if line.kind == "environment"]
    rows = packed.table.last
    if keys is not None:
        rows = rows[packed.table.positions(list(keys))[rows] >= 0]
    records, computed_in = list(packed.table.records(rows)), {}
    for row, record in zip(rows.tolist(), records, strict=True):
        if (number := bisect_right(starts, row)) > 0:
            computed_in[record.task.key] = others.environments[number - 1]
    return JournalContents(others.environments, records, computed_in, others.plan)


def contents_of(found: Iterator[Entry]) -> JournalContents:
    """Return what the entries of a journal come to."""
    environments: list[dict[str, Any]] = []
    records: dict[str, Record] = {}
    computed_in: dict[str, dict[str, Any]] = {}
    plan = None
    for entry in found:
        if isinstance(entry, Record):
            key = entry.task.key
            # Last place too, so that the order tells which of two settings came later.
            records.pop(key, None)
            records[key] = entry
            if environments:
                computed_in[key] = environments[-1]
        elif isinstance(entry, StatedPlan):
            plan = entry
        elif entry["kind"] == "environment":
            environments.append(entry)
    return JournalContents(environments, list(records.values()), computed_in, plan)


def entries(
    raw: bytes, path: Path, keys: Collection[str] | None = None
) -> Iterator[tuple[int, Entry]]:
    """Yield the entries of a journal's bytes with the numbers of their lines, from 1 on.

    With `keys`, of the records only those with one of these keys.

    Raises DpreproError at a line that is not what `Journal` wrote, or does not follow the one
    before it; the message names it.
    """
    if (place := raw.find(b"\r\n")) >= 0:
        number = raw.count(b"\n", 0, place) + 1
        raise DpreproError(f"{path}, line {number}: {CRLF}")
    chain = Chain()
    wanted = None if keys is None else {key.encode() for key in keys}
    lines = _split(raw, _end_of_whole_lines(raw, path))
    for number, line in enumerate(lines, start=1):
        follows = chain.follows(line)
        if follows and wanted is not None and line.startswith(_RECORD) and line[_KEY] not in wanted:
            continue
        try:
            entry = entry_of(line)
            if not follows:
                raise DamagedLineError(NOT_NEXT)
        except MALFORMED as error:
            raise DpreproError(
                f"{path}, line {number}: {problem_of(error)}. `dprepro results repair "
                f"{shell(path.stem, '--results', path.parent)}` keeps what is sound, and a copy of "
                "the rest beside it"
            ) from error
        yield number, entry


def entry_of(line: bytes) -> Entry:
    """Return what a line says.

    Raises ValueError, KeyError, TypeError, AttributeError, RecursionError if the line is not what
    `Journal` wrote; see `problem_of`.
    """
    try:
        fields = parsed(line)
        kind = fields.pop("kind")
        if kind not in ("environment", "plan", "record", "end"):
            raise ValueError(f"unknown kind {kind!r}")
    except DamagedLineError:
        raise
    except MALFORMED as error:
        raise ValueError(f"not a journal line ({_said(error)})") from error
    if kind in ("environment", "end"):
        return {"kind": kind, **fields}
    try:
        return Record.from_json(fields) if kind == "record" else StatedPlan.from_json(fields)
    except DamagedLineError:
        raise
    except MALFORMED as error:
        raise ValueError(f"a {kind} of another version of dprepro ({_said(error)})") from error


def problem_of(error: Exception) -> str:
    """Return in words what is wrong with a line, given what `entry_of` raised."""
    return f"damaged: {error}" if isinstance(error, DamagedLineError) else str(error)


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{error}" if type(error) is ValueError else f"{type(error).__name__}: {error}"


class Journal:
    """A journal open for appending, by one run at a time. Use it as a context manager.

    A journal to which lines were added ends with one of the kind ``end`` when the context does. One
    that this user may not write can be open, too: it is only read, and `append` is refused. A
    packed journal becomes one of lines with the first that is added.

    Raises DpreproError if another run has it open, or the file system refuses.

    Parameters
    ----------
    path
        The ``.jsonl`` file; its folder is made if need be.
    fresh
        Move an existing journal aside (``.bak``, ``.bak1``, ...) and begin a new one. It is put
        back if nothing is written.
    cut_torn
        Drop what a crash left of a last line, with a `JournalWarning`. There is one as well where a
        run was killed between two lines.
    """

    def __init__(self, path: Path, fresh: bool = False, cut_torn: bool = True) -> None:
        self.path, self._packed = path, path.with_suffix(SUFFIX)
        self._fresh, self._cuts_torn = fresh, cut_torn
        self._unpacked = b""
        self._wrote = self._failed = False

    def __enter__(self) -> Journal:
        try:
            self._file = AppendedFile(self.path, self._fresh, self._packed)
        except BlockingIOError as error:
            raise DpreproError(
                f"another run is writing {self.path}; wait for it to end, stop it, or give "
                "this one another folder with --results"
            ) from error
        except OSError as error:
            raise _refused(self.path, error) from error
        if self._cuts_torn:
            self._cut_torn()
        if not (self._fresh or self._file.content) and self._packed.is_file():
            self._unpacked = journal_bytes(self._packed)
        return self

    def _cut_torn(self) -> None:
        whole = _end_of_whole_lines(self._file.content, self.path)
        if whole < len(self._file.content):
            self._file.cut(whole)
        elif lacks_end(self._file.content):
            warnings.warn(f"{self.path}: {NO_END}", JournalWarning, stacklevel=3)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not (self.is_read_only or self._failed):
                with contextlib.suppress(*([DpreproError] if error else [])):
                    self._end()
        finally:
            self._file.close()

    def _end(self) -> None:
        last = _last_line(self._file.content)
        if not last.startswith(_END) and (self._wrote or is_chained(last)):
            self.append({"kind": "end"})
        elif last:
            try:
                self._file.hold_place()
            except OSError as error:
                raise _refused(self.path, error) from error

    @property
    def is_read_only(self) -> bool:
        """Whether this user may read the journal, and not write it."""
        return self._file.refused is not None

    def ask_to_write(self) -> None:
        """Raise DpreproError if lines cannot be added."""
        if self._file.refused is not None:
            raise _refused(self.path, self._file.refused)

    @property
    def content(self) -> bytes:
        """All bytes of the journal."""
        return bytes(self._file.content) or self._unpacked

    def append(self, entry: Record | StatedPlan | Mapping[str, Any]) -> None:
        """Write one line and wait until it is on disk.

        A journal that somebody replaced, deleted or changed meanwhile is put back first, with a
        `JournalWarning`; what stood there is kept as ``.bak``.

        Raises DpreproError if it cannot be written (disk full, ...); the journal then ends with the
        line before. Raises ValueError if the entry holds NaN or infinity, which strict JSON lacks.
        """
        fields = entry.to_json() if isinstance(entry, Record | StatedPlan) else entry
        line = written(fields, self._file.content or self._unpacked)
        self._failed = True
        try:
            self._take_the_place_of_packed()
            self._file.append(line)
        except OSError as error:
            raise _refused(self.path, error) from error
        self._wrote, self._failed = True, False

    def replace(self, content: bytes) -> None:
        """Put other content in the journal's place, at once. Raises DpreproError."""
        refuse_two_forms(self.path, self.content)
        try:
            self._file.replace(content)
            self._packed.unlink(missing_ok=True)
        except OSError as error:
            raise _refused(self.path, error) from error
        self._wrote = True

    def _take_the_place_of_packed(self) -> None:
        if not self._packed.is_file():
            return
        if self._fresh:
            self._packed.rename(free_name(self._packed))
            return
        if self._unpacked:
            self._file.replace(self._unpacked)
        else:
            refuse_two_forms(self.path, bytes(self._file.content))
        self._packed.unlink()

    def keep(self, content: bytes, name: str) -> Path:
        """Write a file beside the journal, called as it is with `name` (and a number) added.

        Raises DpreproError if it cannot be written.
        """
        try:
            return self._file.keep(content, name)
        except OSError as error:
            raise _refused(self.path, error) from error


def lacks_end(raw: bytes | bytearray) -> bool:
    """Whether the last of a journal's whole lines is chained, and not the end of a run."""
    last = _last_line(raw)
    return is_chained(last) and not last.startswith(_END)


def _last_line(raw: bytes | bytearray) -> bytes:
    return bytes(raw[raw.rfind(b"\n", 0, -1) + 1 : -1])


def _end_of_whole_lines(raw: bytes | bytearray, path: Path) -> int:
    """Return where the complete lines end; warn about what a crash left after them."""
    end = raw.rfind(b"\n") + 1
    last = raw.rfind(b"\n", 0, max(end - 1, 0)) + 1
    if end == len(raw) and b"\0" in raw[last:]:
        end = last  # after a power cut, blocks of zeros can end in a newline
    if end < len(raw):
        line, size = raw.count(b"\n", 0, end) + 1, len(raw.rstrip(b"\n")) - end
        warnings.warn(
            f"{path}, line {line}: the last line was torn by a crash and is dropped ({size} bytes)",
            JournalWarning,
            stacklevel=3,
        )
    return end


def _split(raw: bytes, end: int) -> Iterator[bytes]:
    """Yield the lines up to `end`, one at a time: of a wrong file there can be 10^8."""
    start = 0
    while start < end:
        stop = raw.index(b"\n", start)
        yield raw[start:stop]
        start = stop + 1


def _refused(path: Path, error: OSError) -> DpreproError:
    what, advice = refusal(error)
    return DpreproError(
        f"{path}: cannot be written: {what}. All earlier lines are safe: {advice}, then give the "
        "same command again to resume"
    )
