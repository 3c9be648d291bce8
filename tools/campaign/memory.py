"""Memory that runs out: the n-th allocation of a small command fails, and those after it.

    python -m tools.campaign.memory --runs 2000

Each command runs in a fork of a process that has loaded all modules, so that the failure meets the
command. CPython's own hook fails the allocations. What is held against each end: files are as
before or as they should be, no other file is there, nothing hangs or crashes, no traceback, no exit
code of a bug, and a command says why it ended. How often Python itself tells of a destructor, in a
line or two, is counted.
"""

from __future__ import annotations

import _testcapi  # type: ignore[import-not-found]
import argparse
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import NoReturn

from dprepro import cli
from dprepro.additive import file
from dprepro.additive.file import load_model
from dprepro.data import register
from dprepro.experiment.journal import Journal, read_journal
from dprepro.experiment.machine_errors import machine_fault
from dprepro.runtime.errors import DpreproError
from tools.campaign.parsers import CORPUS

LENGTHS = (1, 20, 200)
"""How many allocations fail, one after the other, in turn: short of memory, or out of it."""

_SECONDS = 20
_TELL = 20.0
_WRONG_ERROR = 97
"""The exit code of what raised an error that says nothing of memory."""
_AT_THE_END = 96
"""The exit code where the command had ended, and Python had no memory to end the process."""
_ENTRY = {"kind": "environment", "dprepro": "1"}


def _ending(code: int | str | None = None) -> NoReturn:
    """Stand in for `sys.exit`."""
    _ended[0] = 1
    raise SystemExit(code)


def _edit(folder: Path) -> None:
    cli.main()


def _write(folder: Path) -> None:
    """Do the same; the n-th allocation is counted from where the file begins to be written."""
    real = file.appearing_complete

    def armed(path: Path) -> AbstractContextManager[Path]:
        _testcapi.set_nomemory(*_failing)
        return real(path)

    file.appearing_complete = armed  # type: ignore[attr-defined]
    cli.main()


def _check_edit(folder: Path, done: bool) -> None:
    edits = load_model(folder / "model.json").edits_
    assert len(edits) in ((0,) if done else (0, 1))
    assert {path.name for path in folder.iterdir()} == {"model.json"}


def _append(folder: Path) -> None:
    with Journal(folder / "journal.jsonl") as journal:
        for _ in range(3):
            journal.append(_ENTRY)
            # By the system call alone: it takes no memory.
            os.write(_said, b"1")


def _check_append(folder: Path, done: bool) -> None:
    path = folder / "journal.jsonl"
    raw = path.read_bytes() if path.exists() else b""
    lines = raw.count(b'"kind":"environment"', 0, raw.rfind(b"\n") + 1)
    os.lseek(_said, 0, os.SEEK_SET)
    promised = len(os.read(_said, 100))
    assert lines >= (3 if done else promised)
    if lines:
        assert len(read_journal(path).environments) == lines


def _register(folder: Path) -> None:
    os.environ[register.STATE_VARIABLE] = str(folder)
    register.token_of("one")
    register.token_of("two")


def _check_register(folder: Path, done: bool) -> None:
    path = folder / "private-data.json"
    tokens = json.loads(path.read_text())["tokens"] if path.exists() else {}
    assert len(tokens) == 2 if done else len(tokens) <= 2
    assert {p.name for p in folder.iterdir()} <= {path.name, "private-data.lock"}


COMMANDS: dict[str, tuple[Callable[[Path], None], Callable[[Path, bool], None]]] = {
    "edit": (_edit, _check_edit),
    "write": (_write, _check_edit),
    "append": (_append, _check_append),
    "register": (_register, _check_register),
}
_WHOLE = (_edit, _write)
"""Whole commands; the others are parts of some."""
_ended = bytearray(1)  # to set it takes no memory
"""Whether the command has come to its end, and told its exit code."""
_failing = [1, 2]
"""The first allocation that fails, and the first one after it that does not."""
_said = os.open(tempfile.gettempdir(), os.O_RDWR | os.O_TMPFILE)


class LostError(AssertionError):
    """Something was lost, is half written or left over; or the command hangs or misspeaks."""


