from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from dprepro.additive.file import save_model
from dprepro.release import folder as module
from dprepro.release.folder import StagingFolder
from dprepro.runtime.errors import DpreproError
from tests.release.models import model, publisher


def page(*_: object) -> str:
    return "a page"


def staged(place: Path) -> StagingFolder:
    return StagingFolder(place, page)


def differences(place: Path) -> list[str]:
    return module.differences(place, page)


def release(place: Path) -> Path:
    with staged(place) as room:
        save_model(model(), room.folder / "model.json")
        room.state(publisher())
        room.publish()
    return place


def test_a_release_appears_as_a_whole(tmp_path: Path) -> None:
    place = tmp_path / "new" / "release"
    with staged(place) as room:
        save_model(model(), room.folder / "model.json")
        assert not place.exists()
        room.state(publisher())
        room.publish()
    names = {"model.json", "statement.json", "statement.md", "statement.html", "model.html"}
    assert {path.name for path in place.iterdir()} == names
    assert [path.name for path in place.parent.iterdir()] == ["release"]


def test_a_release_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), staged(tmp_path / "release"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_two_releases_of_one_process_number_do_not_meet(tmp_path: Path) -> None:
    """As in two containers with the same place: both may have process 7."""
    with staged(tmp_path / "release") as first:
        with staged(tmp_path / "release") as second:
            second.write("note", "second")
        first.write("note", "first")
        assert (first.folder / "note").read_text(encoding="utf-8") == "first"
        first.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    assert [path.name for path in (tmp_path / "release").iterdir()] == ["note"]


def test_others_can_read_a_release_as_the_umask_says(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert release(tmp_path / "release").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_nothing_is_replaced(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "release"
    {"folder": place.mkdir, "file": place.touch, "dangling link": lambda: place.symlink_to("x")}[
        kind
    ]()
    with pytest.raises(DpreproError, match="exists already"), staged(place):
        pytest.fail("no room is given")


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "release"
    with staged(place) as room:
        place.mkdir()
        with pytest.raises(DpreproError, match="exists already"):
            room.publish()
    assert list(tmp_path.iterdir()) == [place]


def test_a_full_disk_is_found_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, "fsync", full)
    with (
        pytest.raises(DpreproError, match="No space left"),
        staged(tmp_path / "release"),
    ):
        pytest.fail("no room is given")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_found_first(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(DpreproError, match="cannot write"),
        staged(tmp_path / "file" / "release"),
    ):
        pytest.fail("no room is given")


@pytest.fixture
def released(tmp_path: Path) -> Path:
    return release(tmp_path / "release")


def test_a_release_agrees_with_itself(released: Path) -> None:
    assert differences(released) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("statement.md", "epsilon 1", "epsilon 0.1", "statement.md: not the text"),
        ("statement.html", "holds", "HOLDS", "statement.html: not the text"),
        ("statement.json", '"scale": ', '"scale": 9', "mechanisms[0].scale says"),
        ("statement.json", "120.0", "99.0", "data.features[0].bounds does not agree"),
        ("statement.json", '"reads": []', '"reads": ["x"]', "not_covered.reads does not agree"),
        ("model.json", '"lower": 0', '"lower": -1', "its SHA-256 differs"),
    ],
)
def test_any_change_is_found(released: Path, file: str, old: str, new: str, said: str) -> None:
    path = released / file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(old, new, 1))
    assert text != path.read_text(encoding="utf-8")
    assert any(said in line for line in differences(released))


def test_a_stated_epsilon_that_the_ledger_does_not_give_is_found(released: Path) -> None:
    path = released / "statement.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["privacy"]["spent"]["of_unit"] = 0.5
    path.write_text(json.dumps(values))
    assert any("privacy.spent.of_unit says 0.5" in line for line in differences(released))


def test_a_folder_without_a_statement_is_refused(released: Path) -> None:
    (released / "statement.json").write_text("{}")
    with pytest.raises(DpreproError, match="not a statement"):
        differences(released)
    (released / "statement.json").unlink()
    with pytest.raises(DpreproError, match="cannot be read"):
        differences(released)


def test_a_statement_that_is_too_large_to_be_one_is_not_read(released: Path) -> None:
    with (released / "statement.md").open("r+b") as file:
        file.truncate(2**30)
    with pytest.raises(DpreproError, match="larger than a file of its kind"):
        differences(released)
