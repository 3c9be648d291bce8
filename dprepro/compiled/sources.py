"""Which modules hold kernels, their groups, and the digest of what machine code depends on."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

_DECORATED = re.compile(r"^from dprepro\.compiled import (.*\b)?kernel\b", re.MULTILINE)
_KERNEL = re.compile(r"^@kernel\b", re.MULTILINE)
_IRRELEVANT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
_COMPILED_WITH = {"additive": "exact", "compiled": "exact", "rows": "exact", "llm": "dpboost"}
"""Small packages that have no group of their own, with the group that they belong to."""


@lru_cache
def kernel_modules(package: Path = PACKAGE) -> tuple[str, ...]:
    """Return the names of the modules that import the decorator, sorted."""
    names = (
        ".".join((package.name, *path.relative_to(package).with_suffix("").parts))
        for path in _sources(package)
    )
    return tuple(sorted(names))


def number_of_kernels(groups: Collection[str], package: Path = PACKAGE) -> int:
    """Return how many functions of these groups are compiled."""
    texts = (
        path.read_text(encoding="utf-8")
        for path, module in zip(_sources(package), kernel_modules(package), strict=True)
        if group_of(module) in groups
    )
    return sum(len(_KERNEL.findall(text)) for text in texts)


def group_of(module: str) -> str:
    """Return the group of a module with kernels: they are compiled together, and loaded together.

    A group is a package below dprepro, so that a run compiles no more than its methods use.
    """
    package = module.split(".")[1]
    return _COMPILED_WITH.get(package, package)


def digest(package: Path = PACKAGE) -> str:
    """Return the SHA-256 of what the machine code depends on, as hex digits.

    The text of every module with kernels, this package's, the versions of Python, numba, LLVM and
    numpy, the processor that numba compiles for, and numba's settings. Nothing of numba is
    imported, which takes longer than all the rest.
    """
    settings = Path(".numba_config.yaml")
    parts = [
        sys.version,
        *(f"{name} {importlib.metadata.version(name)}" for name in ("numba", "llvmlite", "numpy")),
        *_processor(),
        settings.read_text() if settings.is_file() else "",
        repr(sorted(i for i in os.environ.items() if _matters(i[0]))),
    ]
    for path in sorted({*_sources(package), *(package / "compiled").glob("*.py")}):
        text = path.read_bytes()
        parts.append(f"{path.relative_to(package).as_posix()} {hashlib.sha256(text).hexdigest()}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _processor() -> tuple[str, str, str]:
    """Return LLVM's triple, the processor's name and its features, as in numba's own key."""
    from llvmlite import binding

    try:
        features = binding.get_host_cpu_features().flatten()
    except RuntimeError:  # a processor of which LLVM knows none
        features = ""
    return binding.get_process_triple(), binding.get_host_cpu_name(), features


def _sources(package: Path) -> list[Path]:
    paths = sorted(package.rglob("*.py"))
    return [path for path in paths if _DECORATED.search(path.read_text(encoding="utf-8"))]


def _matters(variable: str) -> bool:
    return variable.startswith("NUMBA_") and variable not in _IRRELEVANT
