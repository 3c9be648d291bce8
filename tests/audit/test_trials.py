"""Runs in worlds drawn by coins."""

from types import SimpleNamespace

import numpy as np
import pytest

from dprepro.audit import find_case
from dprepro.audit.case import Case
from dprepro.audit.trials import run_trials
from dprepro.errors import DpreproError


def echo(value=None):
    """A case whose output is its world and its seed."""
    return Case(
        "echo", None, "none",
        lambda present, seed: SimpleNamespace(released=(present, -1 if seed is None else seed)),
        lambda outcome: np.array(outcome.released if value is None else [value], dtype=float),
    )  # fmt: skip


def test_worlds_are_fair_and_each_run_has_a_seed_of_its_own():
    runs = run_trials(echo(), 2000, seed=0)
    np.testing.assert_array_equal(runs.outputs[:, 0], runs.present)
    assert 900 < runs.present.sum() < 1100
    assert len(np.unique(runs.outputs[:, 1])) == 2000


def test_the_same_seed_repeats_the_audit_and_none_does_not():
    case = find_case("laplace")
    first, second = (run_trials(case, 50, seed=3).outputs for _ in range(2))
    np.testing.assert_array_equal(first, second)
    first, second = (run_trials(case, 50).outputs for _ in range(2))
    assert not np.isin(first, second).any()


def test_without_a_seed_the_case_gets_none():
    assert (run_trials(echo(), 50).outputs[:, 1] == -1).all()


@pytest.mark.audits
def test_workers_change_nothing():
    case = find_case("dpboost-sound", "binary")
    here, there = (run_trials(case, 60, jobs=jobs, seed=5) for jobs in (1, 2))
    np.testing.assert_array_equal(here.outputs, there.outputs)
    np.testing.assert_array_equal(here.present, there.present)


def test_the_halves_are_disjoint_and_all_there_is():
    runs = run_trials(echo(), 101, seed=0)
    first, second = runs.halves()
    assert len(first.present) == 50
    np.testing.assert_array_equal(np.vstack([first.outputs, second.outputs]), runs.outputs)


def test_too_few_trials_and_infinite_observations_are_refused():
    with pytest.raises(DpreproError, match="at least 40 trials, got 39"):
        run_trials(echo(), 39)
    with pytest.raises(DpreproError, match="echo: some observations are not finite"):
        run_trials(echo(np.nan), 40)
