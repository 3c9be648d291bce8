"""What is packed is read up to limits, whatever an archive says of itself."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from dprepro.data.card import load_card
from dprepro.data.dataset import header_names, load
from dprepro.data.files import ALWAYS, MOST_MEMBERS, PackedError, extract_member, unzipped
from dprepro.release.columns import read_columns
from dprepro.rows.readers import CsvFile, CsvSettings, TableError
from dprepro.runtime.errors import DpreproError

BEYOND = 2 * ALWAYS
CARD = """
name: packed
task: binary
file: {file}
target: y
positive: "1"
labels: ["0", "1"]
features: {{x: {{numeric: [0, 1]}}}}
"""


def bomb() -> bytes:
    """Return some KB of gzip from which more comes than is allowed: zeros 1,000 times packed."""
    return gzip.compress(b"x,y\n" + b"0" * BEYOND)


def zipped(content: bytes, name: str = "one") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def tarred(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def test_what_is_packed_less_than_200_times_comes_out_whole() -> None:
    content = b"".join(b"%d,%d\n" % (k * k % 7919, 1) for k in range(10_000)) * 4
    assert unzipped(gzip.compress(content)) == content
    assert extract_member(zipped(content), "one") == content
    assert extract_member(tarred((tarfile.TarInfo("one"), content)), "one") == content


def test_a_small_file_may_hold_up_to_16_mib_however_much_it_is_packed() -> None:
    content = b"0" * ALWAYS
    assert len(gzip.compress(content)) * 200 < ALWAYS
    assert unzipped(gzip.compress(content)) == content
    with pytest.raises(PackedError, match="more than 16 MiB come out of it"):
        unzipped(gzip.compress(content + b"0"))


def test_bombs_are_refused_in_every_kind_of_archive() -> None:
    zeros = b"0" * BEYOND
    for data in (zipped(zeros), tarred((tarfile.TarInfo("one"), zeros))):
        with pytest.raises(PackedError, match="unpack it yourself"):
            extract_member(data, "one")
    with pytest.raises(PackedError):
        unzipped(bomb())


def test_a_bomb_in_a_member_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(bomb(), "a.csv"))
    (tmp_path / "card.yaml").write_text(CARD.format(file="a.zip, member: a.csv").replace(
        "file: a.zip, member: a.csv", "sources: [{file: a.zip, member: a.csv}]"
    ))  # fmt: skip
    with pytest.raises(DpreproError, match="come out of it"):
        load(tmp_path / "card.yaml")


def test_there_is_a_limit_in_bytes_whatever_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprepro.data.files.MOST_BYTES", 1000)
    assert len(unzipped(gzip.compress(b"0" * 1000))) == 1000
    with pytest.raises(PackedError):
        unzipped(gzip.compress(b"0" * 1001))


def test_a_header_that_states_a_smaller_size_is_not_believed() -> None:
    data = bytearray(zipped(b"0" * 5000))
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(signature) + place
        assert struct.unpack("<I", data[start : start + 4]) == (5000,)
        data[start : start + 4] = struct.pack("<I", 10)
    with pytest.raises(DpreproError, match="not a whole zip file"):
        extract_member(bytes(data), "one")


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_MEMBERS == 10_000
    monkeypatch.setattr("dprepro.data.files.MOST_MEMBERS", 50)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(51):
            archive.writestr(str(number), b"")
    with pytest.raises(PackedError, match="more than 50 members"):
        extract_member(buffer.getvalue(), "1")
    entries = [(tarfile.TarInfo(str(number)), b"") for number in range(51)]
    with pytest.raises(PackedError, match="more than 50 members"):
        extract_member(tarred(*entries), "1")
    assert extract_member(tarred(*entries[:-1]), "1") == b""


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
@pytest.mark.parametrize("target", ["one", "two", "/etc/passwd"])
def test_links_and_pipes_are_no_members(kind: bytes, target: str) -> None:
    link = tarfile.TarInfo("one")
    link.type, link.linkname = kind, target
    data = tarred((link, b""), (tarfile.TarInfo("two"), b"2"))
    with pytest.raises(DpreproError, match="'one' of the archive is no file"):
        extract_member(data, "one")
    assert extract_member(data, "two") == b"2"


def test_holes_of_a_tar_count() -> None:
    entry = tarfile.TarInfo("one")
    entry.pax_headers = {
        "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.numblocks": "1",
        "GNU.sparse.size": str(BEYOND), "GNU.sparse.map": f"{BEYOND - 1},1",
    }  # fmt: skip
    with pytest.raises(DpreproError, match=r"come out of it|no file|not a whole"):
        extract_member(tarred((entry, b"1")), "one")


def test_every_door_refuses_a_gzipped_bomb(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(bomb())
    (tmp_path / "card.yaml").write_text(CARD.format(file="a.csv.gz"))
    with pytest.raises(DpreproError, match=r"a\.csv\.gz.*come out of it"):
        load(tmp_path / "card.yaml")
    with pytest.raises(DpreproError, match=r"come out of it"):
        read_columns(path)
    table = CsvFile(path, CsvSettings())
    with pytest.raises(TableError, match=r"a\.csv\.gz: .*come out of it"):
        list(table.batches(table.schema, 1000))
    path.write_bytes(gzip.compress(b"0" * BEYOND))
    with pytest.raises(DpreproError, match=r"a\.csv\.gz: .*come out of it"):
        header_names(load_card(tmp_path / "card.yaml"))
