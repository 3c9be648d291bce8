"""What commands print: streams that cannot end a job, and the steps of a job that takes a while.

A closed or full output, a pipe whose reader has gone, and an encoding that lacks a character stop
neither a run nor the writing of a file: what cannot be shown is left out.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from threading import Timer
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

SECONDS = 2.0
"""What takes no longer says nothing."""


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


class Patience:
    """Within a ``with`` block, says on standard error what is done, from `SECONDS` on.

    Of the steps before that time only the last one is said.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._timer = Timer(seconds, self._begin)
        self._timer.daemon = True
        self._step = ""
        self._speaks = False

    def __enter__(self) -> Patience:
        self._timer.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._timer.cancel()

    def step(self, text: str) -> None:
        """Take note of what begins now, and say it if the command takes long."""
        self._step = text
        if self._speaks:
            self._say()

    def _begin(self) -> None:
        self._speaks = True
        if self._step:
            self._say()

    def _say(self) -> None:
        say(f"{self._step} ...", err=True)


class Waiting(Patience):
    """Within a ``with`` block, the same in a line of the terminal that goes away with the block.

    Nothing is said where standard output or standard error is no terminal.
    """

    def __init__(self, seconds: float = SECONDS / 2) -> None:
        from dprepro.runtime.terminal import can_draw, error_console

        super().__init__(seconds)
        console = error_console()
        shows = sys.stdout.isatty() and can_draw(console)
        self._line = console.status("") if shows else None

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self._timer.join()  # the line must not begin after its end
        if self._line is not None:
            self._line.stop()

    def _say(self) -> None:
        if self._line is not None:
            self._line.update(f"{self._step} ...")
            self._line.start()
