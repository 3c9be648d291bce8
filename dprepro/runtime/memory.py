"""Limited memory (`ulimit -v`): what is settled before large libraries load.

OpenBLAS takes a buffer for each of its threads, and where the system refuses one it asks again
without end. So there are no more threads than fit, and the buffers are taken first.
"""

from __future__ import annotations

import os
import sys

from dprepro.runtime.errors import DpreproError

LEAST = 10**9
"""Bytes of addresses that a command needs: its libraries take 750 MB."""

A_THREAD = 256 * 10**6
"""Bytes of addresses for one more thread of linear algebra: a buffer in NumPy's library and one in
SciPy's, a stack, and the arena of its small allocations."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""What libraries read, as they load, for how many threads they start."""


def limit() -> int | None:
    """Return how many bytes this process may map (``ulimit -v`` or ``-d``), or None if any."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((most for most in limits if most != resource.RLIM_INFINITY), default=None)


def require() -> None:
    """Raise DpreproError where the limit leaves no room for the libraries."""
    most = limit()
    if most is not None and most < LEAST:
        raise DpreproError(
            f"this process may use {most / 10**6:,.0f} MB of addresses (ulimit -v or -d), and "
            f"needs {LEAST / 10**6:,.0f} MB for its libraries alone: raise the limit, e.g. `ulimit "
            "-v unlimited`, or ask whoever set it, often a scheduler, for more memory"
        )


def settle() -> None:
    """Choose threads by what fits, and take the buffers of linear algebra.

    Does nothing where there is no limit, or where NumPy has been imported already: it has read
    the variables by then.
    """
    most = limit()
    if most is None or "numpy" in sys.modules:
        return
    room = 1 + max(0, most - LEAST) // A_THREAD
    for variable in THREAD_VARIABLES:
        given = os.environ.get(variable, "").partition(",")[0]  # OpenMP: one number a level
        if room < (int(given) if given.isdecimal() else os.cpu_count() or 1):
            os.environ[variable] = str(room)
    # Arrow's own reserves 1 GB of addresses, whatever is allocated.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if most >= LEAST:
        _take_buffers()


def _take_buffers() -> None:
    try:
        import numpy as np
        from scipy.linalg.blas import dgemm
    except ImportError:  # whoever needs them says so
        return
    square = np.ones((256, 256))  # smaller products take no buffer
    square @ square
    dgemm(1.0, square, square)
