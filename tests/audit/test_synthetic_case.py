"""The adversary of synthetic rows: counts and choices hide the canary by as much as is paid."""

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.privacy.composition import rho_of
from dprepro.privacy.sampling import ExactSampler

TASKS = ("binary", "multiclass", "regression")


def runs(task, epsilon, present, number):
    fit = find_case("mst-lightgbm/transcript", task, epsilon=epsilon).fit
    return [fit(present, seed) for seed in range(number)]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("present", [True, False])
def test_what_is_left_of_counts_is_their_noise(task, present):
    found = [each for run in runs(task, 8.0, present, 3) for each in run.evidence]
    noise = np.concatenate([each.noise - each.part * present for each in found])
    assert noise.size > 150
    assert np.abs(noise).max() < 5
    assert noise.std() == pytest.approx(1, abs=3.5 / np.sqrt(noise.size))


@pytest.mark.parametrize("task", TASKS)
def test_the_canary_moves_counts_by_all_that_they_spend(task):
    third = rho_of(1.0, 1e-6) / 3
    (run,) = runs(task, 1.0, True, 1)
    sizes = {each.name: np.linalg.norm(each.part) for each in run.evidence if each.noise.size}
    assert sizes == pytest.approx({"columns": np.sqrt(2 * third), "pairs": np.sqrt(2 * third)})


def test_choices_say_no_more_than_they_spend_and_something():
    made = [*runs("binary", 0.3, True, 6), *runs("binary", 0.3, False, 6)]
    found = [each.log_ratio for run in made for each in run.evidence if each.name == "choices"]
    (entry,) = (e for e in made[0].ledger_.entries if e.mechanism == "exponential")
    assert len(found) == 24
    assert 0 < max(map(abs, found)) <= entry.pure_epsilon


@pytest.mark.audits
def test_the_audit_passes_and_sees_missing_noise(monkeypatch):
    case = find_case("mst-lightgbm/transcript", epsilon=4.0)
    assert not audit(case, 300, seed=1).verdict.is_refuted
    monkeypatch.setattr(ExactSampler, "gaussian", lambda _, scale, shape: np.zeros(shape, np.int64))
    assert audit(case, 300, seed=1).verdict is AuditVerdict.EXCEEDED
