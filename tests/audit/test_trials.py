"""Runs in pairs, and in worlds drawn by coins."""

from types import SimpleNamespace

import numpy as np
import pytest

from dprepro.audit import find_case, trials
from dprepro.audit.case import Case
from dprepro.audit.trials import Checkpoint, TrialRunner, batches, run_trials
from dprepro.methods import registry
from dprepro.runtime.errors import DpreproError


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


@pytest.mark.parametrize("seed", [0, None])
def test_training_runs_are_pairs_that_share_a_seed(seed):
    with TrialRunner(echo(), seed=seed) as runner:
        runs = runner.run(batches("training", 60, 60))
    np.testing.assert_array_equal(runs.present, np.tile([False, True], 30))
    np.testing.assert_array_equal(runs.outputs[::2, 1], runs.outputs[1::2, 1])
    assert len(np.unique(runs.outputs[:, 1])) == 30


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


@pytest.mark.parametrize("planned", [40, 1001, 250_000])
def test_batches_are_all_runs_once(planned):
    made = batches("held-out", planned, planned)
    assert sum(batch.size for batch in made) == planned
    assert [batch.number for batch in made] == list(range(len(made)))
    assert max(batch.size for batch in made) <= 1000


def test_runs_that_are_kept_are_not_made_again(tmp_path):
    """Killed after two batches: the same call makes the others, and all come out as in one go."""
    fits = []

    def counted(present, seed):
        fits.append(seed)
        return SimpleNamespace(released=(present, seed))

    case = Case("counted", None, "none", counted, lambda outcome: np.array(outcome.released, float))
    plan, told = batches("held-out", 50, 50), []
    with TrialRunner(case, seed=4, kept=Checkpoint(tmp_path / "a.jsonl", {})) as runner:
        runner.run(plan[:2])
    made = len(fits)
    kept = Checkpoint(tmp_path / "a.jsonl", {})
    with TrialRunner(case, seed=4, kept=kept, advance=told.append) as runner:
        whole = runner.run(plan)
    assert (made, len(fits), sum(told)) == (20, 50, 50)
    np.testing.assert_array_equal(whole.outputs, run_trials(case, 50, seed=4).outputs)


def test_infinite_observations_are_refused():
    with pytest.raises(DpreproError, match="echo: some observations are not finite"):
        run_trials(echo(np.nan), 40)


def test_workers_load_the_methods_of_a_user_whose_case_they_get(monkeypatch):
    """The case lies in a module that is imported with them."""
    asked = {}
    monkeypatch.setattr(trials, "get_reusable_executor", lambda **given: asked.update(given))
    TrialRunner(echo(), jobs=2)._workers()
    assert asked["initializer"] is registry.all_methods
