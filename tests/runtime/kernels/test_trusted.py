"""Nothing is unpickled that another user can have written."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from dprepro.runtime import kernels as bundle
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.kernels import why_not


class _RunsCode:
    """Writes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return (Path.touch, (self._path,))


def loaded() -> list[tuple[str, Any]]:
    return bundle.load(bundle.made(["exact"])["exact"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of kernels with a bundle, in which temporary folders are made, too."""
    kernels = tmp_path / "cache" / "kernels"
    kernels.mkdir(parents=True, mode=0o700)
    kernels.parent.chmod(0o700)
    harm = pickle.dumps(_RunsCode(tmp_path / "harm"))
    path = kernels / f"{bundle.digest()}-exact.bin"
    path.write_bytes(bundle.sealed(pickle.dumps([("kernel", harm)])))
    path.chmod(0o600)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv(bundle.FOLDER_VARIABLE, str(kernels))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(bundle, "_compiled", lambda _: pickle.dumps([]))
    return kernels


def test_what_this_user_alone_can_have_written_is_read(folder: Path, tmp_path: Path) -> None:
    assert why_not(folder) == ""
    loaded()
    assert (tmp_path / "harm").exists()  # so the tests below would see it


@pytest.mark.parametrize("mode", [0o622, 0o602])
def test_a_file_that_others_may_write_is_made_anew(
    folder: Path, tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dprepro.runtime.kernels._is_own_group", lambda _: False)
    (path,) = folder.glob("*.bin")
    path.chmod(mode)
    assert loaded() == []
    assert not (tmp_path / "harm").exists()
    assert path.stat().st_mode & 0o777 == 0o600
    assert bundle._read(path) == pickle.dumps([])


@pytest.mark.parametrize("place", ["kernels", "cache"])
def test_a_folder_that_others_may_write_is_not_used(
    folder: Path, tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = folder if place == "kernels" else folder.parent
    where.chmod(0o707)
    assert loaded() == []
    assert not (tmp_path / "harm").exists()
    said = capsys.readouterr().err
    assert f"is not safe: others may write to {where} (chmod go-w)" in said
    assert said.count("\n") == 1
    assert os.environ[bundle.FOLDER_VARIABLE] != str(folder)
    assert loaded() == []
    assert capsys.readouterr().err == ""  # said once


def test_what_belongs_to_another_user_is_not_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    if mine == 0:  # root's files are trusted by everybody
        os.chown(folder, 12345, -1)
        os.chown(tmp_path / "tmp", 12345, -1)
    assert why_not(folder).endswith("belongs to another user")
    with pytest.raises(DpreproError, match="no folder is safe for the compiled kernels"):
        loaded()
    assert not (tmp_path / "harm").exists()


def test_links_are_followed_and_their_folders_asked(folder: Path, tmp_path: Path) -> None:
    opened = tmp_path / "open"
    opened.mkdir()
    opened.chmod(0o707)
    (opened / "link").symlink_to(folder)
    assert "open" in why_not(opened / "link")
    inside = tmp_path / "closed"
    (opened / "kernels").mkdir()
    inside.symlink_to(opened / "kernels")
    assert "open" in why_not(inside)


def test_folders_like_tmp_are_trusted_for_what_belongs_to_this_user(tmp_path: Path) -> None:
    everybody = tmp_path / "everybody"
    everybody.mkdir()
    everybody.chmod(0o1777)
    (everybody / "mine").write_bytes(b"")
    (everybody / "mine").chmod(0o600)
    assert why_not(everybody / "mine") == ""
    assert why_not(everybody / "not there") == ""
    everybody.chmod(0o777)
    assert why_not(everybody / "mine").startswith("others may write to")
