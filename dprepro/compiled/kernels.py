"""The decorator. The process that computes loads machine code, and never makes any.

Why: an object file carries a copy of each function that it calls, and the linker takes the copy
that came first into the process. So a process that has compiled a callee for itself runs another
copy than one that found everything in a cache: with fast-math, other bits. Here all kernels of a
group are compiled by one process that does nothing else (`dprepro.compiled.build`), every process
loads all of them, in one order, and no two groups have a numbered name in common.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

building = False
"""Whether this process compiles: `dprepro.compiled.build` sets it before it imports kernels."""

_registered: dict[str, tuple[Any, tuple[str, ...]]] = {}
_loading = threading.RLock()
_loaded: set[str] = set()


def kernel(*signatures: str, **options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba, once a machine; numba itself is imported by the first call.

    Parameters
    ----------
    *signatures
        What Python calls it with: argument types as numba writes them, such as
        ``"(float32[::1], int64)"``. ``const(...)`` around an array takes what is read-only as well,
        ``[:]`` instead of ``[::1]`` any strides. A kernel that only other kernels call needs none.
    **options
        Those of ``numba.njit``, such as ``fastmath``; ``nogil`` is set.

    Returns
    -------
    callable
        Calls raise TypeError for other types of arguments, and DpreproError if the kernels cannot
        be compiled.
    """

    def decorate(function: Function) -> Function:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return function
        name = f"{function.__module__}:{function.__qualname__}"
        made: Any
        if building:  # without the wrapper for Python where only other kernels call
            made = _dispatcher(function, {**options, "no_cpython_wrapper": not signatures})
        else:
            made = Kernel(name, function, options)
        _registered[name] = (made, signatures)
        return cast(Function, made)

    return decorate


def registered() -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Return kernels and their signatures by ``module:name``, of the modules imported so far."""
    return dict(_registered)


def compile_once() -> None:
    """Compile the kernels of the modules imported so far where this machine has not; load none.

    Says so before it compiles.

    Raises
    ------
    DpreproError
        If they cannot be compiled.
    """
    from dprepro.compiled import bundle

    bundle.made(_groups(), announce=True)


def prepare() -> None:
    """Load the kernels of the modules imported so far; else the first call of a kernel does it.

    Raises
    ------
    DpreproError
        If this machine has not compiled them, and cannot.
    """
    from dprepro.compiled import bundle

    bundle.made(_groups())  # two at a time
    for group in sorted(_groups()):
        _load(group)


def _groups() -> set[str]:
    """Return the groups of the modules imported so far."""
    from dprepro.compiled.sources import group_of

    return {group_of(name.partition(":")[0]) for name in _registered}


def _load(group: str) -> None:
    with _loading:
        if group in _loaded:
            return
        from dprepro.compiled import bundle
        from dprepro.compiled.sources import group_of, kernel_modules

        code = bundle.load(group)
        for module in kernel_modules():
            if group_of(module) == group:
                importlib.import_module(module)
        for name, compiled in code:
            _registered[name][0].take(compiled)
        _loaded.add(group)


class Kernel:
    """A compiled function, loaded by its first call. `py_func` is the function as written."""

    def __init__(self, name: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.name = name
        self.py_func = function
        self.run: Any = None
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        if self.run is None:
            from dprepro.compiled.sources import group_of

            _load(group_of(self.py_func.__module__))
            self.close()
        try:
            return self.run(*arguments)
        except TypeError as error:
            if "No matching definition" not in str(error):
                raise
            raise TypeError(
                f"{self.name} is not compiled for these arguments ({error}), only for "
                f"{', '.join(_registered[self.name][1])}; add theirs to its @kernel(...)"
            ) from None

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    def take(self, compiled: Any) -> None:
        """Take over machine code for one signature, as `dprepro.compiled.build` wrote it.

        numba does the same with what comes from its own cache.
        """
        from numba.core.compiler import CompileResult

        if self._dispatcher is None:
            self._dispatcher = _dispatcher(self.py_func, self._options)
        target = self._dispatcher.targetctx
        target.refresh()
        result = CompileResult._rebuild(target, *compiled)
        fields = result._asdict()
        target.insert_user_function(fields["entry_point"], fields["fndesc"], [fields["library"]])
        self._dispatcher.add_overload(result)

    def close(self) -> None:
        """Refuse other signatures from now on; compiling them would change what is linked."""
        if self._dispatcher is None:
            self.run = self._refuse
        else:
            self._dispatcher.disable_compile()
            self.run = self._dispatcher

    def _refuse(self, *arguments: Any) -> Any:
        from numba import typeof

        given = ", ".join(str(typeof(argument)) for argument in arguments)
        raise TypeError(
            f"{self.name} is compiled for calls from other kernels only, and was called with "
            f"({given}); name these types in its @kernel(...)"
        )


def _dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    from numba import njit

    # Without the wrapper for C, which nobody calls.
    return njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
