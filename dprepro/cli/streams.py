"""Standard output and error that cannot end a job: what cannot be shown is left out.

A closed or full output, a pipe whose reader has gone, and an encoding that lacks a character stop
neither a run nor the writing of a file.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TextIO

import typer

from dprepro.runtime.text import visible

_PLAIN = {
    "±": "+-", "ε": "epsilon", "δ": "delta", "²": "^2", "×": "x", "·": ".", "−": "-", "–": "-",
    "—": "-", "─": "-", "━": "-", "│": "|", "→": "->", "≤": "<=", "≥": ">=", "…": "...",
    "≈": "~", "↑": "^", "↓": "v",
}  # fmt: skip
_LEAST_WIDTH = 20
_ERRORS = "dprepro-plain"


class _Forgiving(io.RawIOBase):
    """Writes for as long as it can, and says nothing of the rest; notes why it could not."""

    def __init__(self, raw: io.RawIOBase | None, stream: TextIO | None = None) -> None:
        self._raw = raw
        self._stream = stream  # which would close `raw` if nothing held it
        self.refused: OSError | None = None

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._raw is not None and self._raw.isatty()

    def fileno(self) -> int:
        if self._raw is None:
            raise io.UnsupportedOperation("fileno")
        return self._raw.fileno()

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]  # what BufferedWriter gives
        if self._raw is not None and self.refused is None:
            try:
                return self._raw.write(view) or 0
            except OSError as error:
                self.refused = error
        return view.nbytes


def say(text: object = "", err: bool = False) -> None:
    """Print text on standard output or error, with what would steer a terminal made visible."""
    typer.echo(visible(str(text)), err=err)


class Streams:
    """Puts forgiving streams in the place of `sys.stdout` and `sys.stderr`."""

    def __init__(self) -> None:
        _occupy_closed_numbers()
        _widen()
        codecs.register_error(_ERRORS, _plain)
        self._output = _forgiving(sys.stdout)
        error = _forgiving(sys.stderr)
        if self._output is not None:
            redirect_stdout(_text(self._output, sys.stdout)).__enter__()
        if error is not None:
            redirect_stderr(_text(error, sys.stderr, is_error=True)).__enter__()

    def lost_output(self) -> str:
        """Return why a part of standard output is lost; empty if none is, or nobody reads it."""
        if sys.stdout is not None:
            sys.stdout.flush()
        refused = self._output.refused if self._output is not None else None
        if refused is None or refused.errno in (errno.EPIPE, errno.EBADF):
            return ""
        return refused.strerror or str(refused)


def _widen() -> None:
    """Let nothing be laid out for fewer columns than tables need: terminals wrap what is wider."""
    if 0 < shutil.get_terminal_size().columns < _LEAST_WIDTH:
        os.environ["COLUMNS"] = str(_LEAST_WIDTH)
    elif os.environ.get("COLUMNS", "1").strip("0") == "":
        del os.environ["COLUMNS"]  # 0 means that nobody knows


def _occupy_closed_numbers() -> None:
    """Let no file that is opened later get the number of a closed standard stream.

    What other programs and libraries print would go into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)  # workers need the three, too


def _forgiving(stream: TextIO | None) -> _Forgiving | None:
    if stream is None:
        return _Forgiving(None)
    buffer = stream.buffer if isinstance(stream, io.TextIOWrapper) else None
    if isinstance(buffer, io.BufferedWriter):
        return _Forgiving(buffer.raw, stream)
    return _Forgiving(buffer, stream) if isinstance(buffer, io.FileIO) else None  # python -u


def _text(raw: _Forgiving, stream: TextIO | None, is_error: bool = False) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding if stream is not None else "utf-8",
        errors=_ERRORS,
        line_buffering=raw.isatty() or is_error,
        write_through=is_error,
    )


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for characters that the encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end
