"""What the throwaway process does: compile every kernel of the package, write one file, end."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dprepro.compiled import kernels
from dprepro.compiled.bundle import sealed
from dprepro.compiled.sources import kernel_modules

NOT_WRITTEN = 74
"""Exit code where the file could not be written: sysexits' EX_IOERR."""


def main(target: Path) -> int:
    """Compile all kernels into the file `target`; return the exit code.

    The file is there whole or not at all.
    """
    content = sealed(pickle.dumps(list(compile_all())))
    partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return NOT_WRITTEN
    return 0


def compile_all() -> Iterator[tuple[str, bytes]]:
    """Compile every signature of every kernel, in the order of modules and of their lines.

    Yields
    ------
    name, compiled : str, bytes
        ``module:name``, and the pickled machine code for one signature.
    """
    kernels.building = True
    for module in kernel_modules():
        importlib.import_module(module)
    # In the order of the source, whatever imported what.
    made = sorted(kernels.registered().items(), key=_place)
    results = []
    for name, (dispatcher, signatures) in made:
        for text in signatures:
            arguments = argument_types(text)
            dispatcher.compile(arguments)
            results.append((name, dispatcher.overloads[arguments]))
    for name, result in results:
        yield name, reduced(result)


def argument_types(text: str) -> tuple[Any, ...]:
    """Return the numba types that a signature names; see `dprepro.compiled.kernel`."""
    from numba import types

    names = {**vars(types), "const": lambda array: array.copy(readonly=True)}
    # The text is that of our own decorators.
    found = eval(text, {"__builtins__": {}}, names)
    return found if isinstance(found, tuple) else (found,)


def reduced(result: Any) -> bytes:
    """Return the machine code of one signature as bytes, pickled by numba's own pickler."""
    from numba.core import serialize

    if result.lifted or result.library.has_dynamic_globals:
        raise ValueError(f"{result.fndesc.qualname}: machine code with addresses of this process")
    return bytes(serialize.dumps(result._reduce()))


def _place(entry: tuple[str, tuple[Any, tuple[str, ...]]]) -> tuple[str, int]:
    name, (dispatcher, _) = entry
    return name.partition(":")[0], dispatcher.py_func.__code__.co_firstlineno
