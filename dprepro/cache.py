"""The folder of what can be made or downloaded again."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "DPREPRO_CACHE"


def cache_dir() -> Path:
    """Return the folder: ``$DPREPRO_CACHE``, or the user's cache. May not exist."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given).expanduser() if given else platformdirs.user_cache_path("dprepro")
