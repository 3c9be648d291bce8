"""What a throwaway process does: compile the kernels of one group, write them out, end."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from dprepro.runtime import kernels

_NAMES = 500_000
"""More functions than one process compiles."""


def main(place: int, modules: Sequence[str]) -> None:
    """Write the machine code of a group's kernels, those in `modules`, to standard output.

    `place` is the group's among all groups, from 0 on. This process ends when its standard input
    does: nobody wants the code any more.
    """
    threading.Thread(target=_end_with_input, daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # whatever a library prints stays out of it
        _name_apart(place)
        pickle.dump(compile_modules(modules), out)


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _name_apart(place: int) -> None:
    """Let no function of this process have the name in machine code of one of another group's.

    numba numbers functions, and writes the number into the name. The linker takes the copy of a
    name that came first, so what groups with a name in common compute would depend on which was
    loaded first. Here each group has numbers of its own.
    """
    from numba.core.bytecode import FunctionIdentity

    deque(itertools.islice(FunctionIdentity._unique_ids, place * _NAMES), maxlen=0)


def compile_modules(modules: Sequence[str]) -> list[tuple[str, bytes]]:
    """Compile every signature of every kernel, in the order of modules and of their lines.

    Turns this process into one that compiles: to be called in a process of its own.

    Returns
    -------
    list of (str, bytes)
        ``module:name``, and the pickled machine code for one signature.
    """
    kernels.building = True
    for package in sorted({module.rpartition(".")[0] for module in modules}):
        _enter(package)
    for module in modules:
        importlib.import_module(module)
    # In the order of the source, whatever imported what.
    made = sorted((_place(name, it), name, it, texts) for name, (it, texts) in _of(modules))
    results = []
    for _, name, dispatcher, texts in made:
        for text in texts:
            arguments = argument_types(text)
            dispatcher.compile(arguments)
            results.append((name, dispatcher.overloads[arguments]))
    return [(name, _reduced(result)) for name, result in results]


def _enter(package: str) -> None:
    """Let modules of a package be imported without its ``__init__``, which loads estimators."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    sys.modules.setdefault(package, importlib.util.module_from_spec(spec))


def argument_types(text: str) -> tuple[Any, ...]:
    """Return the numba types that a signature names; see `dprepro.runtime.kernels.kernel`."""
    from numba import types

    names = {**vars(types), "const": lambda array: array.copy(readonly=True)}
    # The text is that of our own decorators.
    found = eval(text, {"__builtins__": {}}, names)
    return found if isinstance(found, tuple) else (found,)


def _of(modules: Sequence[str]) -> list[tuple[str, tuple[Any, tuple[str, ...]]]]:
    return [(n, entry) for n, entry in kernels.registered().items() if n.split(":")[0] in modules]


def _place(name: str, dispatcher: Any) -> tuple[str, int]:
    return name.partition(":")[0], dispatcher.py_func.__code__.co_firstlineno


def _reduced(result: Any) -> bytes:
    """Return the machine code of one signature as bytes, pickled by numba's own pickler."""
    from numba.core import serialize

    fields = result._asdict()
    if fields["lifted"] or fields["library"].has_dynamic_globals:
        raise ValueError(f"{result.fndesc.qualname}: machine code with addresses of this process")
    return bytes(serialize.dumps(result._reduce()))
