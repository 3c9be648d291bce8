"""The places a dataset can come from: local files, http, OpenML, scikit-learn, a generator."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import requests
from scipy.special import logit, ndtri

from dprepro.data.card import Card
from dprepro.data.card_parts import Source, Synthetic
from dprepro.data.cells import convert, holds
from dprepro.data.cleaning import column_kinds
from dprepro.data.files import cached_file, extract_member, file_candidates, find_file
from dprepro.data.formats import line_of_row, read_table
from dprepro.runtime.errors import DpreproError

TIMEOUT_VARIABLE = "DPREPRO_TIMEOUT"
DEFAULT_TIMEOUT_S = 30.0
# Number of further attempts after the connection or the server failed.
RETRIES = 2


class SourceError(Exception):
    """This source cannot provide the data now; the next one may."""


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
    """Return the path, inside `folder`, of the file at `url`.

    Connection failures and server errors (5xx) are tried again `RETRIES` times; a progress bar
    is shown on a terminal.

    Raises SourceError if the server does not answer in time, or not with the whole file.
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


def download_arff(dataset_id: int, folder: Path) -> bytes:
    """Return the bytes of the ARFF file of OpenML's dataset `dataset_id`.

    ARFF rather than parquet, because OpenML publishes a checksum of the ARFF alone, which the
    client verifies. The client writes into `folder` only.

    Raises SourceError if the server has no such dataset, does not answer, or sends something else.
    """
    import openml

    with _client_settings(folder), _time_limit(timeout_s()):
        try:
            dataset = openml.datasets.get_dataset(dataset_id, download_data=True)
            return Path(str(dataset.data_file)).read_bytes()
        except openml.exceptions.OpenMLHashException as error:
            raise SourceError(f"OpenML's checksum is not that of the file: {error}") from error
        except openml.exceptions.PyOpenMLError as error:
            raise SourceError(f"OpenML answers: {error}") from error
        except requests.RequestException as error:
            raise SourceError(explain(error)) from error
        except (KeyError, TypeError, ValueError) as error:
            message = f"OpenML's answer cannot be read: {type(error).__name__}: {error}"
            raise SourceError(message) from error


@contextmanager
def _client_settings(folder: Path) -> Iterator[None]:
    """Let the client cache in `folder`: it writes in place, and a kill leaves half a file."""
    from openml import config

    cache = config._root_cache_directory
    policy, retries = config.retry_policy, config.connection_n_retries
    skip_parquet = os.environ.get(config.OPENML_SKIP_PARQUET_ENV_VAR)
    config.set_root_cache_directory(str(folder))
    config.set_retry_policy(policy, RETRIES + 1)
    os.environ[config.OPENML_SKIP_PARQUET_ENV_VAR] = "true"
    try:
        yield
    finally:
        config.set_root_cache_directory(str(cache))
        config.set_retry_policy(policy, retries)
        if skip_parquet is None:
            del os.environ[config.OPENML_SKIP_PARQUET_ENV_VAR]
        else:
            os.environ[config.OPENML_SKIP_PARQUET_ENV_VAR] = skip_parquet


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


def stand_in(shape: Synthetic, target: str, labels: Sequence[str]) -> pd.DataFrame:
    """Return a table with features x1, x2, ... and a target, all drawn from the shape's seed.

    Numeric features are standard normal numbers with two decimals, half of them skewed; binary
    ones are 0 or 1, the latter in 5 to 50 % of the rows. Each row has a score: the sum of one
    linear or U-shaped effect of every feature, and logistic noise. The rows with the highest scores
    are the positives.

    Parameters
    ----------
    target
        Name of the target's column.
    labels
        The negative and the positive label.

    Notes
    -----
    The table is the same on every machine: only uniform numbers are drawn, whose stream NumPy does
    not change from release to release, and values are rounded.
    """
    rng = np.random.default_rng(shape.seed)
    normal = ndtri(_uniform(rng, shape.rows, shape.numeric))
    skewed = np.arange(shape.numeric) % 2 == 1
    numeric = np.round(np.where(skewed, np.exp(normal), normal), 2)
    rates = 0.05 + 0.45 * rng.random(shape.binary)
    binary = (_uniform(rng, shape.rows, shape.binary) < rates).astype(float)
    effects = np.column_stack([_effects(normal), binary - rates])
    weights = rng.random(effects.shape[1]) - 0.25
    odds = effects @ weights + logit(_uniform(rng, shape.rows, 1)[:, 0])
    is_positive = np.zeros(shape.rows, dtype=int)
    is_positive[np.argsort(-odds, kind="stable")[: shape.positives]] = 1
    names = [f"x{k + 1}" for k in range(shape.numeric + shape.binary)]
    table = pd.DataFrame(np.column_stack([numeric, binary]), columns=names)
    table[target] = np.asarray(labels, dtype=object)[is_positive]
    return table


