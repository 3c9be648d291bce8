"""One line of a journal: strict JSON whose last fields are the format and a CRC of what precedes.

    {"kind":"record", ... ,"format":2,"crc32":"0f1e2d3c"}

The CRC is zlib's, of all bytes of the line before `,"crc32"`. Any flipped bit makes it wrong. Lines
of version 0.1.0 and of early 0.2.0 have neither field (format 1): they are read, and `sealed` makes
them lines of format 2 without a change to the rest.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

FORMAT = 2
OF_THE_LINE = ("format", "crc32")
"""Fields that say nothing of an experiment."""

_MARK, _TAIL = b',"crc32":"', b'"}'
_LENGTH = len(_MARK) + 8 + len(_TAIL)
_read = json.JSONDecoder().raw_decode
_write = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class DamagedLineError(ValueError):
    """A line is not as it was written."""


def written(fields: Mapping[str, Any]) -> bytes:
    """Return a line of the current format, with its newline.

    Raises
    ------
    ValueError
        If a value is NaN or infinite, which strict JSON lacks.
    """
    return sealed(_write(fields).encode())


def sealed(line: bytes) -> bytes:
    """Return a line without format and CRC as one of the current format, with its newline."""
    head = b'%b,"format":%d' % (line.rstrip()[:-1], FORMAT)
    return b"%b%b%08x%b\n" % (head, _MARK, zlib.crc32(head), _TAIL)


def is_sealed(line: bytes) -> bool:
    """Whether a line, without its newline, has a CRC."""
    return line[-_LENGTH : len(_MARK) - _LENGTH] == _MARK


def parsed(line: bytes) -> dict[str, Any]:
    """Return the fields of a line without its newline; `OF_THE_LINE` are taken out.

    Raises
    ------
    DamagedLineError
        If the line does not agree with its CRC, or has lost it.
    ValueError, RecursionError
        If the line is no JSON object, or its format is not known.
    """
    has_crc = is_sealed(line)
    if has_crc and line[-10:-2] != b"%08x" % zlib.crc32(line[:-_LENGTH]):
        raise DamagedLineError("it does not agree with its checksum")
    text = line.decode()
    fields, end = _read(text)
    if text[end:].strip() or type(fields) is not dict:
        raise ValueError("it is no JSON object")
    if not has_crc and not fields.keys().isdisjoint(OF_THE_LINE):
        raise DamagedLineError("its checksum is damaged")
    if has_crc:
        version = fields.pop("format", None)
        if version != FORMAT:
            raise ValueError(f"its format is {version}, and this dprepro reads 1 to {FORMAT}")
        del fields["crc32"]
    return fields
