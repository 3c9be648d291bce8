import math

import pytest

from dprepro.privacy.guarantee_status import AuditVerdict, Noise, Standing, standing_of
from dprepro.privacy.ledger import Ledger, LedgerEntry

EMPTY = Ledger(1.0, 0.0, "replace-one")
COUNT = LedgerEntry("laplace", "a count", 1, "L1", scale=1, uses=1, budget=(1, 0))


LARGE = Ledger(1.0, 0.0, "replace-one", [COUNT])
SMALL = Ledger(0.5, 0.0, "replace-one", [COUNT])
OPEN = Ledger(1.0, 0.0, "replace-one", [COUNT], gaps=["?"])


@pytest.mark.parametrize(
    ("epsilon", "ledger", "standing", "wording"),
    [
        (1.0, LARGE, Standing.HOLDS, "holds"),
        (0.5, SMALL, Standing.FAILS, "does not hold"),
        (1.0, OPEN, Standing.FAILS, "does not hold"),
        (1.0, EMPTY, Standing.UNVERIFIED, "unverified"),
        (1.0, None, Standing.UNVERIFIED, "unverified"),
        (math.inf, None, Standing.NON_PRIVATE, "non-private"),
    ],
)
def test_what_is_known_of_a_fit(epsilon, ledger, standing, wording):
    assert standing_of(epsilon, ledger) is standing
    assert f"{standing}" == str(standing) == wording


def test_noise_is_told_by_its_wording():
    assert [f"{noise}" for noise in Noise] == ["exact", "floating point"]


def test_only_two_verdicts_refute_anything():
    refuted = [verdict for verdict in AuditVerdict if verdict.is_refuted]
    assert refuted == [AuditVerdict.ABOVE_LEDGER, AuditVerdict.EXCEEDED]
