"""An archive of UCI whose server fails in every way, and a second mirror."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.data import network
from tests.data.conftest import TOY_CSV, Reply, Server


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy.data", data)
    return buffer.getvalue()


ARCHIVE = zipped(TOY_CSV)
STATIC, OLD = "/static/public/2/toy.zip", "/ml/machine-learning-databases/toy/toy.data"
FAULTS = {
    "404": (Reply(b"<h1>Not found", 404), "the server answers 404 Not Found"),
    "500": (Reply(b"oops", 500), "the server answers 500"),
    "page": (Reply(b"<!DOCTYPE html><title>UCI"), "a web page in the place of the file"),
    "truncated": (Reply(ARCHIVE[:90], declared=len(ARCHIVE)), "broke before the end of the file"),
    "short": (Reply(ARCHIVE[:90]), "not a whole zip file"),
    "wrong length": (Reply(ARCHIVE, declared=90), "not a whole zip file"),
    "empty": (Reply(b""), "not a whole zip file"),
    "other": (Reply(zipped(TOY_CSV.replace(b"20", b"21"))), "wrong checksum"),
    "silent": (Reply(hang="before"), "no answer within 0.4 s"),
    "stops": (Reply(ARCHIVE[:90], declared=999, hang="after"), "no answer within 0.4 s"),
    "crawls": (Reply(ARCHIVE * 9, pause_s=0.3), "fewer than 1,000,000 bytes a second"),
}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("fault", FAULTS)
def test_fetch_gets_from_the_second_mirror_what_the_first_does_not_have(
    write_card: Callable[..., Path],
    server: Server,
    places: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    monkeypatch.setattr(network, "SLOWEST", 1e6)
    digest = hashlib.sha256(TOY_CSV).hexdigest()
    sources = [
        {"http": f"{server.url}{STATIC}", "member": "toy.data", "sha256": digest},
        {"http": f"{server.url}{OLD}", "sha256": digest},
    ]
    card = write_card({"sources": sources, "url": "https://example.org/toy"})
    fetch = ["data", "fetch", str(card)]
    server.replies[STATIC], said = FAULTS[fault]
    missed = CliRunner().invoke(app, fetch)
    assert missed.exit_code == 1
    output = " ".join(missed.stdout.split())
    assert said in output
    assert "Try again later, or add a `file` source to the card (https://example.org/toy)" in output
    assert not [path for path in places.rglob("*") if path.is_file() and path.name != ".lock"]
    server.replies[OLD] = Reply(TOY_CSV)
    found = CliRunner().invoke(app, fetch)
    assert found.exit_code == 0
    assert f"verified by sha256, from {server.url}{OLD}" in " ".join(found.stdout.split())
    assert [path.read_bytes() for path in places.rglob("toy.data")] == [TOY_CSV]
    asked = len(server.asked)
    assert CliRunner().invoke(app, fetch).exit_code == 0
    assert len(server.asked) == asked


def test_a_server_that_recovers_is_not_left(
    write_card: Callable[..., Path], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network.time, "sleep", lambda seconds: None)
    digest = hashlib.sha256(TOY_CSV).hexdigest()
    source = {"http": f"{server.url}{STATIC}", "member": "toy.data", "sha256": digest}
    for fault in ("500", "page", "truncated"):
        server.replies[STATIC] = Reply(ARCHIVE, fail_first=2, first=FAULTS[fault][0])
        server.asked.clear()
        card = write_card({"name": f"toy-{fault}", "sources": [source]})
        assert CliRunner().invoke(app, ["data", "fetch", str(card)]).exit_code == 0
        assert server.asked == [STATIC] * 3
