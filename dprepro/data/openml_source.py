"""Download a dataset's ARFF file with the OpenML client, with a time limit and its cache apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from dprepro.data import network
from dprepro.data.network import SourceError


def download_arff(dataset_id: int, folder: Path) -> bytes:
    """Return the bytes of the ARFF file of OpenML's dataset `dataset_id`.

    ARFF rather than parquet, because OpenML publishes a checksum of the ARFF alone, which the
    client verifies. The client writes into `folder` only.

    Raises
    ------
    SourceError
        If the server has no such dataset, does not answer, or sends something else.
    """
    import openml

    with _client_settings(folder), _time_limit(network.timeout_s()):
        try:
            dataset = openml.datasets.get_dataset(dataset_id, download_data=True)
            return Path(str(dataset.data_file)).read_bytes()
        except openml.exceptions.OpenMLHashException as error:
            raise SourceError(f"OpenML's checksum is not that of the file: {error}") from error
        except openml.exceptions.PyOpenMLError as error:
            raise SourceError(f"OpenML answers: {error}") from error
        except requests.RequestException as error:
            raise SourceError(network.explain(error)) from error
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
    config.set_retry_policy(policy, network.RETRIES + 1)
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
