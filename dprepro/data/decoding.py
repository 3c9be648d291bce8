"""Bytes of a text file as UTF-8, whatever their encoding."""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO

from dprepro.runtime.errors import DpreproError

_LF, _CR = b"\n", b"\r"
_BOM = codecs.BOM_UTF8
_WIDE = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
         codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip
_NEEDS_BOM = ("utf-16", "utf-32")
_ADVICE = (
    "say on its card how it is written, such as `format: {encoding: cp1252}` (Windows) or "
    "`format: {encoding: latin-1}`, or save the file as UTF-8 (of Latin-1: "
    "iconv -f latin1 -t utf8 OLD.csv > NEW.csv)"
)


class BadRecordError(DpreproError):
    """A file cannot be parted into records; the message names the line, and quotes no field."""


def as_utf8(data: bytes, encoding: str) -> bytes:
    """Return the bytes of a text file as UTF-8, without byte order mark.

    Raises BadRecordError if they are no text in this encoding.
    """
    text = Utf8Stream(io.BytesIO(data), encoding)
    read = b""
    try:
        while (piece := text.read(max(len(data), 1))) or text.is_broken:
            read += piece
    except NotTextError as error:
        raise BadRecordError(f"line {1 + line_ends(read)}{error}") from None
    return read


def line_ends(data: bytes) -> int:
    """Return how many lines end in `data`: at LF, CRLF or CR."""
    if _CR not in data:
        return data.count(_LF)
    return data.count(_LF) + data.count(_CR) - data.count(b"\r\n")


class NotTextError(Exception):
    """The next bytes are no text."""

    def __init__(self, encoding: str, is_exact: bool) -> None:
        super().__init__(
            f"{'' if is_exact else ' or a later one'}: its bytes are not text in the expected "
            f"encoding, {encoding}; {_ADVICE}"
        )


class Utf8Stream:
    """A stream as UTF-8, without byte order mark, whatever its encoding."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding
        self._is_begun, self._is_ascii = False, False
        self._broken: UnicodeDecodeError | None = None
        start = stream.read(4)
        wide = next((name for mark, name in _WIDE.items() if start.startswith(mark)), None)
        name = codecs.lookup(encoding).name
        self._decoder: codecs.IncrementalDecoder | None = None
        if start.startswith(_BOM):
            self._start, self._encoding = start[len(_BOM) :], "utf8"
        elif wide is not None and name.startswith(("utf-8", *_NEEDS_BOM)):
            self._start, self._encoding = start, wide
            self._decoder = codecs.getincrementaldecoder(wide)()
        elif name in _NEEDS_BOM:
            raise BadRecordError(
                f"its bytes are not text in the expected encoding: {encoding} begins with a byte "
                f"order mark, and the file does not; {_ADVICE}"
            )
        else:
            self._start = start
            if name not in ("utf-8", "utf-8-sig", "ascii"):
                self._decoder = _incremental(name)
            self._is_ascii = name == "ascii"
        self._tail = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes, some `size` of them; nothing at the end.

        Raises NotTextError if they are no text in this encoding.
        """
        while True:
            data = self._start + self._stream.read(size)
            self._start = b""
            try:
                if self._broken is not None:
                    raise self._broken
                text = self._decoded(data, not data)
            except UnicodeError as error:
                is_exact = self._decoder is None
                if is_exact and self._broken is None and isinstance(error, UnicodeDecodeError):
                    self._broken = error
                    return bytes(error.object[: error.start])
                raise NotTextError(self._encoding, is_exact) from None
            if text or not data:
                return text

    @property
    def is_broken(self) -> bool:
        """Whether the next bytes are no text."""
        return self._broken is not None

    def _decoded(self, data: bytes, is_last: bool) -> bytes:
        if self._decoder is not None:
            text = self._decoder.decode(data, is_last).encode()
            if not self._is_begun and text:
                self._is_begun, text = True, text.removeprefix(_BOM)
            return text
        data = self._tail + data
        self._tail = b""
        if data.isascii():
            return data
        if not is_last and (cut := _half_character(data)):
            data, self._tail = data[:-cut], data[-cut:]
        data.decode("ascii" if self._is_ascii else "utf-8")
        return data


def _incremental(name: str) -> codecs.IncrementalDecoder:
    info = codecs.lookup(name)
    if info.incrementaldecoder is not None:
        return info.incrementaldecoder()
    return _WholeDecoder(name)


class _WholeDecoder(codecs.IncrementalDecoder):
    """For encodings that Python decodes as a whole only."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name, self._seen = name, b""

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override]
        self._seen += bytes(data)
        return self._seen.decode(self._name) if final else ""


def _half_character(data: bytes) -> int:
    """Return how many bytes at the end begin a character of UTF-8 that does not end there."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 != 0b1000_0000:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return back if length > back else 0
    return 0
