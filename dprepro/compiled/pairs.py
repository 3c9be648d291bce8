"""Two numbers next to each other are added to at once, which LLVM does not do by itself here."""

from __future__ import annotations

from typing import Any

from dprepro.compiled import kernel, kernels


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
