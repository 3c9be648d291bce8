from __future__ import annotations

import numpy as np

from dprepro.methods.dp_ebm.queries import Boosted, MergeCells


def test_the_noise_of_each_step_has_its_own_factor() -> None:
    release = Boosted(np.zeros((2, 1)), 3.0, np.array([1.0, 0.5]), [])
    np.testing.assert_array_equal(release.scales, [3.0, 1.5])


def test_merging_cells_tells_bins() -> None:
    assert MergeCells(0, np.array([0, 1])).tells_bins
