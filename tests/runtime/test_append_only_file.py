from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest

from dprepro.runtime import append_only_file
from dprepro.runtime.append_only_file import AppendedFile, JournalWarning
from dprepro.runtime.errors import DpreproError


def test_a_file_is_locked_cut_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x"
    file = AppendedFile(path)
    file.append(b"one\n")
    before = open_files()
    with pytest.raises(BlockingIOError):
        AppendedFile(path)
    assert open_files() == before
    file.cut(2)
    assert path.read_bytes() == file.content == b"on"
    file.replace(b"other")
    with pytest.raises(BlockingIOError):
        AppendedFile(path)
    assert file.keep(b"kept").read_bytes() == b"kept"
    file.close()
    assert path.read_bytes() == b"other"
    fresh = AppendedFile(path, fresh=True)
    fresh.append(b"new")
    fresh.close()
    assert path.read_bytes() == b"new"
    assert (tmp_path / "new" / "x.bak1").read_bytes() == b"other"


def test_where_no_file_can_be_locked_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an internal error, and an empty journal stayed."""
    for module in ("fcntl", "msvcrt"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DpreproError, match=r"neither a module fcntl nor msvcrt.*Run it.*table"):
        AppendedFile(tmp_path / "new" / "x")
    assert not list(tmp_path.iterdir())
    (tmp_path / "x").write_bytes(b"before")
    assert not append_only_file.is_locked(tmp_path / "x")


def test_what_was_moved_aside_for_nothing_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before\n")
    fresh = AppendedFile(path, fresh=True)
    assert (path.read_bytes(), (tmp_path / "x.bak").read_bytes()) == (b"", b"before\n")
    fresh.close()
    assert [place.name for place in tmp_path.iterdir()] == ["x"]
    assert path.read_bytes() == b"before\n"
    fresh = AppendedFile(path, fresh=True)
    (tmp_path / "x.bak").unlink()  # somebody wants neither
    fresh.close()
    assert not list(tmp_path.iterdir())


def test_what_was_moved_aside_is_put_back_if_no_new_file_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before\n")
    opened, calls = append_only_file._opened, []

    def once(place: Path) -> int:
        calls.append(place)
        if len(calls) > 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(place)

    monkeypatch.setattr(append_only_file, "_opened", once)
    before = open_files()
    with pytest.raises(OSError, match="Too many open files"):
        AppendedFile(path, fresh=True)
    assert [place.name for place in tmp_path.iterdir()] == ["x"]
    assert path.read_bytes() == b"before\n"
    assert open_files() == before


def test_a_file_that_stayed_empty_takes_no_other_away(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    for fresh in (False, True):
        empty = AppendedFile(folder / "x", fresh)
        shutil.rmtree(folder)
        other = AppendedFile(folder / "x")
        other.append(b"of another run\n")
        other.close()
        empty.close()
        assert (folder / "x").read_bytes() == b"of another run\n"


def test_what_is_there_stays_unless_it_is_to_be_fresh(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before\n")
    file = AppendedFile(path)
    file.append(b"after\n")
    file.close()
    assert path.read_bytes() == file.content == b"before\nafter\n"


def test_what_is_cut_or_replaced_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, real = [], os.fsync

    def fsync(number: int) -> None:
        synced.append(Path(f"/proc/self/fd/{number}").readlink().name)
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    before, file = open_files(), AppendedFile(tmp_path / "x")
    assert synced == [tmp_path.name]
    file.append(b"one\n")
    file.cut(1)
    assert synced == [tmp_path.name, "x", "x"]
    synced.clear()
    file.replace(b"other")
    assert synced == [".x.new", tmp_path.name]
    kept = file.keep(b"kept")
    assert synced[2:] == [kept.name, tmp_path.name]
    assert kept.stat().st_mode & 0o777 == 0o600
    file.close()
    assert open_files() == before
    AppendedFile(tmp_path / "x").close()
    assert len(synced) == 4  # its name has been on the disk


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_that_is_closed_twice_closes_nothing_else(tmp_path: Path) -> None:
    before = open_files()
    file = AppendedFile(tmp_path / "x")
    file.append(b"one\n")
    fresh = AppendedFile(tmp_path / "x.link", fresh=True)
    (tmp_path / "old").write_bytes(b"old\n")
    moved = AppendedFile(tmp_path / "old", fresh=True)
    for opened in (file, fresh, moved, file, fresh, moved):
        opened.close()
    assert open_files() == before


@pytest.mark.parametrize("other", [None, b"theirs\n"])
def test_a_file_is_opened_anew_if_another_process_takes_its_name_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: bytes | None
) -> None:
    path, taken, real = tmp_path / "x", [], append_only_file.lock
    path.write_bytes(b"ours\n")

    def lock(number: int) -> None:
        if not taken:
            taken.append(number)
            path.unlink()
            if other is not None:
                path.write_bytes(other)
        real(number)

    before = open_files()
    monkeypatch.setattr(append_only_file, "lock", lock)
    file = AppendedFile(path)
    file.append(b"more\n")
    file.close()
    assert path.read_bytes() == (other or b"") + b"more\n"
    assert open_files() == before


def test_a_file_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int, data: bytes) -> None:
        raise OSError(28, "no room")

    file = AppendedFile(tmp_path / "x")
    file.append(b"one\n")
    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(append_only_file, "write_all", refuse)
        with pytest.raises(OSError, match="no room"):
            file.replace(b"other")
    assert open_files() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    file.append(b"two\n")
    assert (tmp_path / "x").read_bytes() == b"one\ntwo\n"
    file.close()


def test_a_line_that_is_half_written_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(number: int, data: bytes) -> None:
        os.write(number, data[:2])
        raise OSError(28, "no room")

    file = AppendedFile(tmp_path / "x")
    file.append(b"one\n")
    with monkeypatch.context() as patch:
        patch.setattr(append_only_file, "write_all", half)
        with pytest.raises(OSError, match="no room"):
            file.append(b"two\n")
    assert (tmp_path / "x").read_bytes() == file.content == b"one\n"
    file.close()


def test_a_file_whose_folder_went_and_came_back_with_another_is_put_back(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    before, file = open_files(), AppendedFile(folder / "x")
    file.append(b"one\n")
    folder.rename(tmp_path / "away")
    folder.mkdir()
    (folder / "x").write_bytes(b"theirs\n")
    with pytest.warns(JournalWarning, match=r"somebody replaced it .* stood there is in .*x.bak"):
        file.append(b"two\n")
    assert (folder / "x").read_bytes() == b"one\ntwo\n"
    assert (folder / "x.bak").read_bytes() == b"theirs\n"
    file.close()
    assert open_files() == before


def test_a_file_that_another_process_has_taken_is_kept_aside(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    file = AppendedFile(folder / "x")
    file.append(b"one\n")
    folder.rename(tmp_path / "away")
    other = AppendedFile(folder / "x")
    before = open_files()
    with pytest.raises(DpreproError, match=r"another run took its place .* is in .*x.bak"):
        file.append(b"two\n")
    assert open_files() == before
    assert (folder / "x.bak").read_bytes() == b"one\ntwo\n"
    for opened in (file, other):
        opened.close()
