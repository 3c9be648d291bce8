"""Machine code from Python: `kernel` is what the numeric modules use in place of ``numba.njit``."""

from dprepro.compiled.kernels import kernel, prepare
from dprepro.compiled.sources import kernel_modules

__all__ = ["kernel", "kernel_modules", "prepare"]
