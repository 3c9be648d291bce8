"""The folders of the built-in configs, cards and results: in the wheel, or in the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """Return the checkout, which has documents, tests and benchmarks, too; None in a wheel."""
    return _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else None


def builtin(kind: Literal["configs", "datasets", "results"]) -> Path:
    """Return the folder of the built-in `kind`.

    A wheel carries it inside the package; an editable install finds it in the checkout.
    """
    packaged = _PACKAGE / f"_{kind}"
    return packaged if packaged.is_dir() else _PACKAGE.parent / kind
