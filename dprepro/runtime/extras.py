"""Libraries that are installed on request alone: what needs one says how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dprepro.runtime.errors import DpreproError

EXTRAS = frozenset({"aplr", "dask", "encrypted", "interpret", "onnx", "plot", "torch"})
"""The extras of the package that add something to it; `all` stands for all of them."""


def how_to_install(extra: str) -> str:
    """Return the command that installs one of `EXTRAS`."""
    return f"pip install 'dprepro[{extra}]'"


@contextmanager
def needs_extra(
    extra: str, purpose: str, more: str = "", error: type[DpreproError] = DpreproError
) -> Iterator[None]:
    """Import libraries of an extra in this context.

    Parameters
    ----------
    extra
        One of `EXTRAS`.
    purpose
        What needs which library, such as "pictures need Matplotlib".
    more
        What follows the command in the message, with the punctuation before it.
    error
        The kind of error.

    Raises
    ------
    DpreproError
        Or `error`, if a library cannot be imported: the message names the command.
    """
    try:
        yield
    except ImportError as missing:
        raise error(f"{purpose}: {how_to_install(extra)}{more}") from missing
