"""All releases of the linear rivals: the canary's parts come to mu and no more."""

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.mechanisms import NoiseSource

RIVALS = pytest.mark.parametrize(
    ("name", "reached"), [("ada-ssp", 0.999), ("dp-gd-logistic", 0.8), ("dp-sgd-mlp", 0.95)]
)


@RIVALS
def test_the_parts_of_the_canary_come_to_mu_and_no_more(name, reached):
    fit = find_case(name, epsilon=8.0).fit
    found = np.sqrt([fit(seed % 2 == 0, seed).mu_squared for seed in range(4)])
    assert (found <= mu_of(8.0, 1e-6) * (1 + 1e-6)).all()
    assert found.mean() > reached * mu_of(8.0, 1e-6)


@RIVALS
@pytest.mark.audits
def test_what_is_sound_passes_and_half_the_noise_is_caught(name, reached, monkeypatch):
    assert audit(find_case(name, epsilon=8.0), 600, seed=1).verdict is AuditVerdict.WITHIN
    add = NoiseSource.add_gaussian
    monkeypatch.setattr(
        NoiseSource,
        "add_gaussian",
        lambda source, exact, scale, unit=1.0: add(source, exact, scale / 2, unit),
    )
    assert audit(find_case(name, epsilon=8.0), 600, seed=1).verdict is AuditVerdict.EXCEEDED
