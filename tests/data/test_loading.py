from __future__ import annotations

import errno
import hashlib
import io
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from filelock import FileLock

from dprepro.data.card import load_card
from dprepro.data.dataset import (
    Dataset,
    UnavailableError,
    check_dataset,
    load,
    load_by,
    values_digest,
)
from dprepro.runtime.errors import DpreproError
from tests.data.conftest import Reply, Server

WriteCard = Callable[..., Path]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/toy.csv", data)
    return buffer.getvalue()


def files(folder: Path) -> list[Path]:
    """Return all files in a folder but locks."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


def test_a_users_own_csv_needs_five_lines_of_card(tmp_path: Path, toy_csv: bytes) -> None:
    card = tmp_path / "mine.yaml"
    card.write_text("name: mine\ntask: binary\nfile: toy.csv\ntarget: y\npositive: Yes\n")
    (tmp_path / "toy.csv").write_bytes(toy_csv.replace(b"yes", b"Yes"))
    dataset = load(card)
    assert dataset.name == "mine"
    assert dataset.X.shape == (4, 2)
    np.testing.assert_array_equal(dataset.y, [1, 0, 0, 1])
    assert dataset.domain is None
    assert dataset.source == str(tmp_path / "toy.csv")
    assert dataset.sha256 == sha((tmp_path / "toy.csv").read_bytes())


def test_a_file_in_the_data_folder(write_card: WriteCard, tmp_path: Path, toy_csv: bytes) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "toy.csv").write_bytes(toy_csv)
    assert load(write_card(), data_dir=folder).source == str(folder / "toy.csv")


def test_a_card_that_was_read_before_loads_the_same(write_card: WriteCard, toy_csv: bytes) -> None:
    path = write_card()
    path.with_name("toy.csv").write_bytes(toy_csv)
    by_path, by_card = load(path), load_by(load_card(path), online=False)
    assert by_card.sha256 == by_path.sha256
    assert by_card.X.equals(by_path.X)


def test_a_member_of_a_local_zip(write_card: WriteCard, tmp_path: Path, toy_csv: bytes) -> None:
    source = {"file": "toy.zip", "member": "folder/toy.csv", "sha256": sha(toy_csv)}
    path = write_card({"sources": [source]})
    path.with_name("toy.zip").write_bytes(zipped(toy_csv))
    assert load(path).sha256 == sha(toy_csv)


def test_pooled_files_make_one_table_in_their_order(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    more = b"AGE,colour,y\n9,red,no\n"
    toy = toy_csv.replace(b"age", b"AGE")
    server.replies["/more.csv"] = Reply(more)
    pool = [{"file": "toy.csv"}, {"http": f"{server.url}/more.csv", "sha256": sha(more)}]
    path = write_card({"sources": [{"pool": pool, "rename": {"AGE": "age"}}]})
    path.with_name("toy.csv").write_bytes(toy)
    dataset = load(path)
    np.testing.assert_array_equal(dataset.X["age"], [20, 31, np.nan, 44, 9])
    np.testing.assert_array_equal(dataset.y, [1, 0, 0, 1, 0])
    assert dataset.source == f"{path.with_name('toy.csv')} + {server.url}/more.csv"
    assert dataset.sha256 == sha(f"{sha(toy)} {sha(more)}".encode())
    assert files(places) == [places / "http/toy/more.csv"]


def test_a_pool_is_whole_or_not_there(write_card: WriteCard, toy_csv: bytes) -> None:
    path = write_card({"sources": [{"pool": [{"file": "toy.csv"}, {"file": "more.csv"}]}]})
    path.with_name("toy.csv").write_bytes(toy_csv)
    with pytest.raises(UnavailableError, match=r"no file at .*more.csv") as caught:
        load(path)
    assert f"by hand: {path.with_name('toy.csv')} and {path.with_name('more.csv')}" in str(
        caught.value
    )


def test_files_of_other_columns_are_not_pooled(write_card: WriteCard, toy_csv: bytes) -> None:
    path = write_card({"sources": [{"pool": [{"file": "toy.csv"}, {"file": "more.csv"}]}]})
    path.with_name("toy.csv").write_bytes(toy_csv)
    path.with_name("more.csv").write_bytes(toy_csv.replace(b"age", b"years"))
    with pytest.raises(DpreproError, match=r"more.csv: its columns are not those of .*toy.csv"):
        load(path)


def test_a_pool_of_wrong_values_leaves_nothing_in_the_cache(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    server.replies |= {"/a.csv": Reply(toy_csv), "/b.csv": Reply(toy_csv)}
    pool = [{"http": f"{server.url}/a.csv"}, {"http": f"{server.url}/b.csv"}]
    with pytest.raises(UnavailableError, match="rows: expected 7, found another"):
        load(write_card({"sources": [{"pool": pool}], "expect": {"rows": 7}}))
    assert files(places) == []


def test_joined_files_stand_side_by_side(write_card: WriteCard, tmp_path: Path) -> None:
    folder = tmp_path / "cards"
    folder.mkdir(exist_ok=True)
    (folder / "a.csv").write_bytes(b"age\n1\n2\n3\n")
    (folder / "b.csv").write_bytes(b"label\nyes\nno\nyes\n")
    join = [{"file": "a.csv"}, {"file": "b.csv"}]
    card = {
        "sources": [{"join": join, "rename": {"label": "y"}}], "target": "y", "positive": "yes",
        "labels": ["no", "yes"], "features": None, "expect": {},
    }  # fmt: skip
    path = write_card(card)
    dataset = load(path)
    np.testing.assert_array_equal(dataset.X["age"], [1, 2, 3])
    np.testing.assert_array_equal(dataset.y, [1, 0, 1])
    assert dataset.source.endswith("b.csv")
    (folder / "b.csv").write_bytes(b"label\nyes\n")
    with pytest.raises(DpreproError, match=r"b.csv has another number of rows than .*a.csv"):
        load(path)


def test_a_private_file_wins_over_its_stand_in(write_card: WriteCard, toy_csv: bytes) -> None:
    shape = {"rows": 12, "numeric": 2, "binary": 1, "positives": 4}
    sources = [{"file": "toy.csv"}, {"synthetic": shape}]
    path = write_card({"labels": ["no", "yes"], "sources": sources})
    made_up = load(path, online=False)
    assert "SYNTHETIC" in made_up.source
    assert (made_up.X.shape, made_up.y.sum()) == ((12, 3), 4)
    path.with_name("toy.csv").write_bytes(toy_csv)
    assert load(path).source == str(path.with_name("toy.csv"))


def test_a_wrong_private_file_is_an_error_not_a_reason_to_make_up_data(
    write_card: WriteCard, toy_csv: bytes
) -> None:
    shape = {"rows": 12, "numeric": 2, "binary": 1, "positives": 4}
    sources = [{"file": "toy.csv"}, {"synthetic": shape}]
    path = write_card({"labels": ["no", "yes"], "sources": sources, "expect": {"rows": 12}})
    path.with_name("toy.csv").write_bytes(toy_csv)
    with pytest.raises(DpreproError, match=r"rows: expected 12, found another\)"):
        load(path)


def test_a_wrong_local_file_stops_at_once(
    write_card: WriteCard, server: Server, toy_csv: bytes
) -> None:
    server.replies["/toy.csv"] = Reply(toy_csv)
    good = {"http": f"{server.url}/toy.csv", "sha256": sha(toy_csv)}
    sources = [{"file": "toy.csv", "sha256": "0" * 64}, good]
    path = write_card({"sources": sources})
    path.with_name("toy.csv").write_bytes(toy_csv)
    with pytest.raises(DpreproError) as caught:
        load(path)
    for part in (str(path.with_name("toy.csv")), "wrong checksum", "0" * 64, sha(toy_csv)):
        assert part in str(caught.value)
    assert not isinstance(caught.value, UnavailableError)
    assert server.asked == []


def test_local_values_that_differ_name_the_file(write_card: WriteCard, toy_csv: bytes) -> None:
    path = write_card({"expect": {"rows": 5}})
    path.with_name("toy.csv").write_bytes(toy_csv)
    with pytest.raises(DpreproError, match=r"toy.csv: .*rows: expected 5, found another\)"):
        load(path)


def test_every_source_ends_in_the_same_values(
    write_card: WriteCard, server: Server, tmp_path: Path, toy_csv: bytes
) -> None:
    server.replies["/get/toy.csv"] = Reply(toy_csv)
    server.replies["/toy.zip"] = Reply(zipped(toy_csv))
    renamed = toy_csv.replace(b"age", b"AGE").replace(b",", b";")
    server.replies["/other"] = Reply(renamed)
    other = {"format": {"kind": "csv", "separator": ";"}, "rename": {"AGE": "age"}}
    sources: list[dict[str, Any]] = [
        {"http": f"{server.url}/get/toy.csv?download=1", "sha256": sha(toy_csv)},
        {"http": f"{server.url}/toy.zip", "member": "folder/toy.csv", "sha256": sha(toy_csv)},
        {"http": f"{server.url}/other", "sha256": sha(renamed), **other},
    ]
    loaded = [
        load(write_card({"sources": [source], "name": f"n{i}"})) for i, source in enumerate(sources)
    ]
    assert len({values_digest(d.X, d.y) for d in loaded}) == 1
    assert loaded[0].source == sources[0]["http"]


def test_a_download_is_kept_and_used_offline(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    server.replies["/toy.zip"] = Reply(zipped(toy_csv))
    source = {"http": f"{server.url}/toy.zip", "member": "folder/toy.csv", "sha256": sha(toy_csv)}
    path = write_card({"sources": [source]})
    with pytest.raises(UnavailableError, match="not downloaded yet"):
        load(path, online=False)
    load(path)
    load(path, online=False)
    assert server.asked == ["/toy.zip"]
    assert files(places) == [places / "http/toy/toy.csv"]


def test_a_damaged_cache_is_fetched_anew(
    write_card: WriteCard,
    server: Server,
    places: Path,
    toy_csv: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.replies["/toy.csv"] = Reply(toy_csv)
    path = write_card({"sources": [{"http": f"{server.url}/toy.csv", "sha256": sha(toy_csv)}]})
    load(path)
    (places / "http/toy/toy.csv").write_bytes(toy_csv[:10])
    assert load(path).sha256 == sha(toy_csv)
    assert len(server.asked) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("downloading")] == [
        f"downloading toy from {server.url}/toy.csv"
    ] * 2


@pytest.mark.usefixtures("hasty")
def test_failed_downloads_are_explained_and_leave_nothing(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    wrong = toy_csv.replace(b"31", b"32")
    server.replies |= {
        "/wrong.csv": Reply(wrong),
        "/short.csv": Reply(toy_csv[:20], declared=len(toy_csv)),
        "/hangs.csv": Reply(toy_csv[:20], declared=len(toy_csv), hang="after"),
        "/half.zip": Reply(zipped(toy_csv)[:40]),
        "/other.zip": Reply(zipped(wrong)),
        "/values.csv": Reply(wrong.replace(b"yes", b"maybe")),
    }
    member = {"member": "folder/toy.csv", "sha256": sha(toy_csv)}
    sources = [
        {"file": "toy.csv", "sha256": sha(toy_csv)},
        {"http": f"{server.url}/wrong.csv", "sha256": sha(toy_csv)},
        {"http": f"{server.url}/short.csv", "sha256": sha(toy_csv)},
        {"http": f"{server.url}/hangs.csv", "sha256": sha(toy_csv)},
        {"http": f"{server.url}/none.csv", "sha256": sha(toy_csv)},
        {"http": f"{server.url}/half.zip", **member},
        {"http": f"{server.url}/other.zip", **member},
        {"http": f"{server.url}/values.csv", "sha256": sha(server.replies["/values.csv"].body)},
    ]
    path = write_card({"sources": sources, "url": "https://example.org/toy"})
    with pytest.raises(UnavailableError) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    reasons = (
        "no file at",
        f"expected {sha(toy_csv)}, found {sha(wrong)}",
        "broke before the end",
        "no answer within 0.4 s",
        "answers 404",
        "not a whole zip file",
        "wrong checksum",
        "must hold two labels",
    )
    for line, source, reason in zip(lines[1:-1], sources, reasons, strict=True):
        assert str(next(iter(source.values()))) in line
        assert reason in line
    for part in ("by hand", "https://example.org/toy", sha(toy_csv), str(path.parent / "toy.csv")):
        assert part in lines[-1]
    assert files(places) == []


def test_what_a_killed_download_left_goes_with_the_next(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    server.replies["/toy.csv"] = Reply(toy_csv[:20], declared=len(toy_csv), hang="after")
    path = write_card({"sources": [{"http": f"{server.url}/toy.csv", "sha256": sha(toy_csv)}]})
    code = f"from dprepro.data.dataset import load; load({str(path)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    folder = places / "http" / "toy"
    while not [*folder.glob(".download-*/*")]:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert files(folder)
    server.replies["/toy.csv"] = Reply(toy_csv)
    assert load(path).sha256 == sha(toy_csv)
    assert sorted(entry.name for entry in folder.iterdir()) == [".lock", "toy.csv"]


def test_a_file_that_another_process_downloads_is_waited_for(
    write_card: WriteCard,
    server: Server,
    places: Path,
    toy_csv: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_card({"sources": [{"http": f"{server.url}/toy.csv", "sha256": sha(toy_csv)}]})
    folder = places / "http" / "toy"
    (folder / ".download-other").mkdir(parents=True)
    with ThreadPoolExecutor(1) as other:
        with FileLock(folder / ".lock"):
            loading = other.submit(load, path)
            time.sleep(0.3)
            assert not loading.done()
            assert (folder / ".download-other").exists()
            (folder / "toy.csv").write_bytes(toy_csv)
        assert loading.result().sha256 == sha(toy_csv)
    assert server.asked == []
    assert capsys.readouterr().err == "waiting for another process that downloads toy\n"


@pytest.mark.parametrize("fault", [NotImplementedError("no locks"), OSError(errno.ENOLCK, "x")])
def test_a_file_system_without_locks_downloads_all_the_same(
    write_card: WriteCard,
    server: Server,
    toy_csv: bytes,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(FileLock, "acquire", refuse)
    server.replies["/toy.csv"] = Reply(toy_csv)
    path = write_card({"sources": [{"http": f"{server.url}/toy.csv", "sha256": sha(toy_csv)}]})
    assert load(path).sha256 == sha(toy_csv)


@pytest.mark.usefixtures("hasty")
def test_the_next_source_helps_out(write_card: WriteCard, server: Server, toy_csv: bytes) -> None:
    server.replies["/good.csv"] = Reply(toy_csv)
    sources = [{"http": f"{server.url}/none.csv"}, {"http": f"{server.url}/good.csv"}]
    assert load(write_card({"sources": sources})).source == f"{server.url}/good.csv"
    assert server.asked == ["/none.csv", "/good.csv"]


def test_what_came_from_another_mirror_is_used_before_a_dead_one_is_asked_again(
    write_card: WriteCard, server: Server, toy_csv: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dprepro.data.network.RETRIES", 0)
    server.replies["/good.csv"] = Reply(toy_csv)
    sources = [{"http": f"{server.url}/none.csv"}, {"http": f"{server.url}/good.csv"}]
    path = write_card({"sources": sources})
    assert load(path).X.equals(load(path).X)
    assert server.asked == ["/none.csv", "/good.csv"]


QUOTED = b'"age","colour","y"\r\n"20","red","yes"\r\n31.0,blue,no\r\n,red,no\r\n44,"green",yes\r\n'


def toy_parquet() -> bytes:
    buffer = io.BytesIO()
    pd.read_csv(io.BytesIO(QUOTED)).to_parquet(buffer, index=False)
    return buffer.getvalue()


def values_of(toy: bytes, write_card: WriteCard) -> str:
    """Return the checksum of the values of the toy table."""
    path = write_card({"name": "plain"})
    path.with_name("toy.csv").write_bytes(toy)
    dataset = load(path)
    path.with_name("toy.csv").unlink()
    return values_digest(dataset.X, dataset.y)


@pytest.mark.parametrize("kind", ["file", "http"])
@pytest.mark.parametrize("body", [QUOTED, toy_parquet()], ids=["quoted", "parquet"])
def test_a_file_that_is_written_in_another_way_is_taken_for_its_values(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes, kind: str, body: bytes
) -> None:
    values = values_of(toy_csv, write_card)
    server.replies["/toy.csv"] = Reply(body)
    source = {kind: {"file": "toy.csv", "http": f"{server.url}/toy.csv"}[kind]}
    path = write_card(
        {"sources": [{**source, "sha256": sha(toy_csv)}], "expect": {"values_sha256": values}}
    )
    if kind == "file":
        path.with_name("toy.csv").write_bytes(body)
    dataset = load(path)
    assert dataset.verified.startswith("values_sha256 alone (sha256 is another")
    assert dataset.sha256 == sha(body)
    assert values_digest(dataset.X, dataset.y) == values
    load(path)
    assert server.asked == (["/toy.csv"] if kind == "http" else [])
    # Without the checksum of the values nothing but the file itself will do.
    card = write_card({"sources": [{**source, "sha256": sha(toy_csv)}]})
    with pytest.raises(DpreproError, match="wrong checksum"):
        load(card)


@pytest.mark.parametrize("kind", ["file", "http"])
def test_another_file_of_other_values_is_refused_for_both(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes, kind: str
) -> None:
    values = values_of(toy_csv, write_card)
    wrong = QUOTED.replace(b"31", b"32")
    server.replies["/toy.csv"] = Reply(wrong)
    source = {kind: {"file": "toy.csv", "http": f"{server.url}/toy.csv"}[kind]}
    path = write_card(
        {"sources": [{**source, "sha256": sha(toy_csv)}], "expect": {"values_sha256": values}}
    )
    if kind == "file":
        path.with_name("toy.csv").write_bytes(wrong)
    with pytest.raises(DpreproError) as caught:
        load(path)
    assert f"sha256 expected {sha(toy_csv)}, found {sha(wrong)}" in str(caught.value)
    assert f"values_sha256: expected {values}" in str(caught.value)
    assert files(places) == []


def test_what_was_compared_is_said(write_card: WriteCard, toy_csv: bytes) -> None:
    values, file = {"values_sha256": values_of(toy_csv, write_card)}, {"file": "toy.csv"}
    stated = {**file, "sha256": sha(toy_csv)}
    for source, expect, said in (
        (file, {}, ""),
        (stated, {}, "sha256"),
        (file, values, "values_sha256"),
        (stated, values, "sha256 and values_sha256"),
    ):
        path = write_card({"sources": [source], "expect": expect})
        path.with_name("toy.csv").write_bytes(toy_csv)
        assert load(path).verified == said


@pytest.mark.usefixtures("hasty")
def test_error_pages_are_never_cached(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    server.replies["/page.csv"] = Reply(b"<!doctype html>\n<p>age,colour,y</p>")
    values = {"values_sha256": values_of(toy_csv, write_card)}
    for changes in ({}, {"expect": values}, {"features": {"<!doctype html>": {"numeric": [0, 1]}}}):
        path = write_card({"sources": [{"http": f"{server.url}/page.csv"}], **changes})
        with pytest.raises(UnavailableError, match="a web page in the place of the file"):
            load(path)
        assert files(places) == []


def test_a_wrong_file_that_a_killed_process_left_in_the_cache_is_replaced(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    values = {"values_sha256": values_of(toy_csv, write_card)}
    server.replies["/toy.csv"] = Reply(toy_csv)
    folder = places / "http" / "toy"
    folder.mkdir(parents=True)
    for expect, left in ((values, b"age,col"), (values, QUOTED.replace(b"31", b"3")), ({}, b"a")):
        (folder / "toy.csv").write_bytes(left)
        path = write_card({"sources": [{"http": f"{server.url}/toy.csv"}], "expect": expect})
        with pytest.raises(UnavailableError):
            load(path, online=False)
        assert load(path).sha256 == sha(toy_csv)
        assert (folder / "toy.csv").read_bytes() == toy_csv


@pytest.mark.usefixtures("hasty")
def test_a_pool_whose_download_has_other_columns_gives_way_to_the_next_source(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    server.replies |= {"/a.csv": Reply(toy_csv), "/b.csv": Reply(b"other,columns\n1,2\n")}
    pool = [{"http": f"{server.url}/a.csv"}, {"http": f"{server.url}/b.csv"}]
    path = write_card({"sources": [{"pool": pool}, {"file": "toy.csv"}]})
    with pytest.raises(UnavailableError, match="pooled files must agree"):
        load(path)
    assert files(places) == []
    path.with_name("toy.csv").write_bytes(toy_csv)
    assert load(path).source == str(path.with_name("toy.csv"))


def test_of_a_private_file_in_another_encoding_no_digest_is_told(
    write_card: WriteCard, toy_csv: bytes
) -> None:
    values = values_of(toy_csv, write_card)
    source = {"file": "toy.csv", "sha256": sha(toy_csv)}
    changes = {"private": True, "sources": [source], "expect": {"values_sha256": values}}
    path = write_card(changes)
    path.with_name("toy.csv").write_bytes(QUOTED)
    assert not set(load(path).verified.split()) & {values, sha(QUOTED), sha(toy_csv)}
    path.with_name("toy.csv").write_bytes(QUOTED.replace(b"31", b"32"))
    with pytest.raises(DpreproError, match="found another") as caught:
        load(path)
    for digest in (sha(QUOTED), sha(QUOTED.replace(b"31", b"32")), sha(toy_csv)):
        assert digest not in str(caught.value)


def test_a_cache_that_cannot_be_written_is_said(
    write_card: WriteCard, server: Server, places: Path, toy_csv: bytes
) -> None:
    places.write_text("a file where the folder should be")
    server.replies["/toy.csv"] = Reply(toy_csv)
    with pytest.raises(UnavailableError, match="cannot use the cache"):
        load(write_card({"sources": [{"http": f"{server.url}/toy.csv"}]}))


def test_scikit_learns_data_sets() -> None:
    dataset = load("breast-cancer")
    assert dataset.source == "scikit-learn"
    assert dataset.sha256 == values_digest(dataset.X, dataset.y)


def test_scikit_learns_regression_target(write_card: WriteCard) -> None:
    changes = {"task": "regression", "target": "target", "sources": [{"sklearn": "diabetes"}]}
    y = load(write_card(changes, without=("positive",))).y
    assert y.dtype == np.float64
    assert (y.min(), y.max()) == (25, 346)


def test_verify_tells_right_wrong_and_absent(
    write_card: WriteCard, server: Server, toy_csv: bytes
) -> None:
    sources = [{"file": "toy.csv"}, {"http": f"{server.url}/toy.csv"}]
    path = write_card({"sources": sources, "expect": {"rows": 4}})
    assert check_dataset(str(path)).status == "absent"
    path.with_name("toy.csv").write_bytes(toy_csv)
    assert check_dataset(str(path)).status == "ok"
    path.with_name("toy.csv").write_bytes(toy_csv + b"1,red,no\n")
    check = check_dataset(str(path))
    assert check.status == "wrong"
    assert "expected 4, found another" in check.message
    assert server.asked == []


@pytest.mark.parametrize("kind", ["file", "http"])
def test_of_a_private_file_with_another_checksum_no_digest_and_no_size_is_told(
    write_card: WriteCard, server: Server, toy_csv: bytes, kind: str
) -> None:
    body = toy_csv * 300
    server.replies["/toy.csv"] = Reply(body)
    place = {"file": "toy.csv", "http": f"{server.url}/toy.csv"}[kind]
    path = write_card({"private": True, "sources": [{kind: place, "sha256": "e" * 64}]})
    if kind == "file":
        path.with_name("toy.csv").write_bytes(body)
    with pytest.raises(DpreproError, match="not the one that the card expects") as caught:
        load(path)
    said = str(caught.value)
    for secret in (sha(body), sha(body)[:8], f"{len(body):,}", str(len(body)), "e" * 64):
        assert secret not in said


def test_classes_have_the_same_codes_where_the_test_file_lacks_one(
    write_card: WriteCard, tmp_path: Path
) -> None:
    """Its codes were shifted: a perfect model had an accuracy of 0."""
    test = {"sources": [{"file": "test.csv"}]}
    card = write_card({"task": "multiclass", "test": test}, without=("positive",))
    (card.parent / "toy.csv").write_text("x,y\n1,a\n2,b\n3,c\n")
    (card.parent / "test.csv").write_text("x,y\n2,b\n3,c\n")
    with pytest.raises(DpreproError, match=r"`test` needs `labels`.*Add `labels: \[\.\.\.\]`"):
        load(card, with_test=True)
    card.write_text(card.read_text(encoding="utf-8") + "labels: [a, b, c]\n")
    dataset = load(card, with_test=True)
    assert dataset.test is not None
    assert (dataset.y.tolist(), dataset.test.y.tolist()) == ([0, 1, 2], [1, 2])


def test_a_binary_test_file_that_lacks_a_label_is_refused_or_coded_alike(
    write_card: WriteCard, tmp_path: Path
) -> None:
    test = {"sources": [{"file": "test.csv"}]}
    plain = write_card({"test": test})
    (plain.parent / "toy.csv").write_text("x,y\n1,no\n2,yes\n")
    (plain.parent / "test.csv").write_text("x,y\n2,yes\n")
    with pytest.raises(DpreproError, match="must hold two labels"):
        load(plain, with_test=True)
    public = write_card({"test": test, "features": {"x": {"numeric": [0, 9]}}})
    for labels in ("", "labels: [no, yes]\n"):
        public.write_text(public.read_text(encoding="utf-8") + labels)
        dataset = load(public, with_test=True)
        assert dataset.test is not None
        assert (dataset.y.tolist(), dataset.test.y.tolist()) == ([0, 1], [1])


@pytest.mark.parametrize("more", [{}, {"expect": {"values_sha256": "0" * 64}, "distinct": {}}])
def test_a_nested_column_of_parquet_can_be_dropped_where_rows_are_not_compared(
    write_card: WriteCard, more: dict[str, Any]
) -> None:
    table = pa.table({"a": [1.0, 2.0], "tags": [["u"], ["v", "w"]], "y": ["no", "yes"]})
    drop = {"file": "toy.parquet", "sources": [{"file": "toy.parquet", "rename": {"tags": "t"}}]}
    card = write_card({**drop, "drop": ["t"], **more}, without=("file",))
    pa.parquet.write_table(table, card.parent / "toy.parquet")
    if more:
        with pytest.raises(DpreproError, match="column 'tags' holds lists or structs"):
            load(card)
        return
    assert list(load(card).X) == ["a"]


@pytest.mark.parametrize(
    "changes",
    [
        {"y": np.zeros(2)},
        {"units": np.array(["a", "b"], dtype=object)},
        {"X": pd.DataFrame({"a": [1.0, 2, 3]}, index=[2, 1, 0])},
        {"X": pd.DataFrame({"a": [1.0, 2, 3]}, index=[0, 1, 3])},
    ],
)
def test_a_dataset_cannot_hold_rows_that_are_taken_apart(changes: dict[str, Any]) -> None:
    whole = {"X": pd.DataFrame({"a": [1.0, 2, 3]}), "y": np.zeros(3), "units": None}
    fixed = {"name": "t", "task": "regression", "domain": None, "source": "", "sha256": ""}
    assert Dataset(**{**fixed, **whole}).X.shape == (3, 1)
    with pytest.raises(ValueError, match="rows by position"):
        Dataset(**{**fixed, **whole, **changes})


def test_pooled_files_may_write_numbers_in_other_ways(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1.5,yes\n,no\n")
    (tmp_path / "b.csv").write_text("x;y\n1.234,5;no\n-9;yes\n")
    (tmp_path / "card.yaml").write_text(
        "name: two\ntask: binary\ntarget: y\npositive: 'yes'\nmissing: ['', '-9']\n"
        "sources: [{pool: [{file: a.csv}, {file: b.csv, format: {separator: ';', decimal: ',', "
        "thousands: '.'}}]}]\nfeatures: {x: {numeric: [0, 2000], missing: true}}\n"
    )
    X = load(tmp_path / "card.yaml").X
    np.testing.assert_array_equal(X["x"], [1.5, np.nan, 1234.5, np.nan])
