import math
from dataclasses import replace

import pytest

from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.results.audits import LedgerSummary, kept_ledger
from dprepro.results.folder import read_results
from dprepro.runtime.errors import DpreproError
from tests.privacy.entries import gaussian
from tests.report.journals import records, write

KEPT = Ledger(1.0, 1e-6, ZERO_OUT, [gaussian(8.0)]).summary()


def test_the_summary_of_a_ledger_is_read():
    (record,) = records([0.8], ledger=KEPT)
    found = kept_ledger(record)
    assert (found.epsilon, found.delta, found.adjacency) == (1.0, 1e-6, "zero-out")
    assert found.spent_epsilon == KEPT["true_epsilon"] < found.replace_one_epsilon
    assert (found.unpaid, found.gaps, found.floating_point) == ((), (), ())
    assert found.releases[0]["mechanism"] == "gaussian"


def test_what_a_record_does_not_say_has_a_default():
    (record,) = records([0.8], ledger={})
    assert kept_ledger(record) == LedgerSummary()
    infinite = {"epsilon": 1, "true_epsilon": None, "replace_one_epsilon": None}
    found = kept_ledger(replace(record, ledger=infinite))
    assert (found.epsilon, found.spent_epsilon) == (1.0, None)


def test_without_a_ledger_or_a_release_nothing_is_kept():
    (public,) = records([0.8], epsilon=math.inf)
    (bare,) = records([0.8], ledger=None)
    (empty,) = records([0.8], ledger={**KEPT, "releases": []})
    assert [kept_ledger(record) for record in (public, bare, empty)] == [None] * 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, value) for name in ("epsilon", "true_epsilon", "replace_one_epsilon")
          for value in ("abc", "0.9", [1], {}, True, -0.5, math.nan, math.inf)),
        *(("delta", value) for value in ("1e-6", None, False, -1e-9, 1.5, math.nan)),
        *(("adjacency", value) for value in (4, None, ["zero-out"])),
        *((name, value) for name in ("unpaid", "gaps", "floating_point")
          for value in ("all of it", 3, [1], [None], {"a": 1})),
        *(("releases", value) for value in (None, "gaussian", 3, ["gaussian"], {})),
    ],
)  # fmt: skip
def test_a_malformed_ledger_is_refused_in_words(field, value):
    (record,) = records([0.8], ledger={**KEPT, field: value})
    with pytest.raises(DpreproError) as caught:
        kept_ledger(record)
    text = str(caught.value)
    assert f"{record.task.key} (adult, dp-ebm-gdp-2021) has a malformed ledger: {field}" in text
    assert text.endswith("or run it again with --fresh")
    assert len(text) < 400


def test_what_was_given_is_named_and_cut():
    (record,) = records([0.8], ledger={**KEPT, "true_epsilon": "abc" * 1000})
    with pytest.raises(DpreproError, match=r"valid number, and it is 'abcabc.{40,60}…; take"):
        kept_ledger(record)


@pytest.mark.parametrize("fault", [{"true_epsilon": "abc"}, {"true_epsilon": [1]}, {"unpaid": 3}])
def test_journals_with_a_malformed_ledger_are_refused(tmp_path, fault):
    """By whatever reads them: tables, checks, comparisons and the page."""
    write(tmp_path, "one", records([0.8, 0.9], ledger={**KEPT, **fault}))
    with pytest.raises(DpreproError, match=r"adult, dp-ebm-gdp-2021.*malformed ledger.*--fresh"):
        read_results(tmp_path)