def fail(name: str, n: int, length: int) -> str:
    """Run a command whose n-th allocation fails, and `length` in all; return how it ended.

    Raises
    ------
    LostError
        Says what is wrong.
    """
    command, check = COMMANDS[name]
    folder = Path(tempfile.mkdtemp())
    if command in _WHOLE:
        shutil.copy(CORPUS / "model" / "ordinary.json", folder / "model.json")
    os.ftruncate(_said, 0)
    os.lseek(_said, 0, os.SEEK_SET)
    with tempfile.TemporaryFile() as shown:
        child = os.fork()
        if child == 0:
            _run(command, folder, n, length, shown.fileno())
        status = _wait(child)
        shown.seek(0)
        text = shown.read().decode(errors="replace")
    try:
        if status is None:
            raise LostError("it hangs")
        code = os.waitstatus_to_exitcode(status)
        if (
            code not in (0, 1, 2, _AT_THE_END)
            or (command in _WHOLE and code == 1)
            or (code and not text)
        ):
            raise LostError(f"exit code {code}: {text}")
        if "Traceback" in text:
            raise LostError(text)
        check(folder, code in (0, _AT_THE_END))
    except Exception as error:
        where = f"{name}, allocation {n}, {length} failing: "
        raise LostError(
            f"{where}{error if isinstance(error, LostError) else repr(error)}"
        ) from None
    finally:
        shutil.rmtree(folder)
    # Python's own code prints this where it has no memory to call `sys.unraisablehook`.
    told = ", Python told of a destructor" if "Exception ignored" in text else ""
    return f"exit code {code}{told}"


def _run(command: Callable[[Path], None], folder: Path, n: int, length: int, shown: int) -> None:
    """Run the command in this process, and end it."""
    code = 1
    try:
        os.dup2(shown, 1)
        os.dup2(shown, 2)
        model = str(folder / "model.json")
        sys.argv = ["dprepro", "edit", model, "--feature", "x", "--undo"]
        cli.leave_out_what_destructors_lack()  # `append` and `register` are parts of commands
        _failing[:] = n, n + length
        sys.exit = _ending
        if command is not _write:
            _testcapi.set_nomemory(*_failing)
        command(folder)
        code = 0
    except SystemExit as ended:
        code = _exit_code(ended)
    except BaseException as error:
        _testcapi.remove_mem_hooks()
        if not (isinstance(error, DpreproError) or machine_fault(error) or _no_reason(error)):
            code = _WRONG_ERROR
        elif _ended[0]:
            code = _AT_THE_END
        os.write(2, f"raised {type(error).__name__}: {error}"[:500].encode())
    finally:
        _testcapi.remove_mem_hooks()
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


def _no_reason(error: BaseException) -> bool:
    """Whether Python says that it does not know why, which a whole command answers."""
    return type(error) is SystemError and str(error).endswith(cli.WITHOUT_A_REASON)


def _exit_code(ended: SystemExit) -> int:
    """Return the exit code as Python sets it: a text means 1."""
    if isinstance(ended.code, int):
        return ended.code
    return 0 if ended.code is None else 1


def _wait(child: int) -> int | None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def campaign(numbers: range, lost: list[str]) -> dict[str, Counter[str]]:
    """Fail the allocations of these numbers of each command; what is wrong goes into `lost`.

    Returns
    -------
    dict
        By command, how often it ended how.
    """
    _warm_up()
    for name in COMMANDS:
        fail(name, 10**9, 1)  # must succeed
    ends: dict[str, Counter[str]] = {name: Counter() for name in COMMANDS}
    begun = told = time.monotonic()
    for k, (n, name) in enumerate(itertools.product(numbers, COMMANDS)):
        try:
            ends[name][fail(name, n, LENGTHS[n % len(LENGTHS)])] += 1
        except LostError as error:
            ends[name]["WRONG"] += 1
            lost.append(str(error))
        if time.monotonic() > told + _TELL:
            told = time.monotonic()
            left = (len(numbers) * len(COMMANDS) - k) * (told - begun) / (k + 1) / 60
            print(f"allocation {n} of {numbers[-1]}, {left:.0f} min left", file=sys.stderr)
    return ends


def _warm_up() -> None:
    """Load in this process what the commands load: a failed import is not what is tested."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(CORPUS / "model" / "ordinary.json", folder / "model.json")
    with suppress(SystemExit):
        cli.app(["edit", str(folder / "model.json"), "--feature", "x", "--undo"])
    _append(folder)
    before = os.environ.copy()
    _register(folder)
    os.environ.clear()
    os.environ.update(before)
    shutil.rmtree(folder)


def main() -> None:
    """Run the campaign and print how the commands ended."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=2000, help="the last allocation that fails")
    options.add_argument("--step", type=int, default=1)
    given = options.parse_args()
    lost: list[str] = []
    for name, ends in campaign(range(1, given.runs + 1, given.step), lost).items():
        print(f"{name}: {dict(ends.most_common())}")
    for text in lost[:20]:
        print(text, file=sys.stderr)
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
