import pytest

from dprepro.judge.check import Again, RerunReport

ALIKE = RerunReport(2, [], [], 0.0, {})
NOTHING = RerunReport(0, [], [], 0.0, {})


@pytest.mark.parametrize(
    ("rerun", "changed", "stale", "passes"),
    [
        (ALIKE, [], 0, True),
        (ALIKE, None, 0, True),  # nothing is recorded
        (NOTHING, [], 0, False),
        (ALIKE, ["a cell"], 0, False),
        (ALIKE, [], 1, False),
    ],
)
def test_each_of_three_comparisons_can_fail_the_check(rerun, changed, stale, passes):
    assert Again(rerun, changed, stale).passes is passes
