"""Programs of `benchmarks/` as modules, for tests of what they print."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from unittest.mock import patch

from tests.docs.pages import ROOT


def program(name: str) -> ModuleType:
    """Return `benchmarks/NAME.py`, which may import others beside it."""
    with patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
        return importlib.import_module(name)
