"""Machine code from Python: `kernel` is what the numeric modules use in place of ``numba.njit``."""

from dprepro.compiled.kernels import kernel, prepare

__all__ = ["kernel", "prepare"]
