"""Every pair is what its method calls neighbours; names lead to cases."""

from types import MethodType

import numpy as np
import pandas as pd
import pytest

from dprepro.audit import find_case, find_one_run_case, one_run_names, subjects
from dprepro.audit.case import AuditSetting, MethodPair
from dprepro.audit.pairs import general_case
from dprepro.audit.transcript import ExactlyOverheard
from dprepro.data.domain import CategoricalFeature
from dprepro.methods.registry import all_methods
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.runtime.errors import DpreproError

PARTS = {"histograms", "steps", "totals", "epochs"}
"""Cases of one entry of a ledger, which state what that entry spends."""
METHODS = [(name, task) for name, task in subjects() if task is not None]


def rows(table):
    X, y = table
    said = X.astype(object).where(X.notna(), "missing").astype(str)
    return pd.concat([said, pd.Series(y, name="y").astype(float)], axis=1)


def pairs():
    """All pairs, by what they are called."""
    for name, task in METHODS:
        fit = find_case(name, task).fit
        if isinstance(fit, ExactlyOverheard):
            yield f"{name}-{task}", fit.pair
        elif isinstance(fit, MethodType):  # `test_transcripts` has the pairs of others
            yield f"{name}-{task}", fit.__self__
    for method in all_methods().values():
        if method.takes_epsilon:
            for task in sorted(method.tasks):
                setting = AuditSetting(method.name, task, 1.0, 1e-6)
                yield f"general-{method.name}-{task}", general_case(setting).fit.__self__


PAIRS = dict(pairs())
WITHIN = {name: pair for name, pair in PAIRS.items() if "/clipped-" not in name}
"""Those whose canary lies within the bounds."""


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_the_two_tables_differ_in_one_row(pair):
    assert isinstance(pair, MethodPair)
    present, absent = rows(pair.present), rows(pair.absent)
    if all_methods()[pair.setting.method].adjacency == REPLACE_ONE:
        assert len(present) == len(absent)
        assert (present != absent).any(axis=1).sum() == 1
    else:
        assert len(present) == len(absent) + 1
        pd.testing.assert_frame_equal(present.iloc[:-1], absent)


@pytest.mark.parametrize("pair", WITHIN.values(), ids=WITHIN)
def test_both_tables_lie_in_the_domain(pair):
    for X, y in (pair.present, pair.absent):
        for feature in pair.domain.features:
            values = X[feature.name]
            assert feature.missing or not values.isna().any()
            if isinstance(feature, CategoricalFeature):
                assert set(values.dropna()) <= set(feature.categories)
            else:
                assert values.dropna().between(feature.lower, feature.upper).all()
        if pair.setting.task != "regression":
            assert set(np.unique(y)) == set(range(len(pair.domain.target)))
        else:
            lower, upper = pair.domain.target
            assert lower <= y.min() <= y.max() <= upper


@pytest.mark.parametrize(("name", "task"), subjects())
def test_an_outcome_states_the_guarantee_and_gives_finite_numbers(name, task):
    case = find_case(name, task, epsilon=2.0, delta=1e-5)
    outcome = case.fit(True, 0)
    observed = case.observe(outcome)
    assert observed.ndim == 1
    assert np.isfinite(observed).all()
    ledger = case.audited_part(outcome.ledger_)
    is_part = name.partition("/")[2] in PARTS
    assert 0 < ledger.epsilon < 2.0 if is_part else ledger.epsilon == 2.0
    assert ledger.delta in (0.0, 1e-5)
    assert ledger.entries


def test_every_private_method_is_a_subject_with_each_of_its_tasks():
    private = {m.name: sorted(m.tasks) for m in all_methods().values() if m.takes_epsilon}
    first = [name for name, _ in METHODS if "/" not in name]
    assert {name: [t for n, t in METHODS if n == name] for name in first} == private
    assert [name for name, task in subjects() if task is None] == [
        "gaussian", "laplace", "exponential", "permute-and-flip",
    ]  # fmt: skip


def test_a_small_epsilon_gets_a_larger_crowd():
    sizes = [
        len(find_case("dp-ebm-gdp", epsilon=epsilon).fit.__self__.present[1])
        for epsilon in (0.5, 1.0, 8.0, 16.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2] == sizes[3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("dp-ebm-gpd",),
            "no private method or mechanism is called 'dp-ebm-gpd'; did you mean 'dp-ebm-gdp'",
        ),
        (("dp-ebm-gpd",), r"did you mean 'dp-ebm-gdp'\? Allowed: "),
        (("ebm",), "no private method or mechanism is called 'ebm'"),
        (("dp-logistic", "regression"), "dp-logistic does not support regression; it supports bin"),
    ],
)
def test_unknown_names_and_tasks_are_refused_with_what_is_allowed(arguments, message):
    with pytest.raises(DpreproError, match=message):
        find_case(*arguments)


def test_one_run_is_for_those_that_have_it():
    with pytest.raises(DpreproError, match="no private method or mechanism is called 'ebm'"):
        find_one_run_case("ebm")
    assert "dp-ebm-sound" in one_run_names()
    with pytest.raises(DpreproError, match="dpboost has no audit in one run; available for: dp-e"):
        find_one_run_case("dpboost")
