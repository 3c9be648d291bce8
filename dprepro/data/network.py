"""Files from the network, by http and from OpenML: tried again, and never a web page instead."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ExpatError

import requests
from urllib3.exceptions import MaxRetryError

from dprepro.data.formats import is_web_page
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import can_draw, error_console, progress_bar
from dprepro.runtime.text import visible

if TYPE_CHECKING:
    from openml import OpenMLDataset

TIMEOUT_VARIABLE = "DPREPRO_TIMEOUT"
DEFAULT_TIMEOUT_S = 30.0
# Number of further attempts after the connection or the server failed.
RETRIES = 2
LONGEST_PAUSE_S = 30.0
"""Between attempts, whatever the server asks for."""
SLOWEST = 1000.0
"""Bytes a second below which a server counts as one that does not answer."""
_PART_BYTES = 1024  # a slow server is noticed after as many
_MESSAGE_BYTES = 10_000

OPENML = ("https://www.openml.org/api/v1/xml", "https://api.openml.org/api/v1/xml")
"""Where OpenML describes its datasets; the first is the client's own choice."""
OPENML_PARQUET = "https://data.openml.org/datasets/{group:04d}/{id:04d}/dataset_{id}.pq"
"""Where OpenML has a dataset as Parquet; another server, which answers when those do not."""


class SourceError(Exception):
    """This source cannot provide the data now; the next one may."""


class _NoFileError(requests.RequestException):
    """What arrives is not the file, or arrives too slowly."""


def timeout_s() -> float:
    """Return the longest wait for a server, in seconds: ``$DPREPRO_TIMEOUT`` or 30.

    Raises DpreproError if the variable is not a positive number.
    """
    given = os.environ.get(TIMEOUT_VARIABLE)
    try:
        seconds = float(given) if given else DEFAULT_TIMEOUT_S
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise DpreproError(f"${TIMEOUT_VARIABLE} is {given!r}; give a positive number of seconds")
    return seconds


def download(url: str, folder: Path) -> Path:
    """Return the path, inside `folder`, of the file at `url`; it replaces one from another URL.

    Connection failures, truncated files, web pages in the place of a file and what a server says
    of itself (5xx, 429) are tried again `RETRIES` times. A progress bar is shown on a terminal.

    Raises SourceError if the server does not answer in time, or not with the whole file.
    """
    path = folder / "file"
    for attempt in range(1, RETRIES + 2):
        try:
            _write(url, path)
            return path
        except requests.RequestException as error:
            path.unlink(missing_ok=True)
            if attempt > RETRIES or not _is_worth_retrying(error):
                raise SourceError(explain(error)) from error
            time.sleep(_pause_s(error, attempt))
        except ValueError as error:  # a URL that is none
            raise SourceError(str(error)) from error
    raise AssertionError("the last attempt returns or raises")


def _write(url: str, path: Path) -> None:
    """Write what a server sends; nothing of a web page. Raises requests.RequestException."""
    with requests.get(url, stream=True, timeout=timeout_s()) as response, path.open("wb") as file:
        if not response.ok:
            status = f"{response.status_code} {visible(response.reason or '')}".strip()
            said = f"the server answers {status}{_message_of(response)}"
            raise requests.HTTPError(said, response=response)
        with _bar(response.headers.get("Content-Length", "")) as advance:
            for number, part in enumerate(_in_time(response)):
                if number == 0 and is_web_page(part, response.headers.get("Content-Type", "")):
                    raise _NoFileError("the server sends a web page in the place of the file")
                file.write(part)
                advance(len(part))


@contextmanager
def _bar(length: str) -> Iterator[Callable[[int], object]]:
    """Show how many bytes have arrived, on a terminal; gives what to call with a number of them."""
    from rich.progress import DownloadColumn

    console = error_console()
    if not can_draw(console):
        yield lambda size: None
        return
    with progress_bar(console, DownloadColumn(), is_transient=True) as bar:
        task = bar.add_task("downloading", total=int(length) if length.isdecimal() else None)
        yield partial(bar.advance, task)


def _in_time(response: requests.Response) -> Iterator[bytes]:
    """Yield what arrives, as long as enough does."""
    limit_s, start, arrived = timeout_s(), time.monotonic(), 0
    for part in response.iter_content(_PART_BYTES):
        yield part
        arrived += len(part)
        passed_s = time.monotonic() - start
        if passed_s > limit_s:
            if arrived < SLOWEST * passed_s:
                raise _NoFileError(f"fewer than {SLOWEST:,.0f} bytes a second arrive")
            start, arrived = time.monotonic(), 0


