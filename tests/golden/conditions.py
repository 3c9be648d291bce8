"""Circumstances under which the same fits must give the same bits, as environment variables.

Compilers and libraries choose other instructions for other processors: numba for the one it finds,
NumPy and OpenBLAS among versions of their loops, the C library among versions of `exp` and `log`.
Each has a switch to make it choose as on another processor.
"""

from __future__ import annotations

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
