"""The folder of a fit: locked, private to its owner, and gone at the end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dprepro.rows import table
from dprepro.rows.folder import ANSWERS, MANIFEST, Folder, StoreError, StoreWarning
from dprepro.rows.store import EncryptedStore, Store
from tests.released import published
from tests.rows import stores
from tests.rows.killing import Fit, environment, fit_in_memory, rows
from tests.rows.stores import FILES, fitted, left

# --- whose the folder is ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [["notes.txt"], ["targets"], ["scores", "lock"], ["my.new"], ["codes-0", "cells-1"],
     [MANIFEST, "notes.txt"], [f"{MANIFEST}.new", "codes-x"], [".hidden"]],
)  # fmt: skip
def test_a_folder_with_other_files_is_refused_and_not_touched(path: Path, names: list[str]) -> None:
    path.mkdir()
    for name in names:
        (path / name).write_text("mine")
    with pytest.raises(StoreError, match="holds other files: name a folder of its own"):
        Folder(path)
    assert {p.name: p.read_text(encoding="utf-8") for p in path.iterdir()} == dict.fromkeys(
        names, "mine"
    )


def test_a_folder_in_the_place_of_a_file_is_none_of_ours(path: Path) -> None:
    (path / "targets").mkdir(parents=True)
    (path / MANIFEST).touch()
    with pytest.raises(StoreError, match="holds other files"):
        Folder(path)


def test_a_file_is_no_folder(path: Path) -> None:
    path.touch()
    with pytest.raises(StoreError, match="is a file: name a folder"):
        Folder(path)


def test_two_fits_do_not_share_a_folder(path: Path) -> None:
    left(path)
    first = Folder(path)
    with pytest.raises(StoreError, match=r"another fit uses .* now: wait until it is over, or"):
        Folder(path)
    code = (
        "import sys; from pathlib import Path; from dprepro.rows.folder import Folder;"
        "Folder(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert "StoreError: another fit uses" in done.stderr
    first.release()
    Folder(path).release()


def test_files_are_the_owners_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        left(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o700
    modes = {p.name: p.stat().st_mode & 0o777 for p in path.iterdir()}
    assert set(modes) == {*FILES, "lock"}
    assert set(modes.values()) == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_folder_that_is_there_already_is_closed_to_others(path: Path) -> None:
    """Names and lengths of the files in it tell the number of rows."""
    path.mkdir()
    path.chmod(0o755)
    Folder(path).release()
    assert path.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_closed_to_others_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    path.mkdir()
    path.chmod(0o750)
    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(StoreError, match=r"cannot keep the rows .*: Operation not permitted"):
        Folder(path)


# --- a full disk, errors, interruptions -----------------------------------------------------------


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


FULL = "cannot keep the rows of the fit in .*: there is no room left on the disk. Either make room"


def test_a_disk_that_is_full_while_rows_are_read(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((os, "posix_fallocate"), (os, "fsync")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            with pytest.raises(StoreError, match=FULL):
                fitted(fit)
        assert not fit.folder.exists()


@pytest.mark.parametrize("encrypted", [False, True])
def test_what_is_wrong_with_the_table_is_no_error_of_the_disk(fit: Fit, encrypted: bool) -> None:
    """The folder of the rows would be blamed, and advice given that helps nobody."""

    def chunks() -> Iterator[Any]:
        yield stores.PARTS[0]
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    kind: Any = EncryptedStore if encrypted else Store
    folder = Folder(fit.folder)
    with pytest.raises(FileNotFoundError):
        kind.open(folder, stores.source(chunks()))
    assert folder.is_useless
    folder.delete()


def test_a_disk_that_takes_no_more(fit: Fit) -> None:
    """Files of this process must not be larger than so many bytes: writing more is an error."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from pathlib import Path\n"
        "from dprepro.rows.folder import StoreError\n"
        "from tests.rows.killing import Fit\n"
        "from tests.rows.stores import fitted\n"
        "fit = Fit('labels', Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "for limit in (500, 2500, 3900):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1))\n"
        "    try: fitted(fit)\n"
        "    except StoreError as error: print(error, fit.folder.exists())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, fit.folder, fit.table],
        capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    problem = "File too large. Either correct that, or name another folder for them False"
    assert (
        done.stdout.splitlines()
        == [f"cannot keep the rows of the fit in {fit.folder}: {problem}"] * 3
    )


def test_a_disk_that_is_full_later_lets_the_fit_go_on(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, calls = Folder.reserve, []

    def sometimes(folder: Folder, name: str, size: int) -> None:
        calls.append(name)
        if name == "codes-1.new":
            monkeypatch.setattr(os, "posix_fallocate", full)
        reserve(folder, name, size)

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", os.posix_fallocate)
        patch.setattr(Folder, "reserve", sometimes)
        with pytest.raises(StoreError, match=FULL):
            fitted(fit)
    monkeypatch.undo()
    monkeypatch.setattr(table, "CHUNK_ROWS", 300)
    assert calls == ["scores", "marks", "codes-0.new", "codes-1.new"]
    assert sorted(p.name for p in fit.folder.iterdir()) == sorted(
        [MANIFEST, ANSWERS, "lock", "targets", "scores", "marks", "codes-0", "cells-1", "cells-2"]
    )
    assert repr(published(fitted(fit))) == repr(fit_in_memory(fit, rows()))
    assert not fit.folder.exists()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def fail_in(moment: str, error: type[BaseException]) -> tuple[Any, str, Callable[..., Any]]:
    import dprepro.methods.dp_ebm.estimator
    from dprepro.methods.dp_ebm.rounds import EBMPartition

    owner, name = {
        "reading": (table._Chunk, "take"),
        "opening": (Store, "answers"),
        "binning": (dprepro.methods.dp_ebm.estimator, "merge_cells"),
        "boosting": (EBMPartition, "_move"),
    }[moment]

    def fail(*_: Any, **__: Any) -> None:
        raise error("stop")

    return owner, name, fail


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("moment", ["reading", "opening", "binning", "boosting"])
def test_after_an_error_a_temporary_folder_is_gone_and_the_users_stays(
    fit: Fit, temporary: Path, moment: str, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(*fail_in(moment, error))
        for place in ({"encrypted": False}, {"encrypted": True}, {"store": fit.folder}):
            if place.get("encrypted") and moment == "opening":
                continue
            with pytest.raises(error, match="stop"):
                fitted(fit, **place)
    assert list(temporary.iterdir()) == []
    assert fit.folder.exists() == (moment != "reading")
    assert repr(published(fitted(fit))) == repr(fit_in_memory(fit, rows()))
    assert not fit.folder.exists()


def test_a_temporary_folder_is_gone_after_a_fit(fit: Fit, temporary: Path) -> None:
    seen = []
    delete = Folder.delete

    def noted(folder: Folder) -> None:
        seen.append((folder.path.parent, folder.path.stat().st_mode & 0o777))
        delete(folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "delete", noted)
        fitted(fit, encrypted=False)
    assert seen == [(temporary, 0o700)]
    assert list(temporary.iterdir()) == []


def test_a_model_is_not_lost_by_what_cannot_be_deleted(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "targets":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.warns(StoreWarning, match="cannot delete .*, which holds private rows"):
            model = fitted(fit)
    assert repr(published(model)) == repr(fit_in_memory(fit, rows()))
    assert repr(published(fitted(fit))) == repr(published(model))  # what is left does no harm
    assert not fit.folder.exists()
