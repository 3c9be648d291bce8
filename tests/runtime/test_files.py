"""Whatever lies at a path, one clear line comes of it, and nothing waits.

A file is there complete, or as it was before.
"""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import stat
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from dprepro.additive.file import load_model
from dprepro.data.card import load_card
from dprepro.experiment.journal import read_journal
from dprepro.release.codebook import read_codebook
from dprepro.release.folder import read_text as read_release
from dprepro.results.audits import read_audits
from dprepro.runtime import files
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import (
    NoFileError,
    appearing_complete,
    builtin,
    discard,
    is_file,
    owner_only,
    read_bytes,
    read_text,
    refusal,
    require_writable,
    sync_file,
    written_as_path,
)
from dprepro.runtime.yaml_files import read_yaml

READERS = [read_yaml, load_model, read_journal, read_codebook, read_release]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**41)  # a hole: it takes up nothing


PLACES = {
    Path.mkdir: "it is a folder",
    _pipe: "it is a pipe or a device",
    _device: "it is a pipe or a device",
    _loop: "Too many levels of symbolic links",
    _huge: "larger than a file of its kind can be",
}


@pytest.mark.parametrize("make", PLACES)
@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_of_its_kind_is_refused_at_once(read, make, tmp_path):
    path = tmp_path / "given"
    make(path)
    with pytest.raises(DpreproError, match=PLACES[make]) as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", ["nowhere", "x" * 5000, "a\0b", "nowhere/in/here"])
def test_a_path_that_leads_nowhere_is_refused(read, name, tmp_path):
    with pytest.raises(DpreproError):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "x" * 5000 + ".yaml", "no/such.yaml"])
def test_no_file_can_have_an_impossible_name(name, tmp_path):
    assert not is_file(tmp_path / name)
    with pytest.raises(DpreproError):
        load_card(name)


def test_a_pipe_beside_the_audits_is_named(tmp_path):
    os.mkfifo(tmp_path / "audit-mine.json")
    with pytest.raises(DpreproError, match=r"audit-mine\.json: cannot be read: it is a pipe"):
        read_audits(tmp_path)


