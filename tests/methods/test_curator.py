"""What hands rows to a library does it once, and lets nobody else have them."""

import numpy as np
import pytest

from dprepro.estimators.inputs import Arrays
from dprepro.methods.diffprivlib_curator import DiffprivlibCurator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import REPLACE_ONE


class OneLibrary(DiffprivlibCurator):
    relations = frozenset({REPLACE_ONE})


def curator(seed=None, kind=OneLibrary):
    rows = Private(Arrays(np.zeros((2, 1)), np.zeros(2)))
    return kind(rows, Ledger(1.0, 0.0, REPLACE_ONE), seed, ())


def test_a_curator_of_a_library_has_to_state_its_relations():
    with pytest.raises(SensitivityError, match="hold under no relation"):
        curator(kind=DiffprivlibCurator)


def test_a_curator_of_a_library_keeps_its_rows_wrapped_and_takes_no_instructions():
    made = curator()
    with pytest.raises(PrivateRowsError):
        made._rows.open()
    with pytest.raises(TypeError, match="queries only"):
        made._follow(None)


def test_a_library_that_failed_does_not_get_the_rows_again():
    made = curator()
    with (
        pytest.raises(ValueError, match="an array must hold numbers") as error,
        made._handing_over(),
    ):
        raise ValueError("could not convert string to float: 'secret'")
    assert "secret" not in str(error.value)
    with pytest.raises(BudgetError, match="one use"), made._handing_over():
        raise AssertionError("the rows were handed over again")


def test_a_fixed_seed_of_the_librarys_noise_is_listed():
    assert not curator()._source.ledger.unaccounted
    assert "fixed seed" in curator(seed=3)._source.ledger.unaccounted[0]
