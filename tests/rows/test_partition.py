"""Rows are counted by their codes as NumPy counts them."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.rows.partition import count_rows


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_rows_are_counted_by_their_codes(dtype: type, rows: int) -> None:
    codes = np.random.default_rng(0).integers(0, 200, rows).astype(dtype)
    counts = count_rows(codes, 256)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, np.bincount(codes, minlength=256))
