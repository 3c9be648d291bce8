import math

import pytest

from dprepro.published.claims import Claim
from dprepro.published.published import PublishedCell
from dprepro.report.judge.claim_rules import Means, _leads, assess


def printed(dataset, method, epsilon, mean, metric="auc"):
    return PublishedCell("paper", "1", dataset, method, epsilon, metric, mean, 0.01)


CELLS = [
    printed("adult", "ebm", math.inf, 0.93),
    printed("adult", "dp-ebm", 1.0, 0.88),
    printed("wine", "ebm", math.inf, 0.6, "rmse"),
    printed("wine", "dp-ebm", 1.0, 0.7, "rmse"),
    printed("telco", "ebm", math.inf, 0.85),
]
MEANS = Means({cell: cell.mean for cell in CELLS}, True)


def test_a_mean_is_found_by_dataset_method_and_level():
    assert MEANS.get("adult", "dp-ebm", 1.0) == 0.88
    assert MEANS.get("adult", "dp-ebm", 2.0) is None


def test_a_lead_is_positive_where_the_metric_is_better_and_needs_both_means():
    leads = _leads(MEANS, ("ebm", math.inf), ("dp-ebm", 1.0))
    assert leads == pytest.approx({"adult": 0.05, "wine": 0.1})


def test_every_kind_of_claim_has_a_rule():
    for kind in Claim.__subclasses__():
        assert assess.dispatch(kind) is not assess.dispatch(Claim)
    with pytest.raises(TypeError, match="no rule"):
        assess(object(), None, None, {})
