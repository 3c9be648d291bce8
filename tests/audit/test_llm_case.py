"""The sampled pair of locally linear maps: sound noise passes, and noise divided twice does not."""

import numpy as np
import pytest

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.privacy.mechanisms import NoiseSource

pytestmark = pytest.mark.audits

# Both look for the same noise, which takes seconds, once. At a larger epsilon so few runs could not
# show an excess.
EPSILON = 1.0


def test_samples_maps_and_projections_pass():
    case = find_case("dp-llm/sampled", epsilon=EPSILON)
    (entry,) = case.fit(True, 0).ledger_.entries
    assert (round(entry.sampling, 1), entry.uses) == (0.3, 4)
    result = audit(case, 400, seed=2)
    assert result.verdict is AuditVerdict.WITHIN
    assert result.spent_epsilon > 0.97 * EPSILON


def test_noise_divided_by_the_batch_size_once_too_often(monkeypatch):
    drawn = NoiseSource.sampled_gaussian

    def thin(self, shape, **settings):
        batch_size = np.float32(settings["sampling"] * 200)
        return (draw / batch_size for draw in drawn(self, shape, **settings))

    monkeypatch.setattr(NoiseSource, "sampled_gaussian", thin)
    assert (
        audit(find_case("dp-llm/sampled", epsilon=EPSILON), 400, seed=2).verdict
        is AuditVerdict.EXCEEDED
    )