def test_texts_have_no_mark_and_one_kind_of_line_end(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(path, 100) == "a\nb\nc\n"
    assert read_bytes(path, 11) == path.read_bytes()
    with pytest.raises(DpreproError, match="larger"):
        read_bytes(path, 9)
    path.write_bytes(b"a\xff")
    with pytest.raises(DpreproError, match="not a text file in UTF-8, from byte 1 on"):
        read_text(path, 100)
    with pytest.raises(NoFileError):
        read_text(tmp_path / "other", 100)


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with appearing_complete(path) as unfinished:
        unfinished.write_text("a")
        assert not path.exists()
    assert path.read_text(encoding="utf-8") == "a"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for mode in (0o600, 0o640, 0o644):
        path.touch()
        path.chmod(mode)
        with appearing_complete(path) as unfinished:
            assert unfinished.stat().st_mode & 0o777 == mode  # before its first byte
            unfinished.write_text("a")
        assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(("is_private", "mode"), [(True, 0o600), (False, 0o644)])
def test_only_the_owner_reads_what_is_made_of_private_rows(
    tmp_path: Path, is_private: bool, mode: int
) -> None:
    umask = os.umask(0o022)
    try:
        with owner_only(is_private):
            (tmp_path / "new").write_text("a")
            with appearing_complete(tmp_path / "complete") as unfinished:
                unfinished.write_text("a")
        with pytest.raises(OSError, match="full"), owner_only(is_private):
            raise OSError("full")
        (tmp_path / "later").touch()
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(umask)
    assert modes == {"new": mode, "complete": mode, "later": 0o644}


@pytest.mark.parametrize(
    ("number", "what", "advice"),
    [
        (errno.ENOSPC, "there is no room left on the disk", "make room there"),
        (errno.EDQUOT, "there is no room left on the disk", "make room there"),
        (errno.EFBIG, "File too large", "make room there"),
        (errno.EACCES, "Permission denied", "correct that"),
        (errno.EROFS, "Read-only file system", "correct that"),
        (errno.EEXIST, "a file has the name of a folder", "move that file away"),
        (errno.ENOTDIR, "a file has the name of a folder", "move that file away"),
    ],
)
def test_room_is_asked_for_only_if_it_is_lacking(number: int, what: str, advice: str) -> None:
    assert refusal(OSError(number, os.strerror(number))) == (what, advice)


def fail(path: Path, error: BaseException) -> None:
    with appearing_complete(path) as unfinished:
        unfinished.write_text("half")
        raise error


def test_a_file_is_deleted_without_a_path_object(tmp_path: Path) -> None:
    """To make one takes memory, which may have run out; `tools.campaign.memory` tries that."""
    path = tmp_path / "file"
    path.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", None)
        discard(os.fsencode(path))
        discard(os.fsencode(path))  # gone already
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_of_a_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a[b]"
    others = [tmp_path / ".a[b].notes.part", tmp_path / ".b.01234567.part"]
    for left in (tmp_path / ".a[b].01234567.part", *others):
        left.write_text("half")
    with appearing_complete(path) as unfinished:
        unfinished.write_text("a")
    assert set(tmp_path.iterdir()) == {path, *others}


def test_a_file_that_another_process_is_writing_stays(tmp_path: Path) -> None:
    path, of_other = tmp_path / "file", tmp_path / ".file.89abcdef.part"
    with of_other.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with appearing_complete(path) as unfinished:
            unfinished.write_text("a")
        assert of_other.exists()


def test_no_file_is_synced_that_is_open_for_reading_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses it, so nothing could be written there."""
    synced = []

    def sync(number: int) -> None:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
        if not stat.S_ISDIR(os.fstat(number).st_mode):
            synced.append(mode)

    monkeypatch.setattr(os, "fsync", sync)
    with appearing_complete(tmp_path / "file") as unfinished:
        unfinished.write_text("a")
    assert synced == [os.O_RDWR]


def test_a_file_that_may_not_be_written_is_synced_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = os.open, []

    def opened(path: Path, flags: int) -> int:
        asked.append(flags)
        if flags & os.O_RDWR:
            raise PermissionError
        return real(path, flags)

    (tmp_path / "file").write_text("a")
    monkeypatch.setattr(os, "open", opened)
    sync_file(tmp_path / "file")
    assert asked == [os.O_RDWR, os.O_RDONLY]


def test_a_path_is_told_by_its_separators(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [written_as_path(name) for name in ("a/b", "a\\b", "a")] == [True, False, False]
    monkeypatch.setattr(os, "sep", "\\")  # as on Windows
    assert [written_as_path(name) for name in ("a/b", "a\\b", "a")] == [True, True, False]


def write_often(path: Path, seconds: float) -> int:
    """Write a file again and again; return how often."""
    ended, number = time.monotonic() + seconds, 0
    while time.monotonic() < ended:
        with appearing_complete(path) as unfinished:
            unfinished.write_text("a")
        number += 1
    return number


def test_processes_that_write_one_file_do_not_take_each_others_for_left(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        written = list(pool.map(write_often, [tmp_path / "file"] * 2, [0.5] * 2))
    assert min(written) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_threads_that_write_one_file_do_not_either(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        written = list(pool.map(write_often, [tmp_path / "file"] * 3, [0.5] * 3))
    assert min(written) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("other", [None, "theirs"])
def test_a_file_that_was_taken_for_left_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str | None
) -> None:
    path, taken, real = tmp_path / "file", [], files.lock_open_file

    def lock(number: int, wait: bool = False) -> bool:
        if not taken:
            (name,) = tmp_path.iterdir()
            name.unlink()
            taken.append(name)
            if other is not None:
                name.write_text(other)
        return real(number, wait)

    monkeypatch.setattr(files, "lock_open_file", lock)
    with appearing_complete(path) as unfinished:
        assert unfinished.exists()
        with unfinished.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unfinished.write_text("a")
    assert path.read_text(encoding="utf-8") == "a"


def test_a_file_that_cannot_be_locked_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(number: int, wait: bool = False) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "lock_open_file", interrupted)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "file", AssertionError())
    assert not list(tmp_path.iterdir())
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_an_unfinished_file_is_locked(tmp_path: Path) -> None:
    with appearing_complete(tmp_path / "file") as unfinished:
        unfinished.write_text("a")
        with unfinished.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt()])
def test_what_failed_leaves_the_file_of_before(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(type(error)):
        fail(path, error)
    assert path.read_text(encoding="utf-8") == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_the_disk_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"cannot write .*no room"):
        fail(tmp_path / "file", OSError(28, "no room"))
    assert not list(tmp_path.iterdir())


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "new" / "file", []
    real = os.fsync

    def fsync(number: int) -> None:
        place = Path(f"/proc/self/fd/{number}").readlink()
        synced.append((place.name, path.exists()))
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    with appearing_complete(path) as unfinished:
        unfinished.write_text("a")
    assert synced == [
        (tmp_path.name, False), (unfinished.name, False), ("new", True),
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["folder", "file/model.json", "n" * 250, "closed/model.json"])
def test_a_place_where_no_file_can_be_written_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "closed").symlink_to("/proc/self")  # where nobody can make a file
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DpreproError, match="cannot write"):
        require_writable(tmp_path / place)
    assert sorted(tmp_path.iterdir()) == before


def test_a_place_that_can_be_written_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new" / "model.json"
    require_writable(path)
    assert list(path.parent.iterdir()) == []
    path.write_text("kept")
    require_writable(path)
    assert path.read_text(encoding="utf-8") == "kept"


def test_the_checkout_holds_the_cards() -> None:
    assert (builtin("datasets") / "adult.yaml").is_file()


def test_a_folder_inside_the_package_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PACKAGE", tmp_path / "dprepro")
    assert builtin("configs") == tmp_path / "configs"
    (tmp_path / "dprepro" / "_configs").mkdir(parents=True)
    assert builtin("configs") == tmp_path / "dprepro" / "_configs"
