"""Circumstances under which the same fits must give the same bits, as environment variables.

Compilers and libraries choose other instructions for other processors: numba for the one it finds,
NumPy and OpenBLAS among versions of their loops, the C library among versions of `exp` and `log`.
Each has a switch to make it choose as on another processor. A C library with other last digits is
compiled, and loaded before the system's.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def threads(number: int) -> dict[str, str]:
    """Return how libraries are told how many threads to use."""
    return dict.fromkeys(_THREADS, str(number))


def without_vector_loops() -> dict[str, str]:
    """Return how NumPy is told to use the loops that all processors can run."""
    found = [feature for feature in __cpu_dispatch__ if __cpu_features__.get(feature)]
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(found)} if found else {}


PARTS = {
    "kernels for any processor": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    "NumPy's plain loops": without_vector_loops(),
    "an old processor's matrix products": {"OPENBLAS_CORETYPE": "Prescott"},
    "a plain C library": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4"},
    "one thread": threads(1),
    "four threads": threads(4),
}
"""Each by itself, to find out which of them changes bits."""

CONDITIONS = {
    "an old processor, one thread": {
        name: value
        for part in PARTS
        if part != "four threads"
        for name, value in PARTS[part].items()
    },
    "this processor, four threads": threads(4),
}

COMPILER = shutil.which("cc")
"""Compiles the other C library; None where there is none."""


def other_library(folder: Path, off_by: float) -> dict[str, str]:
    """Return how `exp`, `log`, `pow` and others are made to err in last digits, where they can.

    `off_by` is by how many units of the last digit, beside rounding: other C libraries err by up to
    a half. NumPy's own loops do not call them, so it is told to use plain ones. `folder` gets what
    is compiled.
    """
    library = folder / "other_library.so"
    source = Path(__file__).with_name("other_library.c")
    options = ["-O2", "-fno-builtin", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    subprocess.run([str(COMPILER), *options], check=True, capture_output=True)
    return {"LD_PRELOAD": str(library), "OFF_BY": str(off_by), **without_vector_loops()}
