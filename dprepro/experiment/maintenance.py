"""Folders of results: check, repair, prune, pack and join their journals, and list their checksums.

`sha256sum -c SHA256SUMS` checks the list, too: above the line of a journal a comment says how many
lines the journal has. Lines that earlier versions wrote have no checksum that covers the line
before, so here alone it shows that one of them is gone. A digest is of bytes, whatever they mean.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprepro.experiment.journal import (
    CRLF,
    MALFORMED,
    NO_END,
    Entry,
    Journal,
    entries,
    entry_of,
    is_packed,
    journal_bytes,
    journal_files,
    lacks_end,
    problem_of,
    refuse_two_forms,
)
from dprepro.experiment.packed import SUFFIX, packed
from dprepro.experiment.plan_record import StatedPlan
from dprepro.experiment.record import NOT_NEXT, Chain, Record, chained_anew, is_chained
from dprepro.runtime.append_only_file import JournalWarning, is_locked
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import MEBIBYTE, NoFileError, appearing_complete, read_bytes, read_text
from dprepro.runtime.text import shell

_OTHERS = (b'{"kind":"record"', b'{"kind":"plan"')
_WORDS = (b"environment", b"taken_from")
_UNKNOWN = b'{"kind":"environment","platform":"unknown: the line that said it was damaged"}'


@dataclass(frozen=True)
class Findings:
    """What the lines of a journal are.

    Attributes
    ----------
    lines
        All lines that end in a newline, without these.
    sound
        The entries of sound lines, each with its position in `lines`.
    problems
        Line number, from 1 on, and what is wrong with the line.
    damaged
        The numbers of those lines that nothing can be read from.
    unchained
        Number of lines of earlier versions that no later line covers: one could be deleted, and
        nothing in the journal would show it.
    superseded
        Number of records that a later record of the same task replaces.
    stale
        Number of tasks with records that the last plan does not ask for; 0 without a plan.
    missing
        Number of tasks that the last plan asks for and that have no record.
    """

    lines: Sequence[bytes]
    sound: Sequence[tuple[int, Entry]]
    problems: Sequence[tuple[int, str]]
    damaged: Sequence[int]
    unchained: int
    superseded: int
    stale: int
    missing: int

    @property
    def records(self) -> int:
        """Number of tasks with a record."""
        return len(_last_records(self.sound))


def examine(path: Path) -> Findings:
    """Look at every line of a journal.

    Raises DpreproError if the file cannot be read, or a packed journal of other records is beside
    it.
    """
    raw = journal_bytes(path)
    refuse_two_forms(path, raw)
    found = _examine(raw)
    return replace(found, problems=found.problems[:-1]) if _is_growing(path, found) else found


def _is_growing(path: Path, found: Findings) -> bool:
    """Whether the only problem is that a run still goes on."""
    return [text for _, text in found.problems] == [NO_END] and is_locked(path)


def repair(path: Path) -> tuple[Findings, Path | None]:
    """Take damaged lines out of a journal, and let each other line follow the one before it.

    A damaged environment leaves an unknown one, so that the records after it do not count as
    those of the run before. Return what was found, and the name of the old journal, which is kept;
    None if it was sound. Tasks whose records were damaged run again with `dprepro run`.

    Raises DpreproError if a run writes the journal, or a file cannot be read or written.
    """
    journal_bytes(path)  # a journal that is not there is not made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JournalWarning)
        with Journal(path.with_suffix(".jsonl"), cut_torn=False) as journal:
            found = _examine(journal.content)
            if not found.problems:
                return found, None
            kept = journal.keep(journal.content, "bak")
            journal.replace(chained_anew(_left(found)))
    return found, kept


def prune(path: Path, dry_run: bool = False) -> tuple[Findings, Path | None]:
    """Leave in a journal what its tables show: the last record of each task that its plan asks for.

    Environments stay that a record left was computed in. Return what was found, and the name of the
    old journal, which is kept; None if there was nothing to take out.

    Raises DpreproError if a line is damaged, a run writes the journal, or a file cannot be read or
    written.
    """
    found = examine(path)
    if found.problems:
        raise DpreproError(
            f"{path}, line {found.problems[0][0]}: {found.problems[0][1]}. Repair it first: "
            f"`dprepro results repair {shell(path.stem, '--results', path.parent)}`"
        )
    if dry_run or not (found.superseded or found.stale):
        return found, None
    with Journal(path.with_suffix(".jsonl")) as journal:
        found = _examine(journal.content)
        backup = journal.keep(journal.content, "bak")
        journal.replace(chained_anew([found.lines[position] for position in _needed(found)]))
    return found, backup


def _examine(raw: bytes) -> Findings:
    problems: list[tuple[int, str]] = []
    if b"\r\n" in raw:
        problems.append((raw.count(b"\n", 0, raw.find(b"\r\n")) + 1, CRLF))
        raw = raw.replace(b"\r\n", b"\n")
    *lines, tail = raw.split(b"\n")
    sound: list[tuple[int, Entry]] = []
    damaged: list[int] = []
    chain = Chain()
    for position, line in enumerate(lines):
        follows = chain.follows(line)
        try:
            sound.append((position, entry_of(line)))
        except MALFORMED as error:
            problems.append((position + 1, problem_of(error)))
            damaged.append(position + 1)
            chain.lose()
        else:
            if not follows:
                problems.append((position + 1, NOT_NEXT))
    if tail:
        problems.append((len(lines) + 1, f"torn by a crash ({len(tail)} bytes)"))
        damaged.append(len(lines) + 1)
    elif lacks_end(raw):
        problems.append((len(lines) + 1, NO_END))
    records = sum(isinstance(entry, Record) for _, entry in sound)
    last = _last_records(sound)
    asked = _asked(sound)
    return Findings(
        lines,
        sound,
        problems,
        damaged,
        0 if chain.is_begun else len(lines),
        records - len(last),
        0 if asked is None else len(last.keys() - asked),
        0 if asked is None else len(asked - last.keys()),
    )


def _last_records(sound: Sequence[tuple[int, Entry]]) -> dict[str, int]:
    """Return by key the position of each task's last record."""
    return {entry.task.key: place for place, entry in sound if isinstance(entry, Record)}


