"""Machine code from Python: `kernel` is what the numeric modules use in place of ``numba.njit``."""

from dprepro.compiled.kernels import compile_once, kernel, prepare
from dprepro.compiled.sources import kernel_modules

__all__ = ["compile_once", "kernel", "kernel_modules", "prepare"]