def _uniform(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw from the open interval (0, 1); NumPy's own includes 0."""
    return np.maximum(rng.random((rows, columns)), 2.0**-53)


def _effects(normal: np.ndarray) -> np.ndarray:
    is_u_shaped = np.arange(normal.shape[1]) % 3 == 2
    return np.where(is_u_shaped, (normal**2 - 1) / np.sqrt(2), normal)


_DOWNLOAD = ".download-"
"""How the names of folders begin into which something is downloaded."""


@dataclass(frozen=True)
class RawTable:
    """A table as it comes from its source.

    Attributes
    ----------
    table
        The parsed table, before cleaning: of Arrow, which has no index that could align anything.
    origin
        Where it came from: a path, a URL, or a name.
    sha256
        The digest of the file. For a pool or a join it is the digest of the files' digests; it is
        empty if there is no file.
    cached
        The downloaded files that it was read from.
    line_of
        Returns the line of the file in which a row begins; None where there are no lines.
    """

    table: pa.Table
    origin: str
    sha256: str = ""
    cached: tuple[Path, ...] = ()
    line_of: Callable[[int], int | None] = lambda row: None

    def __repr__(self) -> str:
        return f"RawTable(origin={self.origin!r})"


def read_source(source: Source, card: Card, data_dir: Path | None, online: bool) -> RawTable:
    """Return the raw table of one of the card's sources.

    Raises SourceError if this source does not have the data, or needs the network and `online` is
    False. Raises DpreproError if a local file is there but is not what the card says.
    """
    if len(source.files) > 1:
        # The names of a pool or a join are those of its parts.
        parts = [part.model_copy(update={"rename": source.rename}) for part in source.files]
        combine = _pooled if source.pool else _joined
        return combine([read_source(part, card, data_dir, online) for part in parts])
    if source.synthetic is not None:
        return _generated(source.synthetic, card)
    if source.kind == "sklearn":
        return _bundled(source, card)
    if source.kind == "file":
        return _local(source, card, data_dir)
    return _remote(source, card, online)


def _pooled(parts: list[RawTable]) -> RawTable:
    first = parts[0]
    for part in parts[1:]:
        if part.table.column_names != first.table.column_names:
            # The names are not quoted: if a file has no header, they are its first row.
            raise DpreproError(
                f"{part.origin}: its columns are not those of {first.origin}, in name, number or "
                "order; pooled files must agree. Compare their first lines"
            )
    names = first.table.column_names
    columns = [
        _stacked([part.table.column(k) for part in parts], names[k]) for k in range(len(names))
    ]
    return _combined(pa.table(columns, names=names), parts)


def _stacked(columns: list[pa.ChunkedArray], name: str) -> pa.ChunkedArray:
    """Return columns one below the other: as they are, if all have one type.

    Raises DpreproError if one holds text and another something else.
    """
    if len({column.type for column in columns}) == 1:
        return pa.chunked_array([c for column in columns for c in column.chunks], columns[0].type)
    kinds = {holds(column.type) for column in columns} - {"nothing"}
    if kinds <= {"numbers", "booleans"}:
        wanted = pa.float64()
    elif kinds == {"text"}:
        wanted = pa.string()
    else:
        raise DpreproError(
            f"column {name!r} is of another type in each of the pooled files: write it as one type"
        )
    chunks = [convert(chunk, wanted) for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, wanted)


def _joined(parts: list[RawTable]) -> RawTable:
    first = parts[0]
    for part in parts[1:]:
        if part.table.num_rows != first.table.num_rows:
            raise DpreproError(
                f"{part.origin} has another number of rows than {first.origin}; joined files "
                "must agree"
            )
    # By position: what one row of each file says is one row.
    columns = [column for part in parts for column in part.table.columns]
    names = [name for part in parts for name in part.table.column_names]
    return _combined(pa.table(columns, names=names), parts)


def _combined(table: pa.Table, parts: list[RawTable]) -> RawTable:
    return RawTable(
        table,
        " + ".join(part.origin for part in parts),
        _digest(" ".join(part.sha256 for part in parts).encode()),
        tuple(path for part in parts for path in part.cached),
    )


def _generated(shape: Synthetic, card: Card) -> RawTable:
    labels = sorted(card.labels or [], key=lambda label: label == card.positive)
    origin = (
        f"a SYNTHETIC stand-in drawn with seed {shape.seed}, not the real data: "
        "results on it say nothing about the printed ones"
    )
    return RawTable(_as_arrow(stand_in(shape, card.target, labels)), origin)


def _as_arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def _bundled(source: Source, card: Card) -> RawTable:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{source.sklearn}")(as_frame=True)
    target = bunch.target
    if card.task != "regression":
        target = target.map(dict(enumerate(map(str, bunch.target_names))))
    return RawTable(_as_arrow(bunch.data.assign(target=target)), "scikit-learn")


def _local(source: Source, card: Card, data_dir: Path | None) -> RawTable:
    path = find_file(str(source.file), card.folder, data_dir)
    if path is None:
        places = file_candidates(str(source.file), card.folder, data_dir)
        raise SourceError(f"no file at {' or '.join(map(str, places))}")
    try:
        data = _unpacked(path.read_bytes(), source)
        digest = _check_sha256(data, source, card)
        table = _parse(data, source, card)
        return RawTable(table, str(path), digest, line_of=_lines(data, source, card))
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DpreproError as error:
        raise DpreproError(f"{path}: {error}") from error


def _remote(source: Source, card: Card, online: bool) -> RawTable:
    path = cached_file(source.kind, card.name, source.filename)
    try:
        data = _cached(path, source)
        if data is None:
            if not online:
                raise SourceError("not downloaded yet")
            data = _fetch(source, card, path)
        origin = str(source.http) if source.http else f"OpenML {source.openml}"
        table = _parse(data, source, card)
        return RawTable(table, origin, _digest(data), (path,), _lines(data, source, card))
    except OSError as error:
        raise SourceError(f"cannot use the cache: {error}") from error
    except DpreproError as error:
        path.unlink(missing_ok=True)
        raise SourceError(str(error)) from error


def _cached(path: Path, source: Source) -> bytes | None:
    if not path.is_file():
        return None
    data = path.read_bytes()
    return data if source.sha256 in (None, _digest(data)) else None


def _fetch(source: Source, card: Card, path: Path) -> bytes:
    """Download a file, unless another process does so in the meantime.

    It waits for that one, and removes what killed ones have left.
    """
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.parent / ".lock")
    with ExitStack() as stack:
        # A file system without locks raises one or the other; it gets on without.
        with suppress(NotImplementedError, OSError):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                print(f"waiting for another process that downloads {card.name}", file=sys.stderr)
                lock.acquire()
            stack.callback(lock.release)
            for left in path.parent.glob(f"{_DOWNLOAD}*"):
                shutil.rmtree(left, ignore_errors=True)
        data = _cached(path, source)
        return _download(source, card, path) if data is None else data


