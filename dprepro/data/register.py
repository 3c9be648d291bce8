"""Names for private data that disclose nothing about them: random tokens from a register.

A journal must record whether a task was run on the same rows. A digest of the rows would disclose
them: a person who knows all rows but one could try candidates for that one. The digest is therefore
made with a random key that stays in the register on this machine, and journals get a random token.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import MEBIBYTE, read_bytes, replacing

STATE_VARIABLE = "DPREPRO_STATE"
_FILE = "private-data.json"
_NOTE = (
    "Tells dprepro on this machine whether private data are those of an earlier run. Whoever has "
    "this file can check guesses about their rows: never release it. Without it dprepro cannot "
    "continue journals of private data, and the budget book beside it cannot tell which rows were "
    "released: keep a copy of both."
)
_USE = (
    "the register of private data",
    "It is needed to go on with a journal of private data and to release: make its folder "
    f"writable, or set {STATE_VARIABLE} to a folder of your own that nobody else can read",
)
_LOCK_SECONDS = 30.0
MOST_BYTES = 64 * MEBIBYTE
"""Of a file of private state: more than hundreds of thousands of releases need."""
_ID = "the register itself"
_HEX = re.compile(r"[0-9a-f]+")


def state_folder() -> Path:
    """Return the folder of private state: ``$DPREPRO_STATE``, else the user's state folder.

    Raises DpreproError if the variable has a relative path: each working folder would have a state
    of its own.
    """
    given = os.environ.get(STATE_VARIABLE)
    if not given:
        return platformdirs.user_state_path("dprepro")
    folder = Path(given).expanduser()
    if not folder.is_absolute():
        raise DpreproError(
            f"{STATE_VARIABLE} is {given!r}, a relative path: in another working folder, dprepro "
            "would not find what was spent. Set it to an absolute path"
        )
    return folder


def register_path() -> Path:
    """Return the path of the register, in `state_folder`."""
    return state_folder() / _FILE


def token_of(content: str) -> str:
    """Return the token of `content` on this machine: 16 random hex digits, the same every time.

    `content` may be a digest of private rows. The register stores only its HMAC-SHA256, under a
    random key. The register is made on first use, and only its owner can read it.

    Raises DpreproError if the register cannot be read or written, or is damaged. The message says
    what to do.
    """
    with in_use(register_path(), *_USE) as path:
        state = _read(path)
        name = keyed_digest(bytes.fromhex(state["key"]), content)
        if name not in state["tokens"]:
            state["tokens"][name] = secrets.token_hex(8)
            _write(path, state)
    return str(state["tokens"][name])


def register_id() -> str:
    """Return an id of the register on this machine, 64 hex digits: a new register has another.

    It is a keyed digest of a constant, so it discloses neither the key nor any content.

    Raises DpreproError as `token_of`.
    """
    return _derived(_ID)


def secret_of(purpose: str) -> bytes:
    """Return a secret key of 32 bytes for a purpose, the same as long as the register is.

    Raises DpreproError as `token_of`.
    """
    return bytes.fromhex(_derived(f"key for {purpose}"))


@contextmanager
def in_use(path: Path, what: str, advice: str) -> Iterator[Path]:
    """Let no other process use a file of private state in this context; its folder is made.

    Raises DpreproError if the system refuses, also in the context; it says `what` file that is, and
    the `advice`.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=_LOCK_SECONDS, mode=0o600):
            yield path
    except (OSError, Timeout) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DpreproError(f"cannot use {what}, {path}: {reason}. {advice}") from error


def _derived(content: str) -> str:
    """Return the keyed digest of a content that is no token; the register is made if need be."""
    with in_use(register_path(), *_USE) as path:
        state = _read(path)
        if not path.exists():
            _write(path, state)
    return keyed_digest(bytes.fromhex(state["key"]), content)


def keyed_digest(key: bytes, content: str) -> str:
    """Return the HMAC-SHA256 of `content` in hex: to check a guess by it takes the key."""
    return hmac.new(key, content.encode(), hashlib.sha256).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"note": _NOTE, "version": 1, "key": secrets.token_hex(32), "tokens": {}}
    path.chmod(0o600)
    try:
        state = json.loads(read_bytes(path, MOST_BYTES))
        sound = (
            state["version"] == 1
            and _is_hex(state["key"], 64)
            and all(_is_hex(k, 64) and _is_hex(v, 16) for k, v in state["tokens"].items())
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise DpreproError(
            f"the register of private data, {path}, is damaged. Put back a copy of it. If there "
            "is none, move it away. Then a new register is begun, and all tasks on private data "
            "run again. The budget book beside it matters as much: leave it there. It then no "
            "longer knows which rows were released; `dprepro release` says what to do"
        )
    return dict(state)


def _write(path: Path, state: dict[str, Any]) -> None:
    write_own(path, json.dumps(state, indent=1) + "\n")


def _is_hex(text: object, length: int) -> bool:
    return isinstance(text, str) and len(text) == length and bool(_HEX.fullmatch(text))


def write_own(path: Path, text: str) -> None:
    """Write a file, at once and as a whole, that only its owner can read. Raises OSError."""
    with replacing(path, 0o600) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
