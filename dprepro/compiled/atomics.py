"""How threads that run one kernel together wait for each other: counters that all of them see.

A thread publishes how far it is; the others wait until it is far enough. What a thread wrote before
it published can then be read. A pass over few rows takes some microseconds, and waking a sleeping
thread takes longer than that: so a thread that waits keeps looking, and after a while lets other
threads run in between.
"""

from __future__ import annotations

import sys
from typing import Any

from dprepro.compiled import kernel, kernels

LINE = 16
"""int64 numbers on two cache lines: what threads write to must be that far apart, or each write of
one slows the others down."""

_PATIENCE = 2000
"""How often a thread looks before it lets others run."""


def _load(counters: Any, place: Any) -> Any:
    """Return a counter, and all that was written before it was published."""
    return counters[place]


def _store(counters: Any, place: Any, value: Any) -> None:
    """Publish a counter, and all that was written before."""
    counters[place] = value


def _let_others_run() -> None:
    """Give the processor to another thread that waits for it."""


def _intrinsics() -> tuple[Any, Any, Any]:
    """Return what LLVM makes of the three functions above."""
    from numba.core import types
    from numba.extending import intrinsic

    def address(context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> Any:
        found = context.make_array(array_type)(context, builder, array)
        return builder.gep(found.data, [place])

    @intrinsic
    def load(_: Any, counters: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = address(context, builder, signature.args[0], *arguments)
            return builder.load_atomic(pointer, "acquire", 8)

        return types.int64(counters, types.intp), generate

    @intrinsic
    def store(_: Any, counters: Any, place: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = address(context, builder, signature.args[0], *arguments[:2])
            builder.store_atomic(arguments[2], pointer, "release", 8)
            return context.get_dummy_value()

        return types.void(counters, types.intp, types.int64), generate

    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
    let_others_run = types.ExternalFunction(name, types.int32())

    return load, store, let_others_run


if kernels.building:
    _load, _store, _let_others_run = _intrinsics()


@kernel()
def publish(counters, thread, value):  # type: ignore[no-untyped-def]
    """Let the other threads see that this one has got to `value`, and what it wrote until then."""
    _store(counters, thread * LINE, value)


@kernel()
def wait_for_all(counters, value):  # type: ignore[no-untyped-def]
    """Return when every thread has got to `value`.

    `counters` is int64 (`LINE` x threads,), of which each thread has every `LINE`th.
    """
    for thread in range(counters.size // LINE):
        looks = 0
        while _load(counters, thread * LINE) < value:
            looks += 1
            if looks == _PATIENCE:
                looks = 0
                _let_others_run()
