"""The adversary's formulas are those of the fits, and noise that is not as stated shows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dprepro.audit import AuditVerdict, audit, find_case, subjects
from dprepro.audit.likelihood_ratio import mu_squared
from dprepro.audit.transcript import Overheard
from dprepro.methods.dpboost import curator, estimator
from dprepro.methods.dpboost.sensitivity import gain_sensitivity
from dprepro.privacy.curator_base import GaussianMechanism
from dprepro.privacy.gdp import mu_of

CASES = {name for name, _ in subjects() if isinstance(find_case(name).fit, Overheard)}
GAUSSIAN = [
    ("dp-ebm-sound/transcript", "binary"), ("dp-ebm-sound/transcript", "regression"),
    ("dp-ebm-joint/transcript", "binary"), ("dp-ebm-plus/transcript", "binary"),
    ("dp-ebm-plus/transcript", "regression"), ("dp-llm/transcript", "binary"),
]  # fmt: skip
FINE = 30.0
"""An epsilon with so little noise that a part of an answer that is left out shows, and more of it
than what is rounded."""


def evidence(name, task, epsilon, present, seeds):
    fit = find_case(name, task, epsilon=epsilon).fit
    return [fit(present, seed).evidence for seed in seeds]


@pytest.mark.parametrize(("name", "task"), GAUSSIAN)
@pytest.mark.parametrize("present", [True, False])
def test_what_is_left_of_each_answer_is_its_noise(name, task, present):
    runs = evidence(name, task, FINE, present, range(4))
    left = [answer.noise - answer.part * present for answers in runs for answer in answers]
    noise = np.concatenate(left)
    assert noise.size > 60
    assert np.abs(noise).max() < 5
    assert np.abs(noise.mean()) < 5 / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(1, abs=3.5 / np.sqrt(noise.size))


@pytest.mark.parametrize(("name", "task"), GAUSSIAN)
def test_the_parts_of_a_canary_come_to_nearly_all_of_mu(name, task):
    mu = mu_of(1.0, 1e-6)
    found = [np.sqrt(mu_squared(run)) for run in evidence(name, task, 1.0, True, range(8))]
    share = 0.5 if name == "dp-ebm-joint/transcript" else 0.8
    assert share * mu < np.mean(found) < mu * (1 + 1e-5)


def test_samples_give_a_likelihood_ratio():
    """The mean of the ratio is 1 without the row, and that of its inverse with it."""
    for present, sign in ((False, 1), (True, -1)):
        runs = evidence("dp-llm/batches", "binary", 8.0, present, range(60))
        ratios = np.exp([sign * sum(each.log_ratio for each in run) for run in runs])
        assert ratios.mean() == pytest.approx(1, abs=4 * ratios.std() / np.sqrt(60))
        assert ratios.std() > 0.3


@pytest.mark.parametrize(("name", "task"), [
    ("dpboost-sound/transcript", "binary"), ("lazybb-1r/transcript", "binary"),
    ("dp-bag-sound/votes", "binary"), ("dp-linear-fair/transcript", "regression"),
])  # fmt: skip
def test_no_transcript_of_a_pure_method_says_more_than_epsilon(name, task):
    for present in (True, False):
        ratios = [
            sum(each.log_ratio for each in run)
            for run in evidence(name, task, 1.0, present, range(12))
        ]
        assert max(map(abs, ratios)) <= 1.0
        assert max(map(abs, ratios)) > 0.05


def test_a_leaf_alone_is_moved_as_far_as_is_charged():
    runs = evidence("dpboost-sound/transcript", "binary", 4.0, True, range(12))
    parts = [np.abs(each.part).max() for run in runs for each in run if each.name == "leaves"]
    assert max(parts) == pytest.approx(1.0, rel=1e-6)  # epsilon 4: half for leaves, of two trees


@pytest.mark.parametrize("name", ["dp-ebm-sound", "dp-ebm-plus"])
def test_parts_of_the_ledger_add_up_to_it(name):
    parts = [n for n in CASES if n.startswith(f"{name}/") and not n.endswith("transcript")]
    ledger = find_case(f"{name}/transcript").fit(True, 0).ledger_
    mus = [mu_of(find_case(n).audited_part(ledger).epsilon, 1e-6) for n in parts]
    assert len(parts) == len(ledger.entries)
    assert np.hypot.reduce(mus) == pytest.approx(mu_of(1.0, 1e-6), rel=1e-4)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_pairs_differ_in_one_row(name):
    for pair, _ in find_case(name).fit.pairs:
        tables = [
            pd.concat([X.astype(str), pd.Series(y, name="y", index=X.index)], axis=1)
            for X, y in (pair.present, pair.absent)
        ]
        kept = len(pair.absent[1]) if len(tables[0]) > len(tables[1]) else len(tables[0]) - 1
        pd.testing.assert_frame_equal(tables[0][:kept], tables[1][:kept])
        assert len(tables[0]) - kept == 1


def spoil(monkeypatch, change):
    """Change the standard normal numbers of all steps of boosting."""
    hand = GaussianMechanism.hand_to_kernel

    def spoiled(self, query, shape):
        scale, normals = hand(self, query, shape)
        return scale, change(normals)

    monkeypatch.setattr(GaussianMechanism, "hand_to_kernel", spoiled)


@pytest.mark.audits
@pytest.mark.parametrize("case", ["transcript", "steps"])
def test_the_same_noise_in_all_epochs_exceeds(case, monkeypatch):
    found = find_case(f"dp-ebm-sound/{case}", "binary")
    assert not audit(found, 600, seed=1).verdict.is_refuted
    spoil(monkeypatch, lambda normals: np.repeat(normals[:1], len(normals), axis=0))
    assert audit(found, 600, seed=1).verdict is AuditVerdict.EXCEEDED


@pytest.mark.audits
@pytest.mark.parametrize("name", ["dp-ebm-sound/transcript", "dp-ebm-plus/transcript"])
def test_all_answers_are_bounded_within_a_half(name):
    result = audit(find_case(name, "binary", epsilon=8.0), 1500, seed=1)
    assert result.verdict is AuditVerdict.WITHIN
    assert 0.5 * result.spent_epsilon < result.lower_bound < result.spent_epsilon


def test_cases_of_a_transcript_look_at_their_own_answers_of_the_same_run():
    cases = [find_case(f"dp-ebm-plus/{part}") for part in ("transcript", "totals", "epochs")]
    outcome = cases[0].fit(True, 0)
    seen = [case.observe(outcome) for case in cases]
    for other in seen[1:]:
        np.testing.assert_array_equal(seen[0], other)
    assert cases[0].columns is None
    joint = [seen[0][0], *(seen[0][case.columns[0]] for case in cases[1:])]
    by_name = {None: joint[0], "totals": joint[1], "epochs": joint[2]}
    for name, found in by_name.items():
        alone = [each.log_ratio for each in outcome.evidence if name in (None, each.name)]
        assert found == pytest.approx(sum(alone))
    # Which of the four canaries was drawn is seen by all.
    assert {case.columns[-4:] for case in cases[1:]} == {tuple(range(seen[0].size))[-4:]}
    assert len(set(joint)) == 3


def test_noisy_products_have_the_noise_that_the_ledger_states():
    """Laplace noise of scale 1 in both worlds, and every kind of product moves with the row."""
    for present in (True, False):
        runs = evidence("dp-linear-fair/transcript", "regression", 1.0, present, range(60))
        assert all([np.abs(each.part).max() > 0 for each in run] == [True] * 4 for run in runs)
        left = [np.abs(each.noise - each.part * present) for run in runs for each in run]
        sizes = np.concatenate(left)
        assert sizes.mean() == pytest.approx(1, abs=4 / np.sqrt(sizes.size))


@pytest.mark.audits
def test_a_choice_whose_noise_is_too_small_is_not_drowned_by_that_of_leaves(monkeypatch):
    """Leaves keep their noise: the joint evidence alone would not exceed epsilon."""
    for module in (estimator, curator):
        monkeypatch.setattr(module, "gain_sensitivity", lambda *of: gain_sensitivity(*of) / 30)
    found = find_case("dpboost-sound/transcript", "binary", epsilon=2.0)
    assert audit(found, 600, seed=1).verdict is AuditVerdict.EXCEEDED
    joint = replace(found, columns=(0, 1, 2))
    assert audit(joint, 600, seed=1).verdict is not AuditVerdict.EXCEEDED