def explain(error: Exception) -> str:
    """Return the message for an error of `requests`."""
    if isinstance(error, (requests.HTTPError, _NoFileError)):
        return str(error)
    if isinstance(error, requests.Timeout) or "Read timed out" in str(error):
        return f"no answer within {timeout_s():g} s (${TIMEOUT_VARIABLE} sets the limit)"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return f"the connection broke before the end of the file: {error}"
    if isinstance(error, requests.ConnectionError):
        # urllib3 wraps the cause in its report of retries.
        wrapped = error.args[0] if error.args else None
        cause = wrapped.reason if isinstance(wrapped, MaxRetryError) else None
        return f"cannot connect: {cause or error}"
    return f"{type(error).__name__}: {error}"


def _message_of(response: requests.Response) -> str:
    """Return what OpenML says of an error, after a colon; nothing of other servers."""
    try:
        start = next(response.iter_content(_MESSAGE_BYTES), b"")
        return f": {visible(str(json.loads(start)['error']['message']))}"
    except (requests.RequestException, RuntimeError, ValueError, KeyError, TypeError):
        return ""


def _is_worth_retrying(error: requests.RequestException) -> bool:
    if error.response is not None:
        return error.response.status_code >= 500 or error.response.status_code == 429
    return not isinstance(error, ValueError)  # a URL that is none


def _pause_s(error: requests.RequestException, attempt: int) -> float:
    """Return how long to wait: as long as the server asks for, or 1 s, 2 s, ..."""
    asked = "" if error.response is None else error.response.headers.get("Retry-After", "")
    return min(float(asked), LONGEST_PAUSE_S) if asked.isdecimal() else float(attempt)


def download_openml(dataset_id: int, folder: Path, any_encoding: bool = False) -> Path:
    """Return the path, inside `folder`, of the file of OpenML's dataset `dataset_id`.

    The client `openml` asks for the description. The file is ARFF, whose checksum OpenML states.
    With `any_encoding` it is Parquet where ARFF cannot be had: OpenML states no checksum of that,
    so the caller must know the values.

    Raises SourceError if OpenML has no such dataset, does not answer, or sends something else.
    """
    about = None
    failures = []
    for server in OPENML:
        try:
            about = _description(dataset_id, server, folder)
            break
        except SourceError as error:
            failures.append(f"OpenML's description: {error}")
    if about is not None and about.url:
        try:
            return _checked(download(about.url, folder), about.md5_checksum or "")
        except SourceError as error:
            failures.append(f"as ARFF: {error}")
    if any_encoding:
        usual = OPENML_PARQUET.format(id=dataset_id, group=dataset_id // 10_000)
        for url in dict.fromkeys([(about and about._parquet_url) or usual, usual]):
            try:
                return download(url, folder)
            except SourceError as error:
                failures.append(f"as Parquet: {error}")
    raise SourceError("; ".join(dict.fromkeys(failures)))


def _description(dataset_id: int, server: str, folder: Path) -> OpenMLDataset:
    """Return what OpenML says of a dataset, among it where its ARFF file is.

    Raises SourceError if the server does not answer, or not with a description.
    """
    import openml  # a second, and few datasets need it

    with _client_settings(server, folder), _time_limit(timeout_s()):
        try:
            about = openml.datasets.get_dataset(dataset_id, download_data=False)
        except openml.exceptions.PyOpenMLError as error:
            raise SourceError(f"the server answers: {visible(str(error))}") from error
        except requests.RequestException as error:
            raise SourceError(explain(error)) from error
        except (KeyError, TypeError, ValueError, ExpatError) as error:
            raise SourceError(f"it is none ({type(error).__name__})") from error
    return about


@contextmanager
def _client_settings(server: str, folder: Path) -> Iterator[None]:
    """Let the client ask `server`, and cache in `folder`: a kill leaves half a file there."""
    from openml import config

    before = config.server, config._root_cache_directory
    policy, retries = config.retry_policy, config.connection_n_retries
    config.server = server
    config.set_root_cache_directory(str(folder / "openml"))
    config.set_retry_policy(policy, RETRIES + 1)
    try:
        yield
    finally:
        config.server = before[0]
        config.set_root_cache_directory(str(before[1]))
        config.set_retry_policy(policy, retries)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Give every request a timeout: the client sets none and would wait for ever."""
    original = requests.Session.request

    def request(self: requests.Session, *args: Any, **kwargs: Any) -> requests.Response:
        kwargs.setdefault("timeout", seconds)
        return original(self, *args, **kwargs)

    requests.Session.request = request  # type: ignore[method-assign]
    try:
        yield
    finally:
        requests.Session.request = original  # type: ignore[method-assign]


def _checked(path: Path, md5: str) -> Path:
    """Return `path`. Raises SourceError if its file is not the one with a checksum, if any."""
    found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    if md5.lower() not in ("", found):
        raise SourceError("OpenML's checksum is not that of the file")
    return path
