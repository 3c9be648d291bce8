"""Datasets: cards, sources, formats, public domains and encodings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dprepro.data.dataset import Dataset

SYNTHETIC_PREFIX = "synthetic-"
"""What the fingerprint of a stand-in begins with, so that no result hides what it was made of."""

PRIVATE_PREFIX = "private-"
"""What the fingerprint of private rows begins with; see `dprepro.data.register`."""


def says_private(fingerprint: str) -> bool:
    """Whether a card's fingerprint is of private rows, the donors' own test rows included."""
    return any(part.startswith(PRIVATE_PREFIX) for part in fingerprint.split("+"))


def load(
    name_or_path: str | Path,
    data_dir: Path | None = None,
    online: bool = True,
    with_test: bool = False,
) -> Dataset:
    """Return the verified dataset of a built-in card, or of the card at a path.

    See `dprepro.data.loading.load`, which it calls: pandas is not imported before.
    """
    from dprepro.data import loading

    return loading.load(name_or_path, data_dir, online, with_test)
