"""Canaries of every kind: the row is what it is said to be, and sound methods pass."""

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit, find_case, subjects
from dprepro.audit.pairs import KINDS
from dprepro.privacy.curator_base import GaussianMechanism

PLUS = "dp-ebm-plus"


def canary(kind, task="binary", method=PLUS):
    fit = find_case(f"{method}/{kind}", task).fit
    pair = fit.pair if method == PLUS else fit.__self__
    (X, y), (others, labels) = pair.present, pair.absent
    return pair.domain, X.iloc[-1], y[-1], others, labels


def test_six_methods_have_every_kind_on_all_of_their_tasks():
    found = [name for name, _ in subjects() if name.partition("/")[2] in KINDS]
    methods = {name.partition("/")[0] for name in found}
    assert methods == {PLUS, "dp-ebm-sound", "dpboost-sound", "lazybb-1r", "dp-llm", "dp-sgd-mlp"}
    assert len(set(found)) == 6 * len(KINDS) == 36


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_each_canary_is_of_its_kind(task):
    _, row, _, others, _ = canary("missing", task)
    assert row.isna().all()
    assert others.isna().any().all()
    _, row, _, others, _ = canary("rare", task)
    assert (others["c"] != row["c"]).all()
    domain, row, _, others, _ = canary("many", task)
    assert len(domain.features[1].categories) == 300
    assert others["c"].nunique() == 299
    domain, row, _, others, _ = canary("extreme", task)
    assert row["x"] == domain.features[0].upper == 1e12
    assert np.abs(others["x"]).max() < 1
    domain, row, target, _, _ = canary("clipped", task)
    assert row["x"] > domain.features[0].upper
    assert task == "binary" or target > domain.target[1]
    _, _, target, _, labels = canary("smallest", task)
    assert 0 < (labels == target).sum() <= 3


@pytest.mark.audits
@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_about_every_kind_pass_and_noise_that_is_missing_shows(kind, monkeypatch):
    """One bound of 95 % may be above the truth by chance, but hardly two of three."""
    case = find_case(f"{PLUS}/{kind}", "binary", epsilon=8.0)
    sound = [audit(case, 80, seed=seed) for seed in (1, 2, 3)]
    assert not any(result.verdict.is_refuted for result in sound)
    assert [result.verdict for result in sound].count(AuditVerdict.WITHIN) >= 2
    for result in sound:
        assert 0.7 < result.ceiling.epsilon / 8.0 <= 1.0 + 1e-6
    add = GaussianMechanism._scale_of
    monkeypatch.setattr(GaussianMechanism, "_scale_of", lambda *of: add(*of) / 50)
    assert audit(case, 80, seed=1).verdict is AuditVerdict.EXCEEDED
