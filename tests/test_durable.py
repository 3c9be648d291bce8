"""A file is there complete, or as it was before."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from dprepro.durable import appearing_complete, discard
from dprepro.errors import DpreproError


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with appearing_complete(path) as unfinished:
        unfinished.write_text("a")
        assert not path.exists()
    assert path.read_text() == "a"
    assert list(path.parent.iterdir()) == [path]


def fail(path: Path, error: BaseException) -> None:
    with appearing_complete(path) as unfinished:
        unfinished.write_text("half")
        raise error


def test_a_file_is_deleted_without_a_path_object(tmp_path: Path) -> None:
    """To make one takes memory, which may have run out; `tests.campaign.memory` tries that."""
    path = tmp_path / "file"
    path.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", None)
        discard(os.fsencode(path))
        discard(os.fsencode(path))  # gone already
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_of_a_file_is_removed(tmp_path: Path) -> None:
    path, others = tmp_path / "a[b]", [tmp_path / ".other.1", tmp_path / ".a[b].old"]
    for left in (tmp_path / ".a[b].1", *others):
        left.write_text("half")
    with appearing_complete(path) as unfinished:
        unfinished.write_text("a")
    assert set(tmp_path.iterdir()) == {path, *others}


def test_a_file_that_another_process_is_writing_stays(tmp_path: Path) -> None:
    path, of_other = tmp_path / "file", tmp_path / ".file.1"
    with of_other.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with appearing_complete(path) as unfinished:
            unfinished.write_text("a")
        assert of_other.exists()


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
    assert path.read_text() == "before"
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
        (tmp_path.name, False), (f".file.{os.getpid()}", False), ("new", True),
    ]  # fmt: skip
