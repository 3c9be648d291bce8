"""The canary of PrivaTree shows what a cut spends, and all of itself where ranges are read."""

import pytest

from dprepro.audit import AuditVerdict, audit, find_case
from dprepro.methods.privatree.curator import NOISY_SIZE, RANGES

pytestmark = pytest.mark.audits


def test_the_ceiling_is_what_the_cut_spends():
    case = find_case("privatree-sound", epsilon=4.0)
    model = case.fit(True, 0)
    cuts, labels = model.ledger_.entries
    moved = 2 * 19**2 / (20 * 21)  # by one row of twenty-one, two of which have its label
    assert case.ceiling(model).epsilon == pytest.approx(moved / cuts.scale, rel=1e-6)
    assert cuts.pure_epsilon == labels.pure_epsilon == pytest.approx(2.0)


def test_the_sound_variant_passes_and_the_bound_is_close_to_the_ceiling():
    case = find_case("privatree-sound", epsilon=4.0)
    result = audit(case, 1500, seed=1)
    assert result.verdict is AuditVerdict.WITHIN
    assert result.lower_bound > 0.5 * case.ceiling(case.fit(True, 0)).epsilon


def test_ranges_that_are_read_from_the_rows_are_refuted():
    result = audit(find_case("privatree", epsilon=1.0), 400, seed=1)
    assert result.verdict is AuditVerdict.EXCEEDED
    assert result.gaps == (RANGES, NOISY_SIZE)
