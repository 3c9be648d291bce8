from __future__ import annotations

import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dprepro.data.register import (
    keyed_digest,
    register_id,
    register_path,
    state_folder,
    token_of,
    write_own,
)
from dprepro.runtime.errors import DpreproError


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for the register, which is not there yet."""
    folder = tmp_path / "of" / "mine"
    monkeypatch.setenv("DPREPRO_STATE", str(folder))
    return folder


def test_the_same_content_has_the_same_token_and_other_content_another(state: Path) -> None:
    first = token_of("rows")
    assert len(first) == 16
    assert token_of("rows") == first
    assert token_of("other rows") != first


def test_a_token_says_nothing_and_another_register_gives_another(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = token_of("rows")
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "elsewhere"))
    assert token_of("rows") != first


def test_the_register_holds_no_digest_that_can_be_checked_without_its_key(state: Path) -> None:
    token = token_of("rows")
    values = json.loads(register_path().read_text(encoding="utf-8"))
    assert values["tokens"] == {keyed_digest(bytes.fromhex(values["key"]), "rows"): token}
    assert hashlib.sha256(b"rows").hexdigest() not in register_path().read_text(encoding="utf-8")
    assert "never release it" in values["note"]


def test_only_its_owner_can_read_it(state: Path) -> None:
    before = os.umask(0)
    try:
        token_of("rows")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (state, register_path())]
        assert modes == [0o700, 0o600]
        register_path().chmod(0o644)
        token_of("more rows")
        assert stat.S_IMODE(register_path().stat().st_mode) == 0o600
    finally:
        os.umask(before)
    assert {path.name for path in state.iterdir()} <= {"private-data.json", "private-data.lock"}


def test_a_register_keeps_its_id_and_a_new_one_has_another(state: Path) -> None:
    first = register_id()
    token_of("rows")
    assert register_id() == first
    assert first not in register_path().read_text(encoding="utf-8")
    register_path().unlink()
    assert register_id() != first


def test_a_relative_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", "state")
    with pytest.raises(DpreproError, match=r"DPREPRO_STATE is 'state', a relative path.*absolute"):
        token_of("rows")
    monkeypatch.setenv("DPREPRO_STATE", "~/state")
    assert state_folder() == Path.home() / "state"


def test_many_at_once_lose_nothing(state: Path) -> None:
    names = [f"table {k % 7}" for k in range(40)]
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(token_of, names))
    assert {name: token_of(name) for name in names} == dict(zip(names, tokens, strict=True))
    assert len(json.loads(register_path().read_text(encoding="utf-8"))["tokens"]) == 7


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"version": 2}', '{"version": 1, "key": "zz", "tokens": {}}',
     '{"version": 1, "key": "' + "0" * 64 + '", "tokens": {"a": 1}}',
     '{"version": 1, "key": "' + "0" * 64 + '", "tokens": []}'],
)  # fmt: skip
def test_a_damaged_register_is_told_and_left_alone(state: Path, text: str) -> None:
    state.mkdir(parents=True)
    register_path().write_text(text)
    with pytest.raises(DpreproError, match=r"private-data.json, is damaged.* move it away"):
        token_of("rows")
    assert register_path().read_text(encoding="utf-8") == text


def test_a_folder_that_cannot_be_used_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "file"))
    with pytest.raises(DpreproError, match=r"cannot use the register .* set DPREPRO_STATE"):
        token_of("rows")


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notes"
    write_own(path, "first")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_own(path, "second")
    assert [(entry.name, entry.read_text(encoding="utf-8")) for entry in tmp_path.iterdir()] == [
        ("notes", "first")
    ]
