"""A server on 127.0.0.1 that misbehaves on request, and cards written to a temporary folder."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from dprepro.data.card import Card, load_card


@dataclass
class Reply:
    """What the server sends for a path.

    `declared` is the Content-Length it claims (None: the truth); it goes silent before the
    headers or after the body (`hang`), or pauses before each kilobyte (`pause_s`). `fail_first`
    requests get a 503 before, or the answer `first`, and each request the `headers`.
    """

    body: bytes = b""
    status: int = 200
    declared: int | None = None
    hang: Literal["", "before", "after"] = ""
    fail_first: int = 0
    first: Reply | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    pause_s: float = 0


@dataclass
class Server:
    """The server's address, what it answers by path, and what it was asked."""

    url: str
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    state: Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.state.asked.append(path)
        reply = self.state.replies.get(path, Reply(b"nothing here", 404))
        if self.state.asked.count(path) <= reply.fail_first:
            reply = reply.first or Reply(b"later", 503)
        if reply.hang == "before":
            self.state.closing.wait(30)
            return
        body = reply.body
        self.send_response(reply.status)
        if "api" in path:  # OpenML compresses its answers
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(reply.declared or len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for start in range(0, len(body), 1024) if reply.pause_s else ():
            if self.state.closing.wait(reply.pause_s):
                return
            with suppress(OSError):  # whoever asked has gone
                self.wfile.write(body[start : start + 1024])
        if not reply.pause_s:
            self.wfile.write(body)
        self.wfile.flush()
        if reply.hang == "after":
            self.state.closing.wait(30)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own for the test, which sets `server.replies`."""
    handler = type("Handler", (_Handler,), {})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    httpd.daemon_threads = True
    handler.state = Server(f"http://127.0.0.1:{httpd.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield handler.state  # type: ignore[attr-defined]
    handler.state.closing.set()  # type: ignore[attr-defined]
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test off the user's own cache and data; return the cache's folder."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("DPREPRO_CACHE", str(cache))
    monkeypatch.delenv("DPREPRO_DATA", raising=False)
    return cache


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second try and no patience, for servers that fail for good."""
    monkeypatch.setattr("dprepro.data.network.RETRIES", 0)
    monkeypatch.setenv("DPREPRO_TIMEOUT", "0.4")


@pytest.fixture
def write_card(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a card (a small valid one, with changes) and its path."""

    def write(changes: Mapping[str, Any] | None = None, without: tuple[str, ...] = ()) -> Path:
        fields: dict[str, Any] = {
            "name": "toy",
            "task": "binary",
            "file": "toy.csv",
            "target": "y",
            "positive": "yes",
            **(changes or {}),
        }
        if "sources" in fields:
            del fields["file"]
        path = tmp_path / "cards" / "toy.yaml"
        path.parent.mkdir(exist_ok=True)
        kept = {key: value for key, value in fields.items() if key not in without}
        path.write_text(yaml.safe_dump(kept, sort_keys=False))
        return path

    return write


@pytest.fixture
def make_card(write_card: Callable[..., Path]) -> Callable[..., Card]:
    """Return a function that makes a card as `write_card` does."""
    return lambda *args, **kwargs: load_card(write_card(*args, **kwargs))


TOY_CSV = b"age,colour,y\n20,red,yes\n31,blue,no\n,red,no\n44,green,yes\n"


@pytest.fixture
def toy_csv() -> bytes:
    """Four rows: a number with one missing, a colour, and the label y."""
    return TOY_CSV
