from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from dprepro.data.files import data_folder, file_candidates, find_file
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import cache_dir


def test_the_cache_is_the_variables_or_the_users(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_dir() == places
    monkeypatch.delenv("DPREPRO_CACHE")
    assert cache_dir() == platformdirs.user_cache_path("dprepro")


def test_the_data_folder_is_the_argument_then_the_variable_then_in_the_cache(
    tmp_path: Path, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_folder() == places / "files"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("DPREPRO_DATA", str(other))
    assert data_folder() == other
    assert data_folder(tmp_path) == tmp_path


def test_a_data_folder_that_is_not_there_is_named_with_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DpreproError, match=r"--data-dir is .*none.* not a folder"):
        data_folder(tmp_path / "none")
    monkeypatch.setenv("DPREPRO_DATA", str(tmp_path / "none"))
    with pytest.raises(DpreproError, match=r"\$DPREPRO_DATA is"):
        data_folder()


def test_a_file_is_looked_for_beside_the_card_first(tmp_path: Path, places: Path) -> None:
    card, data = tmp_path / "card", places / "files"
    assert file_candidates("a/b.csv", card, None) == [card / "a/b.csv", data / "a/b.csv"]
    assert file_candidates("a/b.csv", None, None) == [data / "a/b.csv"]
    assert file_candidates("/a/b.csv", card, None) == [Path("/a/b.csv")]


def test_find_file_takes_the_first_that_exists(tmp_path: Path) -> None:
    card, data = tmp_path / "card", tmp_path / "data"
    for folder in (card, data):
        folder.mkdir()
    assert find_file("b.csv", card, data) is None
    (data / "b.csv").touch()
    assert find_file("b.csv", card, data) == data / "b.csv"
    (card / "b.csv").touch()
    assert find_file("b.csv", card, data) == card / "b.csv"
