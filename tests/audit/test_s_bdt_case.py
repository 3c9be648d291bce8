"""The canary of S-BDT shows all of mu; where noise is halved it shows more than is paid for."""

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.methods.s_bdt.curator import HALVED
from dprepro.privacy.gdp import mu_of

pytestmark = pytest.mark.audits

EPSILON, DELTA = 4.0, 1e-6


def outcomes(name, task, present, number=200):
    case = find_case(name, task, epsilon=EPSILON, delta=DELTA)
    return np.array([case.observe(case.fit(present, seed)) for seed in range(number)])


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_canary_shifts_the_totals_by_all_of_mu(task):
    """The same noise in both worlds: what differs is the canary alone."""
    shift = outcomes("s-bdt-sound", task, True) - outcomes("s-bdt-sound", task, False)
    noise = outcomes("s-bdt-sound", task, False).std(axis=0)
    mu = np.linalg.norm(shift.mean(axis=0) / noise)
    assert mu == pytest.approx(mu_of(EPSILON, DELTA), rel=0.1)


def test_the_sound_variant_passes_and_the_bound_is_close():
    result = audit(find_case("s-bdt-sound", epsilon=EPSILON), 1000, seed=2)
    assert result.verdict is AuditVerdict.WITHIN
    assert 0.5 * result.spent_epsilon < result.lower_bound < result.spent_epsilon


def test_halved_noise_shows():
    """Half of the budget is for curvatures here, more than the looseness elsewhere makes up for."""
    result = audit(find_case("s-bdt", "binary", epsilon=EPSILON), 4000, seed=1)
    assert result.verdict is AuditVerdict.EXCEEDED
    assert HALVED in result.gaps


def test_the_number_of_rows_has_all_its_noise():
    result = audit(find_case("s-bdt", "regression", epsilon=EPSILON), 400, seed=1)
    assert result.verdict is AuditVerdict.WITHIN
    assert HALVED not in result.gaps
