"""Rows in files: whole when a fit goes on, or refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprepro.rows import store
from dprepro.rows.folder import MANIFEST, Folder, StoreError
from dprepro.rows.ingest import StoredColumns
from dprepro.rows.partition import MOVING
from dprepro.rows.store import EncryptedStore, Store
from dprepro.runtime.threads import Threads
from tests.rows.stores import CELLS, ENDS, FILES, PARTS, SIZES, TARGETS, left, source


@pytest.mark.parametrize("kind", [Store, EncryptedStore])
def test_columns_come_back_in_chunks(path: Path, kind: Any) -> None:
    made = kind.open(Folder(path), source(iter(PARTS)))
    assert made.filled.ends == ENDS
    for k, size in enumerate(SIZES):
        np.testing.assert_array_equal(
            made.filled.counts[k], np.bincount(CELLS[k], minlength=size), strict=True
        )
    for columns, part in zip(made.columns(), PARTS, strict=True):
        np.testing.assert_array_equal(columns.targets, TARGETS[part], strict=True)
        assert (columns.cells[0].dtype, columns.cells[1].dtype) == (np.uint8, np.uint16)
        for k in (0, 1):
            np.testing.assert_array_equal(columns.cells[k], CELLS[k][part])
        assert (list(columns.cells), list(columns.codes)) == ([0, 1], [])
        columns.codes[1] = np.full(columns.targets.size, 200, np.uint8)
        columns.scores[:] = -7
        columns.followed = MOVING
        columns.let_go()
        assert columns.followed == MOVING
        columns.followed = 12
    made.finish(1)
    for columns in made.columns():
        assert (list(columns.cells), list(columns.codes)) == ([0], [1])
        assert set(columns.codes[1]) == {200}
        assert set(columns.scores) == {-7}
        assert columns.followed == 12
        with pytest.raises(KeyError):
            columns.cells[1]
    made.close(finished=True)
    assert not path.exists()


def test_a_store_is_taken_up_as_it_was_left(path: Path) -> None:
    left(path)
    made = Store.open(Folder(path), source(None))  # no chunk is read
    for chunk, columns in enumerate(made.columns()):
        np.testing.assert_array_equal(columns.targets, TARGETS[PARTS[chunk]])
        np.testing.assert_array_equal(columns.codes[0], CELLS[0][PARTS[chunk]] + 7)
        np.testing.assert_array_equal(columns.cells[1], CELLS[1][PARTS[chunk]])
        assert set(columns.scores) == {chunk}
        assert columns.followed == chunk
    assert made.answers().next("a") is not None


def test_cells_that_a_killed_process_did_not_delete_are_not_merged_again(path: Path) -> None:
    made = Store.open(Folder(path), source())
    cells = (path / "cells-0").read_bytes()
    made.close(finished=False)
    path.rename(path.with_name("gone"))
    left(path)
    (path / "cells-0").write_bytes(cells)
    made = Store.open(Folder(path), source(None))
    assert all(0 in columns.codes and 0 not in columns.cells for columns in made.columns())
    made.finish(0)
    assert not (path / "cells-0").exists()


def test_large_files_are_taken_out_of_memory_and_stay_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "RESIDENT_BYTES", 0)
    left(path)
    made = Store.open(Folder(path), source(None))
    for chunk, columns in enumerate(made.columns()):
        columns.scores[:] += 10
        columns.let_go()
        assert set(columns.scores) == {chunk + 10}
        np.testing.assert_array_equal(columns.targets, TARGETS[PARTS[chunk]])


@pytest.mark.parametrize("kind", [Store, EncryptedStore])
def test_threads_that_merge_make_one_file(
    path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, reserve, calls = kind.open(Folder(path), source()), Folder.reserve, []

    def slow(folder: Folder, name: str, size: int) -> None:
        calls.append(name)
        time.sleep(0.05)
        reserve(folder, name, size)

    monkeypatch.setattr(Folder, "reserve", slow)

    def merge(columns: StoredColumns) -> None:
        columns.codes[0] = columns.cells[0] + np.uint8(1)

    with Threads(3) as threads:
        threads.map(merge, made.columns())
    made.finish(0)
    for columns, part in zip(made.columns(), PARTS, strict=True):
        np.testing.assert_array_equal(columns.codes[0], CELLS[0][part] + 1)
    assert calls == (["codes-0.new"] if kind is Store else [])


# --- damage -------------------------------------------------------------------------------------


def opened(path: Path) -> None:
    folder = Folder(path)
    try:
        made = Store.open(folder, source(None))
        made.answers().close()
    finally:
        folder.release()


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(path: Path, name: str) -> None:
    left(path)
    opened(path)
    (path / name).unlink()
    name = name.replace("codes", "cells")  # there were none yet, it seems
    with pytest.raises(StoreError, match=f"^{name} in {path} is damaged or missing: delete {path}"):
        opened(path)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_off_is_refused(path: Path, name: str) -> None:
    left(path)
    whole = (path / name).read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        (path / name).write_bytes(whole[:size])
        with pytest.raises(StoreError, match=f"^{name} in {path} is damaged or missing"):
            opened(path)


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("scores", "marks")])
def test_any_flipped_bit_is_noticed(path: Path, name: str) -> None:
    left(path)
    whole = (path / name).read_bytes()
    for place in range(0, len(whole), 3 if name == MANIFEST else 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        (path / name).write_bytes(flipped)
        with pytest.raises(StoreError, match=f"^{name} in {path} is damaged or missing"):
            opened(path)
    (path / name).write_bytes(whole)
    opened(path)


def test_a_flipped_bit_among_the_marks_only_makes_scores_anew(path: Path) -> None:
    left(path)
    whole = (path / "marks").read_bytes()
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        (path / "marks").write_bytes(flipped)
        if place < 64:  # how many answers there are
            with pytest.raises(StoreError, match=r"^marks in .* is damaged"):
                opened(path)
            continue
        folder = Folder(path)
        made = Store.open(folder, source(None))
        found = [columns.followed for columns in made.columns()]
        wanted = [0, 1, 2]
        wanted[place // 64 - 1] = MOVING
        assert found == wanted
        folder.release()
