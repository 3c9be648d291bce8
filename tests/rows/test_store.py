"""The folder of a fit: whole or refused, locked, private to its owner, and gone at the end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.rows import store, table
from dprepro.rows.encrypted import EncryptedStore
from dprepro.rows.filling import Source
from dprepro.rows.folder import ANSWERS, MANIFEST, Folder, StoreError
from dprepro.rows.marks import Marks
from dprepro.rows.partition import MOVING, SortedRows
from dprepro.rows.store import Store
from dprepro.rows.table import Table
from tests.released import published
from tests.rows.killing import Fit, fit_in_memory, model_of, rows

ENDS = [5, 10, 12]
PARTS = [slice(0, 5), slice(5, 10), slice(10, 12)]
TARGETS = np.arange(100, 112, dtype=np.int32)
CELLS = {0: np.arange(12) % 3, 1: (np.arange(12) * 25).astype(np.uint16)}
SIZES = (3, 300)


def sort(part: slice) -> SortedRows:
    cells = {k: found[part] for k, found in CELLS.items()}
    counts = [np.bincount(cells[k], minlength=size) for k, size in enumerate(SIZES)]
    return SortedRows(TARGETS[part], cells, counts)


def source(chunks: Any = PARTS, **identity: Any) -> Source:
    return Source({"of": "this", **identity}, chunks, sort)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def left(path: Path) -> None:
    """Leave what a fit leaves that was interrupted: one feature has codes, two answers."""
    made = Store.open(Folder(path), source())
    for chunk, columns in enumerate(made.columns()):
        columns.codes[0] = columns.cells[0] + np.uint8(7)
        columns.scores[:] = chunk
        columns.followed = chunk
        columns.let_go()
    made.finish(0)
    answers = made.answers()
    answers.keep("a", np.array([1]))
    answers.close()
    made.close(finished=False)


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


# --- damage -------------------------------------------------------------------------------------

FILES = [MANIFEST, ANSWERS, "targets", "scores", "marks", "codes-0", "cells-1"]


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


def test_marks_are_what_was_written_or_nothing() -> None:
    words = np.zeros(3, np.uint64)
    marks = Marks(words)
    assert [marks[0], marks[1]] == [None, None]
    for number in (0, 1, 2**31, 2**32 - 2):
        marks[1] = number
        assert (marks[1], Marks(words.copy())[1], marks[0], marks[2]) == (
            number,
            number,
            None,
            None,
        )
    marks[1] = None
    assert not words.any()


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
    assert {p.name: p.read_text() for p in path.iterdir()} == dict.fromkeys(names, "mine")


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


# --- a full disk, errors, interruptions -----------------------------------------------------------


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


FULL = "cannot keep the rows of the fit in .*: there is no room left on the disk. Either make room"


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CHUNK_ROWS", 300)


@pytest.fixture
def fit(tmp_path: Path, path: Path, small_chunks: None) -> Fit:
    rows().to_parquet(tmp_path / "table.parquet")
    return Fit("labels", path, tmp_path / "table.parquet")


def fitted(fit: Fit, **place: Any) -> Any:
    return model_of(fit).fit(Table.open(fit.table, **(place or {"store": fit.folder})), "labels")


def test_a_disk_that_is_full_while_rows_are_read(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((os, "posix_fallocate"), (os, "fsync")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            with pytest.raises(StoreError, match=FULL):
                fitted(fit)
        assert not fit.folder.exists()


def test_a_disk_that_takes_no_more(fit: Fit) -> None:
    """Files of this process must not be larger than so many bytes: writing more is an error."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from tests.rows.test_store import Fit, Path, StoreError, fitted\n"
        "fit = Fit('labels', Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "for limit in (500, 2500, 3900):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1))\n"
        "    try: fitted(fit)\n"
        "    except StoreError as error: print(error, fit.folder.exists())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, fit.folder, fit.table],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    problem = "File too large. Either mend that, or name another folder for them False"
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
    import dprepro.ebm.dp_ebm
    from dprepro.ebm.rounds import EBMPartition

    owner, name = {
        "reading": (table._Chunk, "take"),
        "opening": (Store, "answers"),
        "binning": (dprepro.ebm.dp_ebm, "merge_cells"),
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


# --- memory ---------------------------------------------------------------------------------------

GROWTH = """
import sys
import numpy as np
import pandas as pd
from pathlib import Path
from dprepro.data.domain import Domain, NumericFeature
from dprepro.ebm import DPEBMClassifier
from dprepro.ebm_plus import DPEBMPlusClassifier
from dprepro.rows import progress, store, table

table.CHUNK_ROWS, store.RESIDENT_BYTES = 2**15, 2**21
features = [NumericFeature(f"x{k}", 0, 1) for k in range(3)]
before = []

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

def heard(what, done, total):
    if what == "reading rows" and done == total:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is from here on
        before.append(memory("VmRSS"))

for encrypted in (False, True):
    for kind in (DPEBMClassifier, DPEBMPlusClassifier):
        model = kind(domain=Domain(features, ("0", "1")), n_epochs=1, random_state=0)
        with progress.listening(heard):
            model.fit(table.Table.open(sys.argv[1], encrypted=encrypted), "y")
        print(memory("VmHWM") - before.pop())
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are not known")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Targets and scores alone are 24 MB, and cells as many: plain and encrypted, two methods."""
    path = tmp_path / "table.parquet"
    X = np.random.default_rng(0).random((3, 3_000_000), np.float32)
    frame = pd.DataFrame({f"x{k}": x for k, x in enumerate(X)})
    frame.assign(y=(X[0] > 0.5).astype(int)).to_parquet(path, row_group_size=2**15)
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, path], capture_output=True, text=True, check=True
    )
    grown = [float(line) for line in done.stdout.splitlines()]
    assert len(grown) == 4
    assert max(grown) < 14


def test_a_chunk_is_let_go_after_every_question(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "RESIDENT_BYTES", 0)
    held: set[int] = set()
    read, let_go = Store.read, Store.let_go

    def noted_read(self: Store, name: str, chunk: int) -> np.ndarray:
        held.add(chunk)
        assert len(held) == 1
        return read(self, name, chunk)

    def noted_let_go(self: Store, chunk: int, columns: Any) -> None:
        held.discard(chunk)
        let_go(self, chunk, columns)

    monkeypatch.setattr(Store, "read", noted_read)
    monkeypatch.setattr(Store, "let_go", noted_let_go)
    for model in ("labels", "plus regression"):
        other = replace(fit, model=model)
        target = "labels" if model == "labels" else "numbers"
        found = model_of(other).fit(Table.open(fit.table, store=fit.folder), target)
        assert repr(published(found)) == repr(fit_in_memory(other, rows()))
