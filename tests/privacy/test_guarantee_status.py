import math

import pytest

from dprepro.privacy.guarantee_status import AuditVerdict, GuaranteeStatus, Noise, status_of
from dprepro.privacy.ledger import Ledger, LedgerEntry

EMPTY = Ledger(1.0, 0.0, "replace-one")
COUNT = LedgerEntry("laplace", "a count", 1, "L1", scale=1, uses=1, budget=(1, 0))


LARGE = Ledger(1.0, 0.0, "replace-one", [COUNT])
SMALL = Ledger(0.5, 0.0, "replace-one", [COUNT])
OPEN = Ledger(1.0, 0.0, "replace-one", [COUNT], gaps=["?"])


@pytest.mark.parametrize(
    ("epsilon", "ledger", "standing", "wording"),
    [
        (1.0, LARGE, GuaranteeStatus.HOLDS, "holds"),
        (0.5, SMALL, GuaranteeStatus.FAILS, "does not hold"),
        (1.0, OPEN, GuaranteeStatus.FAILS, "does not hold"),
        (1.0, EMPTY, GuaranteeStatus.UNVERIFIED, "unverified"),
        (1.0, None, GuaranteeStatus.UNVERIFIED, "unverified"),
        (math.inf, None, GuaranteeStatus.NON_PRIVATE, "non-private"),
    ],
)
def test_what_is_known_of_a_fit(epsilon, ledger, standing, wording):
    assert status_of(epsilon, ledger) is standing
    assert f"{standing}" == str(standing) == wording


def test_noise_is_told_by_its_wording():
    assert [f"{noise}" for noise in Noise] == ["exact", "floating point"]


def test_only_two_verdicts_refute_anything():
    refuted = [verdict for verdict in AuditVerdict if verdict.is_refuted]
    assert refuted == [AuditVerdict.ABOVE_LEDGER, AuditVerdict.EXCEEDED]
