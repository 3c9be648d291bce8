"""Whatever lies at a path, one clear line comes of it, and nothing waits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dprepro.additive.file import load_model
from dprepro.data.card import load_card
from dprepro.experiment.journal import read_journal
from dprepro.release.codebook import read_codebook
from dprepro.release.folder import read_text as read_release
from dprepro.results.audits import read_audits
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import NoFileError, is_file, read_bytes, read_text
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
