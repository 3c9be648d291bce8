"""How long audits take, from a few runs of each: said before the first of thousands."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable

from threadpoolctl import threadpool_limits

from dprepro.audit.case import Case

_TIMED = 5
"""Runs of which the middle one counts: another program may take the processor for a moment."""


def expected_seconds(cases: Iterable[tuple[Case, int]], jobs: int) -> float:
    """Return about how long audits take, at most: so many runs of each case.

    Cases that share their runs count once.

    The first run of a case in either world counts once: it compiles, encodes, or looks for the
    scale of its noise. All others are taken to last as long as some that follow. An audit that
    refutes its guarantee ends early.

    Parameters
    ----------
    jobs
        Worker processes; those beyond the processors gain nothing.
    """
    at_once = min(jobs, os.cpu_count() or 1)
    with threadpool_limits(1):  # as in an audit
        # Any of those that share runs will do.
        made = {(case.runs_of, case.task, runs): (case, runs) for case, runs in cases}
        return sum(_seconds(case, runs, at_once) for case, runs in made.values())


def _seconds(case: Case, runs: int, at_once: int) -> float:
    # The seeds are any: what these runs show is thrown away.
    first = sum(_timed(case, present, seed=0) for present in (False, True))
    later = [_timed(case, bool(seed % 2), seed) for seed in range(_TIMED)]
    return first + statistics.median(later) * runs / at_once


def _timed(case: Case, present: bool, seed: int) -> float:
    begun = time.perf_counter()
    case.observe(case.fit(present, seed))
    return time.perf_counter() - begun
