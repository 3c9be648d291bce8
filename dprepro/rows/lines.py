"""Lines of JSON that say whether they are whole."""

from __future__ import annotations

import json
import zlib
from typing import Any


def line_of(value: Any) -> bytes:
    """Return a line that holds a value: its checksum (CRC-32), then the value as JSON."""
    text = json.dumps(value).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def value_of(line: bytes) -> Any:
    """Return the value of a line.

    Raises
    ------
    ValueError
        If it is not as `line_of` made it.
    """
    crc, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or crc != b"%08x" % zlib.crc32(text):
        raise ValueError("the line is not as it was written")
    return json.loads(text)
