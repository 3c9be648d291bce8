"""One line of a journal: strict JSON whose last fields tie it to what stands before it.

    {"kind":"record", ... ,"format":3,"after":"5e6f7a8b","crc32":"0f1e2d3c"}

`crc32` is zlib's, of all bytes of the line before `,"crc32"`. Any flipped bit makes it wrong.
`after` is the `crc32` of the line before, which covers that line's `after` in turn. So a line that
is deleted, doubled or moved leaves one that does not follow. The first line that has an `after`
states the CRC of all bytes before it instead: 00000000 where it begins the journal.

Lines of 0.2.0 have no `after` (format 2), those of 0.1.0 none of the three fields (format 1). They
are read, and stay as they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from json import JSONDecoder, JSONEncoder
from typing import Any

FORMAT = 3
OF_THE_LINE = ("format", "after", "crc32")
"""Fields that say nothing of an experiment."""
NOT_NEXT = (
    "it is not what was written after the line before it: lines were deleted, added, moved or "
    "changed here"
)

_AFTER, _MARK, _TAIL = b',"format":%d,"after":"' % FORMAT, b',"crc32":"', b'"}'
_SEALED = len(_MARK) + 8 + len(_TAIL)
_CHAINED = len(_AFTER) + 8 + 1 + _SEALED
_STATED = slice(len(_AFTER) - _CHAINED, len(_AFTER) + 8 - _CHAINED)
_CRC = slice(-8 - len(_TAIL), -len(_TAIL))
_read = JSONDecoder().raw_decode
_write = JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class DamagedLineError(ValueError):
    """A line is not as it was written."""


def written(fields: Mapping[str, Any], before: bytes | bytearray = b"") -> bytes:
    """Return a line of the current format, with its newline.

    Parameters
    ----------
    before
        All that the journal holds: whole lines.

    Raises
    ------
    ValueError
        If a value is NaN or infinite, which strict JSON lacks.
    """
    last = bytes(before[before.rfind(b"\n", 0, -1) + 1 : -1])
    link = last[_CRC] if is_chained(last) else b"%08x" % zlib.crc32(before)
    return _chained(_write(fields).encode()[:-1], link)


def chained_anew(lines: list[bytes]) -> bytes:
    """Return lines, without their newlines, each of which follows the one before it.

    Those before the first that is chained stay as they are, and so do the fields of all.
    """
    done = bytearray()
    link = b""
    for line in lines:
        if not link and not is_chained(line):
            done += line + b"\n"
            continue
        made = _chained(_bare(line), link or b"%08x" % zlib.crc32(done))
        link = made[:-1][_CRC]
        done += made
    return bytes(done)


def tie_of(line: bytes) -> tuple[int, str]:
    """Return the format of a line, without its newline, and what it states of the line before."""
    if is_chained(line):
        return FORMAT, line[_STATED].decode()
    return (2 if _is_sealed(line) else 1), ""


def tied(fields: Mapping[str, Any], version: int, after: str) -> bytes:
    """Return a line as one of any format, with its newline; see `tie_of`."""
    line = _write(fields).encode()
    if version == FORMAT:
        return _chained(line[:-1], after.encode())
    return line + b"\n" if version == 1 else _sealed(b'%b,"format":%d' % (line[:-1], version))


def _chained(head: bytes, link: bytes) -> bytes:
    return _sealed(b'%b%b%b"' % (head, _AFTER, link))


def _sealed(head: bytes) -> bytes:
    return b"%b%b%08x%b\n" % (head, _MARK, zlib.crc32(head), _TAIL)


def _bare(line: bytes) -> bytes:
    """Return a line up to the fields that tie it, or to its last brace."""
    if is_chained(line):
        return line[:-_CHAINED]
    return line[: -_SEALED - len(b',"format":2')] if _is_sealed(line) else line.rstrip()[:-1]


def _is_sealed(line: bytes) -> bool:
    return line[-_SEALED : len(_MARK) - _SEALED] == _MARK


def is_chained(line: bytes) -> bool:
    """Whether a line, without its newline, states what stands before it."""
    return line[-_CHAINED : len(_AFTER) - _CHAINED] == _AFTER and _is_sealed(line)


class Chain:
    """Tells of one line after the other whether it follows those before it.

    Attributes
    ----------
    is_begun
        Whether a line was chained: all lines before it are covered, and all later ones have to be.
    """

    def __init__(self) -> None:
        self.is_begun = self._is_lost = False
        self._link = b""
        self._crc = 0

    def follows(self, line: bytes) -> bool:
        """Take in the next line, without its newline."""
        is_lost, self._is_lost = self._is_lost, False
        if not is_chained(line):
            self._crc = zlib.crc32(b"\n", zlib.crc32(line, self._crc))
            return is_lost or not self.is_begun
        expected = self._link if self.is_begun else b"%08x" % self._crc
        self.is_begun, self._link = True, line[_CRC]
        return is_lost or line[_STATED] == expected

    def lose(self) -> None:
        """Let any line follow the one taken in last, which is damaged, with what it states."""
        self._is_lost = True


def parsed(line: bytes) -> dict[str, Any]:
    """Return the fields of a line without its newline; `OF_THE_LINE` are taken out.

    Raises
    ------
    DamagedLineError
        If the line does not agree with its CRC, or has lost it.
    ValueError, RecursionError
        If the line is no JSON object, or its format is not known.
    """
    has_crc = _is_sealed(line)
    if has_crc and line[_CRC] != b"%08x" % zlib.crc32(line[:-_SEALED]):
        raise DamagedLineError("it does not agree with its checksum")
    text = line.decode()
    fields, end = _read(text)
    if text[end:].strip() or type(fields) is not dict:
        raise ValueError("it is no JSON object")
    if not has_crc and not fields.keys().isdisjoint(OF_THE_LINE):
        raise DamagedLineError("its checksum is damaged")
    if has_crc:
        version = fields.pop("format", None)
        if version not in (2, FORMAT):
            raise ValueError(f"its format is {version}, and this dprepro reads 1 to {FORMAT}")
        if is_chained(line) != (version == FORMAT):
            raise ValueError(f"it does not end as lines of format {version} do")
        fields.pop("after", None)
        del fields["crc32"]
    return fields
