"""Runs and releases where there is what Windows has, and where it refuses what Windows refuses."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from dprepro.runtime import files, locks
from dprepro.runtime.append_only_file import AppendedFile, is_locked

ROOT = Path(__file__).parents[2]


def as_on_windows(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python where `as_windows/sitecustomize.py` has taken away what Windows lacks."""
    path = os.pathsep.join([str(Path(__file__).parent / "as_windows"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, **more, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@pytest.fixture
def only_msvcrt(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Take `fcntl` away; return a list of places and numbers of bytes that are asked for."""
    asked = []

    def locking(number: int, mode: int, size: int) -> None:
        asked.append((os.lseek(number, 0, os.SEEK_CUR), size))
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    fake = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    return asked


def test_one_byte_is_locked_that_no_file_reaches(
    tmp_path: Path, only_msvcrt: list[tuple[int, int]]
) -> None:
    path = tmp_path / "x"
    with path.open("w+b") as file, path.open("r+b") as other:
        file.write(b"abc")
        file.flush()
        locks.lock(file.fileno())
        with pytest.raises(BlockingIOError):
            locks.lock(other.fileno())
        assert file.tell() == 3
        assert other.tell() == 0
    assert only_msvcrt == 2 * [(locks.UNREACHED, 1)]
    assert locks.UNREACHED + 1 < 2**31


def test_who_waits_for_a_lock_gets_it(
    tmp_path: Path, only_msvcrt: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "x").open("w+b") as other:
        file = (tmp_path / "x").open("r+b")
        locks.lock(file.fileno())
        monkeypatch.setattr(locks.time, "sleep", lambda seconds: file.close())
        locks.lock(other.fileno(), wait=True)
        assert is_locked(tmp_path / "x")


def test_a_process_that_locks_the_file_as_it_is_replaced_has_it(
    tmp_path: Path, only_msvcrt: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one wrote all that it had, and writes no more; no line is in two files."""
    path, real, others = tmp_path / "x", files.give_name, []

    def give_name(new: Path, name: Path) -> None:
        real(new, name)
        others.append(AppendedFile(path))

    file = AppendedFile(path)
    file.append(b"one\n")
    monkeypatch.setattr("dprepro.runtime.append_only_file.give_name", give_name)
    with pytest.raises(files.DpreproError, match="another run took its place"):
        file.replace(b"other\n")
    with pytest.raises(BlockingIOError):
        file.append(b"two\n")
    file.cut(0)
    file.close()
    others[0].append(b"three\n")
    others[0].close()
    assert path.read_bytes() == b"other\nthree\n"


@pytest.mark.parametrize("times", [2, 99])
def test_who_reads_a_file_for_a_moment_is_waited_for(
    tmp_path: Path, only_msvcrt: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    waited, real = [], Path.replace

    def replace(path: Path, name: Path) -> Path:
        if len(waited) < times:
            raise PermissionError(13, "Permission denied")
        return real(path, name)

    (tmp_path / "x").write_bytes(b"before")
    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(files.time, "sleep", waited.append)
    if times == 2:
        with files.replacing(tmp_path / "x") as part:
            part.write_bytes(b"after")
    else:
        with pytest.raises(PermissionError), files.replacing(tmp_path / "x") as part:
            part.write_bytes(b"after")
        assert 1 < sum(waited) < 3
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == (b"after" if times == 2 else b"before")


APPENDED = """
import os, subprocess, sys
from pathlib import Path
from dprepro.rows.folder import Folder
from dprepro.runtime.append_only_file import AppendedFile

place = Path(sys.argv[1]) / "x"
if len(sys.argv) == 3:
    AppendedFile(place)
file = AppendedFile(place)
file.append(b"one\\n")
file.replace(b"other\\n")
file.append(b"two\\n")
done = subprocess.run([sys.executable, __file__, place.parent, "more"], capture_output=True)
assert b"BlockingIOError" in done.stderr, done.stderr
for refused in (place.unlink, lambda: place.rename("y"), lambda: os.replace(__file__, place)):
    try:
        refused()
    except PermissionError:
        continue
    raise AssertionError("done as on Linux")
file.close()
assert place.read_bytes() == b"other\\ntwo\\n"
for ending in (b"", b"new\\n"):
    fresh = AppendedFile(place, fresh=True)
    if ending:
        fresh.append(ending)
    fresh.close()
    assert place.read_bytes() == (ending or b"other\\ntwo\\n")
assert sorted(path.name for path in place.parent.iterdir()) == ["program.py", "x", "x.bak"]
folder = Folder(place.parent / "rows")
folder.open_file("codes-0", "wb").close()
folder.delete()
assert not folder.path.exists()
"""


def test_files_are_appended_replaced_and_deleted(tmp_path: Path) -> None:
    """Line ends were CR LF, and the lock of a folder of rows could not be deleted."""
    (tmp_path / "program.py").write_text(APPENDED)
    done = as_on_windows("-W", "error::UserWarning", tmp_path / "program.py", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_run_ends_goes_on_and_begins_anew(tmp_path: Path) -> None:
    command = ("-m", "dprepro", "run", "quickstart", "--methods", "logistic,ebm", "--results")
    for more, said in (
        (("--splits", 1), "2 task(s) run"),
        (("--splits", 2), "2 task(s) run"),
        (("--splits", 1, "--fresh"), "2 task(s) run"),
    ):
        done = as_on_windows(*command, tmp_path, "--jobs", 2, *more)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "quickstart.jsonl",
        "quickstart.jsonl.bak",
    ]
    verified = as_on_windows("-m", "dprepro", "results", "verify", "--results", tmp_path)
    assert verified.returncode == 0, verified.stdout
    assert b"\r" not in (tmp_path / "quickstart.jsonl").read_bytes()


def test_releases_and_fits_from_the_disk_keep_their_promises(tmp_path: Path) -> None:
    """The tests of the book, of releases and of rows on the disk pass there.

    Private rows stayed on the disk: no file is deleted that is mapped into memory.
    """
    tests = (
        "tests/release/test_budget_book.py::test_two_releases_at_once_cannot_both_pass",
        "tests/release/test_folder.py",
        "tests/rows/test_folder.py::test_a_temporary_folder_is_gone_after_a_fit",
        "tests/rows/test_restart.py",
    )
    # Links cannot be made there.
    done = as_on_windows(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", tmp_path / "t", *tests,
        "-k", "not dangling and not never_killed",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
