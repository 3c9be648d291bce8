"""What a row adds to the histograms, whichever cell it lies in: the code of that cell, once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.bins import histogram
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.grid import grid_edges
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT, CodedHistogram

NUMBER = NumericFeature("x", -1.0, 1e3, missing=True)
CATEGORY = CategoricalFeature("c", ("a", "b"), missing=True)


def values(feature: NumericFeature | CategoricalFeature) -> list[object]:
    """Return a value of each cell, in order; the last one is missing."""
    if isinstance(feature, CategoricalFeature):
        return [*feature.categories, None]
    return [feature.lower, *grid_edges(feature), np.nan]


@pytest.mark.parametrize("feature", [NUMBER, CATEGORY], ids=["number", "category"])
@pytest.mark.parametrize("deviation", [1e-3, 5.0, 1e3])
def test_a_row_adds_the_code_of_its_cell_and_no_more_than_is_charged(feature, deviation) -> None:
    code = histogram(0, feature, deviation, 1000.0).code
    query, norms = CodedHistogram.of(code), []
    for cell, value in enumerate(values(feature)):
        column = pd.Series([value], dtype=object if feature is CATEGORY else float)
        rows = Rows(pd.DataFrame({feature.name: column}), np.zeros(1))
        exact = ExactAnswers.of(rows, Domain((feature,), ("0", "1")), LOGISTIC)
        found = exact.answer(query).value
        np.testing.assert_allclose(found, code.weights * code.mix[:, cell] * CENTRE_UNIT)
        norms.append(np.linalg.norm(found))
    assert len(norms) == code.n_bins
    assert 0.99 * query.charged < max(norms) <= query.charged