def _asked(sound: Sequence[tuple[int, Entry]]) -> set[str] | None:
    plans = [entry for _, entry in sound if isinstance(entry, StatedPlan)]
    return {key for cell in plans[-1].cells for key in cell.keys} if plans else None


def _needed(found: Findings) -> list[int]:
    """Return the positions of the lines that stay, in their order."""
    last, asked = _last_records(found.sound), _asked(found.sound)
    needed: set[int] = set()
    environment: int | None = None
    plan: int | None = None
    for place, entry in found.sound:
        if isinstance(entry, StatedPlan):
            plan = place
        elif not isinstance(entry, Record):
            environment = place if entry["kind"] == "environment" else environment
        elif last[entry.task.key] == place and (asked is None or entry.task.key in asked):
            needed.add(place)
            needed.update(() if environment is None else (environment,))
    return sorted(needed | (set() if plan is None else {plan}))


def _left(found: Findings) -> list[bytes]:
    sound = {position for position, _ in found.sound}
    return [
        line if position in sound else _UNKNOWN
        for position, line in enumerate(found.lines)
        if position in sound or _was_environment(line)
    ]


def _was_environment(line: bytes) -> bool:
    return not line.startswith(_OTHERS) and any(word in line for word in _WORDS)


def pack(path: Path) -> Path | None:
    """Put a packed journal in the place of one of lines, and return its path.

    None if it is packed already. The lines go when the packed file is on the disk and was unpacked
    once, to the same bytes.

    Raises DpreproError if a line is not as it was written, no run has ended the journal, one writes
    it, a packed one of other records is beside it, or a file cannot be read or written.
    """
    if is_packed(path):
        return None
    found = examine(path)  # before it is locked, as a run that goes on lacks an end, too
    if found.problems:
        number, text = found.problems[0]
        raise DpreproError(
            f"{path}, line {number}: {text}. Only sound journals are packed: "
            f"`dprepro results verify {path.stem}` names all that is wrong"
        )
    with Journal(path):  # no run begins meanwhile
        raw, into = journal_bytes(path), path.with_suffix(SUFFIX)
        refuse_two_forms(path, raw)
        with appearing_complete(into) as unfinished:
            unfinished.write_bytes(packed(raw))
            unfinished.chmod(path.stat().st_mode & 0o777)
    _remove(path, raw)
    return into


