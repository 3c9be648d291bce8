"""Datasets: cards, sources, formats, public domains and encodings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dprepro.data.dataset import Dataset

SYNTHETIC_PREFIX = "synthetic-"
"""The beginning of a stand-in's fingerprint: results on synthetic rows can be recognised by it."""

PRIVATE_PREFIX = "private-"
"""The beginning of the fingerprint of private rows; see `dprepro.data.register`."""


def says_private(fingerprint: str) -> bool:
    """Whether a fingerprint is that of private rows, in the training or the test file."""
    return any(part.startswith(PRIVATE_PREFIX) for part in fingerprint.split("+"))


def load(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    online: bool = True,
    with_test: bool = False,
) -> Dataset:
    """Load and verify the dataset of a built-in card, or of the card at a path.

    Parameters
    ----------
    name_or_path
        For example ``"adult"`` or ``"my/card.yaml"``. A path is preferred to a name.
    data_dir
        Folder of local files. None means ``$DPREPRO_DATA``, or else ``files`` in the cache.
    online
        Whether missing files may be downloaded.
    with_test
        Whether the published test rows are loaded, too, if the card has them.

    Raises
    ------
    DpreproError
        If the card is not valid, a local file is not what the card says, or no source has the
        data.
    ValueError
        If a parameter is of another type; the message names it.

    Examples
    --------
    >>> from dprepro import load
    >>> load("breast-cancer").X.shape  # comes with scikit-learn
    (569, 30)
    """
    from dprepro.data import loading
    from dprepro.runtime.arguments import OrNone, flag, path
    from dprepro.runtime.arguments import name_or_path as as_name_or_path

    return loading.load(
        as_name_or_path("name_or_path", name_or_path),
        OrNone(path)("data_dir", data_dir),
        flag("online", online),
        flag("with_test", with_test),
    )
