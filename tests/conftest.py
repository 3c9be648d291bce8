"""Fixtures shared by all tests."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
import typer.testing

from dprepro.runtime.files import cache_dir
from dprepro.runtime.kernels import FOLDER_VARIABLE

ROOT = Path(__file__).resolve().parent.parent
LONG = ROOT / "tests" / "long.txt"

collect_ignore = ["runtime/as_windows"]  # whoever imports it loses what Windows lacks


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `long.txt`, before pytest leaves out what was not asked for."""
    long = {
        line for line in LONG.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    }
    for item in items:
        if item.nodeid in long or item.nodeid.partition("[")[0] in long:
            item.add_marker("long")


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never among what was collected: it stays until the end."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _register_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the register of private data out of the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPREPRO_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> Iterator[None]:
    """Let tests that move the cache, and the processes they start, find the compiled kernels."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get(FOLDER_VARIABLE):
            patch.setenv(FOLDER_VARIABLE, str(cache_dir() / "kernels"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _commands_built_once() -> Iterator[None]:
    """Typer would read all commands anew, from their signatures, at every call: 23 ms each."""
    built = functools.cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", built)
        patch.setattr(typer.testing, "_get_command", built)
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real datasets (`DPREPRO_DATA`); without it tests skip, but fail in CI."""
    folder = os.environ.get("DPREPRO_DATA")
    if folder and (Path(folder) / "adult" / "adult.data").is_file():
        return Path(folder).resolve()
    message = f"DPREPRO_DATA is {folder!r}: no adult/adult.data there"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