def keep(path: Path, folder: Path) -> Path:
    """Write a packed copy of a journal into a folder, and return its path.

    What the folder has of the same name is replaced when the copy is complete.

    Raises DpreproError if a line is not as it was written, or a file cannot be read or written.
    """
    into = folder / f"{path.stem}{SUFFIX}"
    if folder.resolve() == path.parent.resolve():
        raise DpreproError(f"{folder} is the folder of the results itself: name another one")
    try:
        content = packed(journal_bytes(path))
    except ValueError as error:
        raise DpreproError(
            f"{path}: {error}. `dprepro results repair {path.stem}` mends it"
        ) from error
    with appearing_complete(into) as unfinished:
        unfinished.write_bytes(content)
        unfinished.chmod(path.stat().st_mode & 0o777)
    return into


def unpack(path: Path) -> Path | None:
    """Put a journal of lines in the place of a packed one, and return its path.

    None if it is one of lines already. The lines are those that were packed, byte for byte.

    Raises DpreproError if a file cannot be read or written.
    """
    if not is_packed(path):
        return None
    into = path.with_suffix(".jsonl")
    with Journal(into):  # no run begins meanwhile
        raw = journal_bytes(path)
        with appearing_complete(into) as unfinished:
            unfinished.write_bytes(raw)
            unfinished.chmod(path.stat().st_mode & 0o777)
        path.unlink()
    return into


def _remove(path: Path, raw: bytes) -> None:
    """Remove a file, unless a run that began just now has added to it."""
    if journal_bytes(path) == raw:
        path.unlink()


@dataclass(frozen=True)
class Merged:
    """What became of the journals of one config.

    Attributes
    ----------
    name, folders
        The config, and how many folders have a journal of it.
    records
        Number of tasks with a record.
    repeated, differing
        Number of tasks that finished in several folders, and of those whose metrics differ there.
    """

    name: str
    folders: int
    records: int
    repeated: int
    differing: int


def merge(folders: Sequence[Path], into: Path) -> list[Merged]:
    """Join the journals of several folders in a new one, by config.

    Of a task that finished in several folders, the record of the first counts. One that failed
    gives way to one that finished. Each record follows the environment that it was computed in.

    Raises DpreproError if a folder has no journals, `into` has any, the plans of a config differ,
    or a file cannot be read or written.
    """
    held = [journal_files(folder) for folder in folders]
    for folder, found in zip(folders, held, strict=True):
        if not found:
            raise DpreproError(f"{folder}: no journals (*.jsonl, *.parquet) are in this folder")
    if journal_files(into):
        raise DpreproError(f"--into {into}: has journals already; name a new folder")
    names = sorted({name for found in held for name in found})
    return [_merge(name, [found[name] for found in held if name in found], into) for name in names]


def _merge(name: str, paths: Sequence[Path], into: Path) -> Merged:
    contents = [journal_bytes(path) for path in paths]
    for path, raw in zip(paths, contents, strict=True):
        refuse_two_forms(path, raw)
    sources = [
        [entry for _, entry in entries(raw, path)]
        for path, raw in zip(paths, contents, strict=True)
    ]
    best: dict[str, Record] = {}
    repeated: set[str] = set()
    differing: set[str] = set()
    for entry in (entry for source in sources for entry in source):
        if not isinstance(entry, Record):
            continue
        key, known = entry.task.key, best.get(entry.task.key)
        if known is None or (known.status != "ok" and entry.status == "ok"):
            best[key] = entry
        elif known.status == entry.status == "ok":
            repeated.add(key)
            if dict(known.metrics) != dict(entry.metrics):
                differing.add(key)
    with Journal(into / f"{name}.jsonl") as journal:
        plan = _plan(name, paths, sources)
        if plan is not None:
            journal.append(plan)
        for source in sources:
            environment: dict[str, Any] | None = None
            for entry in source:
                if isinstance(entry, Record):
                    if best.get(entry.task.key) is entry:
                        if environment is not None:
                            journal.append(environment)
                            environment = None
                        journal.append(entry)
                elif not isinstance(entry, StatedPlan) and entry["kind"] == "environment":
                    environment = entry
    return Merged(name, len(paths), len(best), len(repeated), len(differing))


def _plan(name: str, paths: Sequence[Path], sources: Sequence[Sequence[Any]]) -> StatedPlan | None:
    plans = [[entry for entry in source if isinstance(entry, StatedPlan)] for source in sources]
    stated = [(path, found[-1]) for path, found in zip(paths, plans, strict=True) if found]
    for path, plan in stated[1:]:
        if not plan.agrees_with(stated[0][1]):
            raise DpreproError(
                f"{stated[0][0]} and {path} have other plans of {name}: the config changed "
                "between their runs. Run the older one again, or leave its folder out"
            )
    return stated[-1][1] if stated else None


