"""Marks are what was written, or nothing."""

from __future__ import annotations

import numpy as np

from dprepro.rows.store import ChunkProgress


def test_a_mark_is_what_was_written_or_nothing() -> None:
    words = np.zeros(3, np.uint64)
    marks = ChunkProgress(words)
    assert [marks[0], marks[1]] == [None, None]
    for number in (0, 1, 2**31, 2**32 - 2):
        marks[1] = number
        assert (marks[1], ChunkProgress(words.copy())[1], marks[0], marks[2]) == (
            number,
            number,
            None,
            None,
        )
    marks[1] = None
    assert not words.any()
