"""Rows on disk under a key that is nowhere but in memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dprepro.rows import table
from dprepro.rows.folder import Folder, StoreError, StoreWarning
from dprepro.rows.ingest import Source
from dprepro.rows.partition import SortedRows
from dprepro.rows.store import EncryptedStore, Store
from dprepro.rows.table import Table
from dprepro.runtime.errors import DpreproError
from tests.released import published
from tests.rows.killing import MODELS, Fit, answers_in, events, fit_in_memory, model_of, rows, run


@pytest.fixture
def fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fit:
    monkeypatch.setattr(table, "CHUNK_ROWS", 300)
    rows().to_parquet(tmp_path / "table.parquet")
    return Fit("labels", tmp_path / "store", tmp_path / "table.parquet", encrypted=True)


@pytest.mark.parametrize("model", MODELS)
def test_the_bits_are_those_without(fit: Fit, model: str) -> None:
    fit = replace(fit, model=model, n_jobs=2)
    outcome = run(fit)
    assert outcome is not None
    assert repr(outcome["model"]) == repr(fit_in_memory(fit, rows()))
    assert not fit.folder.exists()


@pytest.mark.parametrize("model", ["labels", "plus regression"])
@pytest.mark.parametrize("encrypted", [True, False])
def test_no_column_lies_there_plain_at_any_time(
    fit: Fit, model: str, encrypted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without encryption the same search finds all of them, so it would find them with it."""
    fit = replace(fit, model=model)
    known: dict[str, bytes] = {}
    files: dict[str, set[bytes]] = {}

    kind = EncryptedStore if encrypted else Store
    let_go = kind.let_go

    def look(store: object, chunk: int, columns: dict[str, np.ndarray]) -> None:
        # 40 rows of each column; scores once they are not all alike.
        for name, values in columns.items():
            name = name.removesuffix(".new").partition("-")[0]
            if len(np.unique(values)) > 1:
                known.setdefault(name, values[:40].tobytes())
        let_go(store, chunk, columns)  # type: ignore[arg-type]
        for path in fit.folder.iterdir():
            files.setdefault(path.name, set()).add(path.read_bytes())

    monkeypatch.setattr(kind, "let_go", look)
    given = Table.open(fit.table, store=fit.folder, encrypted=encrypted)
    target = "labels" if model == "labels" else "numbers"
    found = published(model_of(fit).fit(given, target))
    assert repr(found) == repr(fit_in_memory(fit, rows()))
    assert set(known) == {"targets", "cells", "codes", "scores"}
    contents = b"".join(data for versions in files.values() for data in versions)
    assert {name for name, values in known.items() if values in contents} == (
        set() if encrypted else set(known)
    )
    texts = [b"counts", b"question", b"answer", str(fit.table).encode()]
    assert [text in contents for text in texts] == [not encrypted] * 4
    if encrypted:
        assert set(files) >= {"targets", "scores", "codes-0", "cells-1", "store.json"}
        assert files["store.json"] == {next(iter(files["store.json"]))}
        assert b'{"encrypted": true}' in next(iter(files["store.json"]))
        check_looks_random(files)


def check_looks_random(files: dict[str, set[bytes]]) -> None:
    """A byte of the files has 8 bits of entropy, as far as so few bytes can show it."""
    names = [name for name in files if name not in ("store.json", "lock")]
    data = np.frombuffer(b"".join(v for name in names for v in files[name]), np.uint8)
    assert data.size > 50_000
    shares = np.bincount(data, minlength=256) / data.size
    assert -(shares * np.log2(shares)).sum() > 7.9


def test_no_nonce_is_used_twice(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bytes] = []
    keys: list[bytes] = []
    from cryptography.hazmat.primitives.ciphers import aead

    class Noted:
        def __init__(self, key: bytes) -> None:
            keys.append(key)
            self._cipher = aead.AESGCM(key)

        def encrypt(self, nonce: bytes, data: bytes, label: bytes) -> bytes:
            used.append(nonce)
            return self._cipher.encrypt(nonce, data, label)

        def decrypt(self, nonce: bytes, data: bytes, label: bytes) -> bytes:
            return self._cipher.decrypt(nonce, data, label)

    monkeypatch.setattr("dprepro.rows.store._cipher", lambda: Noted(aead.AESGCM.generate_key(256)))
    for _ in range(2):
        used.clear()
        model_of(fit).fit(Table.open(fit.table, store=fit.folder, encrypted=True), "labels")
        assert len(set(used)) == len(used) > 50
    assert len(set(keys)) == 2
    assert {len(key) for key in keys} == {32}


def test_a_fit_that_was_killed_starts_anew_and_says_so(fit: Fit) -> None:
    assert run(replace(fit, kill_at=("after pass", 9))) is None
    assert fit.folder.exists()
    assert answers_in(fit.folder / "answers.jsonl") == []
    given = Table.open(fit.table, store=fit.folder, encrypted=True)
    with pytest.warns(StoreWarning, match="Its key is lost, so no fit can go on from there"):
        found = model_of(fit).fit(given, "labels")
    assert repr(published(found)) == repr(fit_in_memory(fit, rows()))
    assert not fit.folder.exists()
    assert run(replace(fit, kill_at=("after pass", 9))) is None
    with pytest.warns(StoreWarning, match="all rows are read again"):
        model_of(fit).fit(Table.open(fit.table, store=fit.folder), "labels")  # plain
    assert {process for process, _ in events(fit, "read")} == {0, 1}


def test_files_that_were_changed_are_refused(tmp_path: Path) -> None:
    parts = [slice(0, 5), slice(5, 10)]
    cells = {0: np.arange(10) % 3}

    def sort(part: slice) -> SortedRows:
        rows = np.arange(10, dtype=np.int32)[part]
        return SortedRows(rows, {0: cells[0][part]}, [np.bincount(cells[0][part], minlength=3)])

    store = EncryptedStore.open(Folder(tmp_path / "s"), Source({}, parts, sort))
    path = tmp_path / "s" / "targets"
    whole = path.read_bytes()
    record = len(whole) // 2
    swapped = whole[record:] + whole[:record]
    flipped = [bytes([*whole[:k], whole[k] ^ 1, *whole[k + 1 :]]) for k in range(len(whole))]
    for changed in (swapped, whole[:3], b"", *flipped):
        path.write_bytes(changed)
        with pytest.raises(StoreError, match=r"targets in .* is damaged or missing"):
            [columns.targets for columns in store.columns()]
    path.write_bytes(whole)
    assert store.columns()[1].targets.tolist() == [5, 6, 7, 8, 9]
    store.close(finished=False)
    assert not (tmp_path / "s").exists()


def test_a_missing_package_is_named(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "cryptography.hazmat.primitives.ciphers.aead"
    monkeypatch.setitem(sys.modules, name, None)
    given = Table.open(fit.table, store=fit.folder, encrypted=True)
    with pytest.raises(DpreproError, match=r"pip install 'dprepro\[encrypted\]'"):
        model_of(fit).fit(given, "labels")
    assert not fit.folder.exists()