# --- checksums ------------------------------------------------------------------------------------


NAME = "SHA256SUMS"
_HEAD = (
    "# `sha256sum -c SHA256SUMS` compares, and `dprepro results verify` says what differs.\n"
    "# `dprepro results verify --record` writes this file.\n"
)
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_LINES = re.compile(r"# lines: ([0-9]+)")
# What commands keep beside a journal, or leave for a moment.
_BESIDE = re.compile(r"\..*|.*\.(bak|damaged)[0-9]*|.*\.lock")
_MOST_BYTES = 1024 * MEBIBYTE


@dataclass(frozen=True)
class Sum:
    """The digest of a file, in hex, and the number of lines if the file is a journal."""

    sha256: str
    lines: int | None = None

    @classmethod
    def of(cls, path: Path, raw: bytes) -> Sum:
        """Return that of a file's content."""
        journal = path.suffix == ".jsonl"
        return cls(hashlib.sha256(raw).hexdigest(), raw.count(b"\n") if journal else None)


def write_sums(folder: Path) -> dict[str, Sum]:
    """Write the digests of all files of a folder, and return them by name.

    Raises DpreproError if a file cannot be read or written.
    """
    sums = {name: Sum.of(folder / name, _read(folder / name)) for name in _names(folder)}
    with appearing_complete(folder / NAME) as unfinished:
        text = "".join(
            ("" if told.lines is None else f"# lines: {told.lines}\n") + f"{told.sha256}  {name}\n"
            for name, told in sums.items()
        )
        unfinished.write_text(_HEAD + text, encoding="utf-8", newline="\n")
    return sums


def read_sums(folder: Path) -> dict[str, Sum]:
    """Return by name what SHA256SUMS says; nothing if there is no such file.

    Raises DpreproError if it cannot be read, or a line is not what `sha256sum` writes.
    """
    path = folder / NAME
    try:
        text = read_text(path, 16 * MEBIBYTE)
    except NoFileError:
        return {}
    sums: dict[str, Sum] = {}
    lines = None
    for number, line in enumerate(text.split("\n"), start=1):
        if (told := _LINE.fullmatch(line)) is not None:
            sums[told[2]], lines = Sum(told[1], lines), None
        elif (counted := _LINES.fullmatch(line)) is not None:
            lines = int(counted[1])
        elif line and not line.startswith("#"):
            raise DpreproError(
                f"{path}, line {number}: not a digest and a name, as `sha256sum` writes them; "
                "`dprepro results verify --record` writes the file anew"
            )
    return sums


def unrecorded(folder: Path, sums: dict[str, Sum]) -> list[str]:
    """Return the names of files of the folder that `sums` does not cover."""
    return [name for name in _names(folder) if name not in sums]


def difference(path: Path, told: Sum) -> tuple[str, int]:
    """Compare a file with its digest.

    Raises DpreproError if the file is there and cannot be read.

    Returns
    -------
    what differs, in words
        Empty if nothing does.
    lines since
        How many a run has added; nothing differs then.
    """
    try:
        raw = _read(path)
    except NoFileError:
        return "the file is not there", 0
    found = Sum.of(path, raw)
    if found.sha256 == told.sha256:
        return "", 0
    if Sum.of(path, raw.replace(b"\r\n", b"\n")).sha256 == told.sha256:
        return CRLF, 0
    if told.lines is None or found.lines is None:
        return "it is another file than the one recorded", 0
    lines, chain = raw.split(b"\n")[:-1], Chain()
    before = b"".join(line + b"\n" for line in lines[: told.lines])
    follows = [chain.follows(line) and is_chained(line) for line in lines]
    if hashlib.sha256(before).hexdigest() == told.sha256 and all(follows[told.lines :]):
        return "", len(lines) - told.lines
    more = found.lines - told.lines
    if not more:
        return "as many lines as recorded, and some of them changed", 0
    return f"{counted(abs(more))} {'more' if more > 0 else 'fewer'} than recorded", 0


def counted(lines: int) -> str:
    """Return a number of lines in words."""
    return f"{lines} line{'' if lines == 1 else 's'}"


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and str(name) != NAME and not any(map(_BESIDE.fullmatch, name.parts)):
            yield name.as_posix()


def _read(path: Path) -> bytes:
    return read_bytes(path, _MOST_BYTES)
