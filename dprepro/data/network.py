"""Download over http, with a time limit, repeated attempts and plain error messages."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from dprepro.errors import DpreproError

TIMEOUT_VARIABLE = "DPREPRO_TIMEOUT"
DEFAULT_TIMEOUT_S = 30.0
# Number of further attempts after the connection or the server failed.
RETRIES = 2


class SourceError(Exception):
    """This source cannot provide the data now; the next one may."""


def timeout_s() -> float:
    """Return the longest wait for a server, in seconds: ``$DPREPRO_TIMEOUT`` or 30.

    Raises
    ------
    DpreproError
        If the variable is not a positive number.
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
    """Return the path, inside `folder`, of the file at `url`.

    Connection failures and server errors (5xx) are tried again `RETRIES` times; a progress bar
    is shown on a terminal.

    Raises
    ------
    SourceError
        If the server does not answer in time, or not with the whole file.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # the progress bar says enough
    downloader = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), chunk_size=1 << 16, timeout=timeout_s()
    )
    for attempts_left in reversed(range(RETRIES + 1)):
        try:
            # The digest is not checked here: it may be that of a member of this archive.
            return Path(pooch.retrieve(url, None, "download", folder, downloader=downloader))
        except requests.RequestException as error:
            if attempts_left == 0 or not _worth_retrying(error):
                raise SourceError(explain(error)) from error
        except ValueError as error:  # a URL that pooch cannot take
            raise SourceError(str(error)) from error
        time.sleep(RETRIES + 1 - attempts_left)
    raise AssertionError("the last attempt returns or raises")


def explain(error: Exception) -> str:
    """Return the message for an error of `requests`."""
    import requests

    response = getattr(error, "response", None)
    if isinstance(error, requests.HTTPError) and response is not None:
        return f"the server answers {response.status_code} {response.reason}"
    if isinstance(error, requests.Timeout) or "Read timed out" in str(error):
        return f"no answer within {timeout_s():g} s (${TIMEOUT_VARIABLE} sets the limit)"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return f"the connection broke before the end of the file: {error}"
    if isinstance(error, requests.ConnectionError):
        # urllib3 wraps the cause in its report of retries.
        cause = getattr(error.args[0], "reason", None) if error.args else None
        return f"cannot connect: {cause or error}"
    return f"{type(error).__name__}: {error}"


def _worth_retrying(error: Exception) -> bool:
    response = getattr(error, "response", None)
    return response is None or response.status_code >= 500
