"""The SHA-256 of every file of a folder of results, in the file SHA256SUMS beside them.

`sha256sum -c SHA256SUMS` checks it, too: above the line of a journal a comment says how many lines
the journal has. Lines that earlier versions wrote have no checksum that covers the line before, so
here alone it shows that one of them is gone. A digest is of bytes, whatever they mean.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dprepro.experiment.journal import CRLF
from dprepro.experiment.record_codec import Chain, is_chained
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import MEBIBYTE, NoFileError, appearing_complete, read_bytes, read_text

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

    Raises
    ------
    DpreproError
        If a file cannot be read or written.
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

    Raises
    ------
    DpreproError
        If it cannot be read, or a line is not what `sha256sum` writes.
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

    Returns
    -------
    what differs, in words
        Empty if nothing does.
    lines since
        How many a run has added; nothing differs then.

    Raises
    ------
    DpreproError
        If the file is there and cannot be read.
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
