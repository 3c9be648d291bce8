"""What this core can do at best: the ceilings under which the kernel works."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

ROWS = (2_000, 20_000, 200_000, 1_000_000)
"""Rows whose float32 and two codes lie in the first, second, third level of a usual cache."""

_fast: Any = {"fastmath": True, "error_model": "numpy"}


@njit(**_fast)
def _stream(loops, state, codes, others, factor):  # type: ignore[no-untyped-def]
    """Read and write 4 bytes a row and read 2 x 1: a step's traffic with next to no arithmetic."""
    total = 0
    for _ in range(loops):
        for i in range(state.size):
            state[i] *= factor
            total += codes[i] ^ others[i]
    return total


@njit(**_fast)
def _reciprocals(loops, state):  # type: ignore[no-untyped-def]
    """Sum 1 / (1 + x): the one division of a logistic residual."""
    one, total = np.float32(1), np.float32(0)
    for _ in range(loops):
        for i in range(state.size):
            total += one / (one + state[i])
    return total


def ceilings(repeats: int) -> list[dict[str, Any]]:
    """Nanoseconds a row of bare traffic and of bare division."""
    results = []
    for rows in ROWS:
        state, codes = np.ones(rows, np.float32), np.zeros((2, rows), np.uint8)
        loops = max(1, 10**7 // rows)
        traffic = _best(repeats, _stream, loops, state, codes[0], codes[1], np.float32(1))
        division = _best(repeats, _reciprocals, loops, state)
        results.append(
            {
                "rows": f"{rows:,}",
                "10 bytes, ns": traffic / (loops * rows),
                "GB/s": 10 * loops * rows / traffic,
                "1 / (1 + x), ns": division / (loops * rows),
            }
        )
    return results


def _best(repeats: int, run: Callable[..., object], *arguments: Any) -> float:
    """Return the ns of the fastest call, after one that compiles."""
    run(*arguments)
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        run(*arguments)
        seconds.append(time.process_time() - start)
    return min(seconds) * 1e9
