"""Atomic operations for kernels: counters that all threads see, and sums of pairs of numbers.

A thread publishes how far it is; the others wait until it is far enough. What a thread wrote before
it published can then be read. A pass over few rows takes some microseconds, and waking a sleeping
thread takes longer than that: so a thread that waits keeps looking, and after a while lets other
threads run in between. Two numbers next to each other are added to at once, which LLVM does not do
by itself here.
"""

from __future__ import annotations

import sys
from typing import Any

from dprepro.runtime import kernels
from dprepro.runtime.kernels import kernel

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


def _add(table: Any, row: Any, first: Any, second: Any) -> None:
    """Add to ``table[row, 0]`` and ``table[row, 1]``."""
    table[row, 0] += first
    table[row, 1] += second


def _intrinsic() -> Any:
    """Return what LLVM makes of the function above: one addition of two numbers of 64 bits."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    place = ir.IntType(32)

    @intrinsic
    def add(_: Any, table: Any, row: Any, first: Any, second: Any) -> Any:
        whole = table.dtype == types.int64
        given = types.int32 if whole else types.float32
        kinds = (ir.IntType(64), ir.IntType(32)) if whole else (ir.DoubleType(), ir.FloatType())
        wide, narrow = (ir.VectorType(kind, 2) for kind in kinds)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, number, *added = arguments
            found = context.make_array(signature.args[0])(context, builder, array)
            start = builder.mul(number, ir.Constant(number.type, 2))
            pointer = builder.bitcast(builder.gep(found.data, [start]), wide.as_pointer())
            pair = ir.Constant(narrow, ir.Undefined)
            for k, value in enumerate(added):
                pair = builder.insert_element(pair, value, ir.Constant(place, k))
            before = builder.load(pointer, align=8)
            if whole:
                after = builder.add(before, builder.sext(pair, wide))
            else:
                after = builder.fadd(before, builder.fpext(pair, wide))
            builder.store(after, pointer, align=8)
            return context.get_dummy_value()

        return types.void(table, types.intp, given, given), generate

    return add


if kernels.building:
    _add = _intrinsic()


@kernel(inline="always")
def add_pair(table, row, first, second):  # type: ignore[no-untyped-def]
    """Add `first` to ``table[row, 0]`` and `second` to ``table[row, 1]``.

    `table` is float64 (rows, 2) and `first` and `second` are float32, or int64 and int32;
    C-contiguous. `row` is not checked.
    """
    _add(table, row, first, second)
