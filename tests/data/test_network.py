from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data import network
from dprepro.data.network import SourceError, download, timeout_s
from dprepro.runtime.errors import DpreproError
from tests.data.conftest import Reply, Server


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, taken down instead of slept."""
    taken: list[float] = []
    monkeypatch.setattr(network.time, "sleep", taken.append)
    return taken


def test_a_file_arrives_byte_for_byte(server: Server, tmp_path: Path) -> None:
    body = bytes(range(256)) * 1000
    server.replies["/a"] = Reply(body)
    path = download(f"{server.url}/a", tmp_path)
    assert path.parent == tmp_path
    assert path.read_bytes() == body


def test_server_errors_are_tried_again(server: Server, tmp_path: Path, naps: list[float]) -> None:
    server.replies["/a"] = Reply(b"here", fail_first=2)
    assert download(f"{server.url}/a", tmp_path).read_bytes() == b"here"
    assert naps == [1, 2]


def test_a_server_that_stays_broken_is_given_up(
    server: Server, tmp_path: Path, naps: list[float]
) -> None:
    server.replies["/a"] = Reply(b"broken", 503)
    with pytest.raises(SourceError, match="the server answers 503"):
        download(f"{server.url}/a", tmp_path)
    assert server.asked == ["/a"] * 3
    assert len(naps) == 2


def test_a_file_that_is_not_there_is_asked_for_once(
    server: Server, tmp_path: Path, naps: list[float]
) -> None:
    with pytest.raises(SourceError, match="the server answers 404 Not Found"):
        download(f"{server.url}/none", tmp_path)
    assert server.asked == ["/none"]
    assert naps == []


@pytest.mark.parametrize(
    ("first", "pause"),
    [
        (Reply(b"busy", 429), 1),
        (Reply(b"busy", 429, headers={"Retry-After": "7"}), 7),
        (Reply(b"busy", 503, headers={"Retry-After": "86400"}), network.LONGEST_PAUSE_S),
        (Reply(b"busy", 503, headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}), 1),
        (Reply(b"<!DOCTYPE html><p>Maintenance"), 1),
        (Reply(b"half of", declared=1000), 1),
    ],
)
def test_what_passes_is_waited_for_as_long_as_the_server_asks(
    server: Server, tmp_path: Path, naps: list[float], first: Reply, pause: float
) -> None:
    server.replies["/a"] = Reply(b"here", fail_first=1, first=first)
    assert download(f"{server.url}/a", tmp_path).read_bytes() == b"here"
    assert naps == [pause]


@pytest.mark.parametrize(
    "page",
    [
        Reply(b"<!DOCTYPE html>\n<title>Sign in"),
        Reply(b"\xef\xbb\xbf \n<HTML>"),
        Reply(b"<!-- a page --><head>", headers={"Content-Type": "text/html; charset=utf-8"}),
    ],
)
def test_a_web_page_is_no_file(
    server: Server, tmp_path: Path, naps: list[float], page: Reply
) -> None:
    server.replies["/a"] = page
    with pytest.raises(SourceError, match="a web page in the place of the file"):
        download(f"{server.url}/a", tmp_path)
    assert len(server.asked) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_calls_itself_a_page_arrives(server: Server, tmp_path: Path) -> None:
    server.replies["/a"] = Reply(b"x,y\n<1,yes\n", headers={"Content-Type": "text/html"})
    assert download(f"{server.url}/a", tmp_path).read_bytes() == b"x,y\n<1,yes\n"


@pytest.mark.usefixtures("hasty")
def test_a_slow_server_is_waited_for_and_one_that_hardly_sends_is_left(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies["/a"] = Reply(b"x" * 10_000, pause_s=0.1)
    assert download(f"{server.url}/a", tmp_path).stat().st_size == 10_000
    monkeypatch.setattr(network, "SLOWEST", 1e6)
    with pytest.raises(SourceError, match="fewer than 1,000,000 bytes a second arrive"):
        download(f"{server.url}/a", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("naps")
def test_a_url_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="InvalidURL"):
        download("http://", tmp_path)


def test_a_truncated_file_is_tried_again_and_leaves_nothing(
    server: Server, tmp_path: Path, naps: list[float]
) -> None:
    server.replies["/a"] = Reply(b"half of", declared=1000)
    with pytest.raises(SourceError, match="broke before the end"):
        download(f"{server.url}/a", tmp_path)
    assert len(server.asked) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reply", [Reply(hang="before"), Reply(b"x", declared=99, hang="after")])
@pytest.mark.usefixtures("hasty")
def test_a_server_that_hangs_is_left(server: Server, tmp_path: Path, reply: Reply) -> None:
    server.replies["/a"] = reply
    with pytest.raises(SourceError, match=r"no answer within 0.4 s \(\$DPREPRO_TIMEOUT"):
        download(f"{server.url}/a", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("hasty")
def test_nobody_listening(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot connect: .*refused"):
        download("http://127.0.0.1:9/a", tmp_path)


def test_the_timeout_is_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPREPRO_TIMEOUT", raising=False)
    assert timeout_s() == network.DEFAULT_TIMEOUT_S
    monkeypatch.setenv("DPREPRO_TIMEOUT", "2.5")
    assert timeout_s() == 2.5


@pytest.mark.parametrize("given", ["soon", "0", "-1", "inf", "nan"])
def test_a_timeout_that_is_none(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("DPREPRO_TIMEOUT", given)
    with pytest.raises(DpreproError, match=f"DPREPRO_TIMEOUT is '{given}'; give a positive"):
        timeout_s()
