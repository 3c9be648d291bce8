"""Memory that runs out: the n-th allocation of a small command fails, and those after it.

    python -m tests.campaign.memory --runs 2000

Each command runs in a fork of a process that has loaded all modules, so that the failure meets the
command. CPython's own hook fails the allocations. What is held against each end: files are as
before or as they should be, nothing hangs, no traceback. How often a hidden temporary file stays
is counted: to delete it takes memory, too.
"""

from __future__ import annotations

import _testcapi  # type: ignore[import-not-found]
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dprepro import cli
from dprepro.additive.file import load_model
from dprepro.data import register
from dprepro.experiment.journal import Journal, read_journal
from tests.campaign.parsers import CORPUS

LENGTHS = (1, 20, 200)
"""How many allocations fail, one after the other, in turn: short of memory, or out of it."""

_SECONDS = 20
_ENTRY = {"kind": "environment", "dprepro": "1"}


def _edit(folder: Path) -> None:
    sys.argv = [
        "dprepro", "edit", str(folder / "model.json"), "--feature", "x", "--undo",
    ]  # fmt: skip
    cli.main()


def _check_edit(folder: Path, done: bool) -> None:
    edits = load_model(folder / "model.json").edits_
    assert len(edits) == (0 if done else len(edits))
    assert len(edits) in (0, 1)
    assert {path.name for path in _shown(folder)} <= {"model.json"}


def _shown(folder: Path) -> list[Path]:
    """Return the files but for hidden ones: to delete those takes memory, too; they are counted."""
    return [path for path in folder.iterdir() if path.name[0] != "."]


def _append(folder: Path) -> None:
    with Journal(folder / "journal.jsonl") as journal:
        for _ in range(3):
            journal.append(_ENTRY)
            # By the system call alone: it takes no memory.
            os.write(_said, b"1")


def _check_append(folder: Path, done: bool) -> None:
    path = folder / "journal.jsonl"
    lines = path.read_bytes().count(b"\n") if path.exists() else 0
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
    assert {p.name for p in _shown(folder)} <= {path.name, "private-data.lock"}


COMMANDS: dict[str, tuple[Callable[[Path], None], Callable[[Path, bool], None]]] = {
    "edit": (_edit, _check_edit),
    "append": (_append, _check_append),
    "register": (_register, _check_register),
}
_said = os.open(tempfile.mkdtemp(), os.O_RDWR | os.O_TMPFILE)


def fail(name: str, n: int, length: int) -> str:
    """Run a command whose n-th allocation fails, and `length` in all; return how it ended.

    Raises
    ------
    AssertionError
        If something was lost, is half written or left over, or if it hangs or shows a traceback.
    """
    command, check = COMMANDS[name]
    folder = Path(tempfile.mkdtemp())
    if name == "edit":
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
    where = f"{name}, allocation {n}, {length} failing: "
    assert status is not None, f"{where}it hangs"
    # "Exception ignored": Python's own words about a destructor of a library.
    assert "Traceback" not in text or "Exception ignored in" in text, f"{where}{text}"
    code = os.waitstatus_to_exitcode(status)
    try:
        check(folder, code == 0)
    except Exception as error:
        raise AssertionError(f"{where}exit code {code}: {error!r}\n{text}") from error
    left = ", a hidden file left" if len(_shown(folder)) < len(list(folder.iterdir())) else ""
    shutil.rmtree(folder)
    return f"exit code {code}" + (", said why" if text and code else "") + left


def _run(command: Callable[[Path], None], folder: Path, n: int, length: int, shown: int) -> None:
    """Run the command in this process, and end it."""
    code = 1
    try:
        os.dup2(shown, 1)
        os.dup2(shown, 2)
        _testcapi.set_nomemory(n, n + length)
        command(folder)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException as error:
        _testcapi.remove_mem_hooks()
        os.write(2, f"raised {type(error).__name__}".encode())
    finally:
        _testcapi.remove_mem_hooks()
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


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


def campaign(first: int, last: int, step: int) -> dict[str, Counter[str]]:
    """Fail allocations `first`, `first + step`, ... up to `last` of each command.

    Returns
    -------
    dict
        By command, how often it ended how.
    """
    for name in COMMANDS:
        fail(name, 10**9, 1)  # loads what is loaded late, in the child; and it must succeed
    _warm_up()
    return {
        name: Counter(
            fail(name, n, LENGTHS[k % len(LENGTHS)])
            for k, n in enumerate(range(first, last + 1, step))
        )
        for name in COMMANDS
    }


def _warm_up() -> None:
    """Load in this process what the commands load: a failed import is not what is tested."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(CORPUS / "model" / "ordinary.json", folder / "model.json")
    with suppress(SystemExit):
        cli.app(["edit", str(folder / "model.json"), "--feature", "x", "--undo"])
    _append(folder)
    before = os.environ.get(register.STATE_VARIABLE)
    _register(folder)
    if before is not None:
        os.environ[register.STATE_VARIABLE] = before
    shutil.rmtree(folder)


def main() -> None:
    """Run the campaign and print how the commands ended."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=2000, help="the last allocation that fails")
    options.add_argument("--step", type=int, default=1)
    given = options.parse_args()
    for name, ends in campaign(1, given.runs, given.step).items():
        print(f"{name}: {dict(ends.most_common())}")


if __name__ == "__main__":
    main()
