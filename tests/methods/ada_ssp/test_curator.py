"""The second moments: exact, noised once, and no row moves them further than is charged."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.ada_ssp.curator import (
    TARGET_WEIGHT,
    ExactMoments,
    Moments,
    MomentsCurator,
    moments_sensitivity,
)
from dprepro.methods.bounded_norm_encoding import UNIT, UnitRows
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE

BOUNDS = (-2.0, 6.0)
DOMAIN = Domain(
    (NumericFeature("x", 0, 1), NumericFeature("z", 0, 1), CategoricalFeature("c", ("a", "b"))),
    BOUNDS,
)


def rows(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(n), "z": rng.random(n), "c": rng.choice(["a", "b"], n)})
    return frame, rng.uniform(-3, 7, n)


def curator(knots=2, epsilon=1.0, relation=ADD_REMOVE, seed=None):
    frame, y = rows()
    ledger = Ledger(epsilon, 1e-6, relation)
    return MomentsCurator(Private(Rows(frame, y)), DOMAIN, knots, ledger, seed)


def exact(frame, y, knots):
    return ExactMoments(UnitRows(DOMAIN, knots).encode(frame), y, BOUNDS).moments()


@pytest.mark.parametrize("knots", [2, 4])
def test_the_moments_are_those_of_the_encoded_rows(knots):
    frame, y = rows()
    x = UnitRows(DOMAIN, knots).encode(frame).toarray() * UNIT
    t = np.clip((y - 2) / 4, -1, 1)
    found = exact(frame, y, knots).value
    columns = x.shape[1]
    np.testing.assert_allclose(found[:-columns], (x.T @ x)[np.triu_indices(columns)], rtol=1e-12)
    np.testing.assert_allclose(found[-columns:], TARGET_WEIGHT * x.T @ t, atol=len(y) * UNIT)


@pytest.mark.parametrize("knots", [2, 3, 5])
def test_no_row_moves_them_further_than_is_charged(knots):
    """Over rows at all corners and inside: some row comes close to the bound."""
    values = [0.0, 0.25, 1.0, np.nan]
    corners = pd.DataFrame(itertools.product(values, values, ["a", "b"]), columns=["x", "z", "c"])
    encoder = UnitRows(DOMAIN, knots)
    rows = encoder.encode(corners)
    norms = [
        np.linalg.norm(ExactMoments(rows[i], np.array([target]), BOUNDS).moments().value)
        for i in range(len(corners))
        for target in (-100.0, 6.0)
    ]
    bound = moments_sensitivity(encoder.parts)
    assert max(norms) <= bound
    assert max(norms) > 0.999 * bound


def test_all_entries_are_noised_as_the_ledger_states():
    frame, y = rows()
    silent = exact(frame, y, 2).value
    found = [curator(seed=seed) for seed in range(40)]
    query = Moments.of(UnitRows(DOMAIN, 2).parts)
    releases = [made.answer(query) for made in found]
    noise = np.array([release.value - silent for release in releases])
    scale = moments_sensitivity(4) / mu_of(1.0, 1e-6)
    assert releases[0].scale == pytest.approx(scale)
    assert stats.kstest(noise.ravel() / scale, stats.norm.cdf).pvalue > 1e-4
    assert (np.abs(noise) > 0).all()


def test_they_are_answered_once_and_for_rows_as_they_are():
    made, query = curator(), Moments.of(UnitRows(DOMAIN, 2).parts)
    with pytest.raises(SensitivityError, match="parts"):
        made.answer(Moments.of(100))
    made.answer(query)
    with pytest.raises(BudgetError):
        made.answer(query)


def test_a_query_is_charged_for_all_that_a_row_adds():
    with pytest.raises(SensitivityError, match="charged"):
        Moments(1.0, 1.0, parts=4)


def test_another_relation_is_refused():
    with pytest.raises(SensitivityError, match="add/remove-one"):
        curator(relation=REPLACE_ONE)
