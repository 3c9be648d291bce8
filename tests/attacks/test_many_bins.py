"""More than 256 bins: codes of one byte wrap, and a row is in several leaves of a step.

That is no matter of low bits, but of what is spent: a fit at epsilon 0.5 spent more.
"""

import numpy as np
import pytest

from tests.attacks import standin, twins

STEPS = 4


def norms(leaves):
    """Return the L2 norm of the row's part in each step, in units of its residual."""
    return np.sqrt((leaves**2).sum(axis=1))


def test_a_row_of_wrapped_codes_spends_more_than_is_stated():
    leaves, ledger = standin.leaves_of_twins(STEPS, seed=0)
    assert norms(leaves).max() == pytest.approx(np.sqrt(3))
    assert twins.spent_epsilon(leaves, ledger) > 1.1 * twins.EPSILON


def test_a_row_of_the_shipped_codes_spends_what_is_stated():
    leaves, ledger = twins.leaves(STEPS, seed=0)
    assert leaves.shape == (STEPS * twins.FEATURES, 3)
    np.testing.assert_array_equal(norms(leaves), 1.0)
    np.testing.assert_array_equal(leaves.sum(axis=1), 1)
    spent = twins.spent_epsilon(leaves, ledger)
    assert 0.99 * twins.EPSILON < spent <= twins.EPSILON * (1 + 1e-6)