def _download(source: Source, card: Card, path: Path) -> bytes:
    """Download into a temporary folder; move only a complete and correct file to `path`."""
    place = source.http or f"OpenML, dataset {source.openml}"
    print(f"downloading {card.name} from {place}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=_DOWNLOAD) as folder:
        if source.http is not None:
            data = _unpacked(download(source.http, Path(folder)).read_bytes(), source)
        else:
            assert source.openml is not None
            data = download_arff(source.openml, Path(folder))
        _check_sha256(data, source, card)
        whole = Path(folder) / "whole"
        whole.write_bytes(data)
        whole.replace(path)
    return data


def _unpacked(data: bytes, source: Source) -> bytes:
    return extract_member(data, source.member) if source.member else data


def _parse(data: bytes, source: Source, card: Card) -> pa.Table:
    kinds = column_kinds(card, source)
    table = read_table(data, card.format_of(source), kinds, card.missing)
    if source.rows is None:
        return table
    start, stop = source.rows
    return table.slice(start, stop - start)


def _lines(data: bytes, source: Source, card: Card) -> Callable[[int], int | None]:
    first = 0 if source.rows is None else source.rows[0]
    return lambda row: line_of_row(data, card.format_of(source), first + row)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_sha256(data: bytes, source: Source, card: Card) -> str:
    found = _digest(data)
    if source.sha256 not in (None, found):
        # A person who knows all private rows but one could find that one by a digest. The card's
        # digest is not shown either, since it can be that of another state of the same rows.
        seen = (
            f" ({len(data):,} bytes): sha256 expected {source.sha256}, found {found}"
            if card.is_public
            else ": the sha256 is not the one that the card expects"
        )
        raise DpreproError(f"wrong checksum{seen}; the file is damaged or another version")
    return found
