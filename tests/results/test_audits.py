""""""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.results.audits import LedgerSummary, kept_ledger, read_audits
from dprepro.results.folder import read_results
from dprepro.runtime.errors import DpreproError
from tests.privacy.entries import gaussian
from tests.report.journals import records, write

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_our_own_audits_are_read():
    audits = read_audits(RESULTS)
    many = [audit for audit in audits if audit.trials]
    once = [audit for audit in audits if audit.guesses]
    assert len(many) + len(once) == len(audits)
    written = json.loads((RESULTS / "audit.json").read_text(encoding="utf-8"))
    assert [audit.lower_bound for audit in many] == [entry["lower_bound"] for entry in written]
    assert [audit.spent_epsilon for audit in many] == [entry["ledger_epsilon"] for entry in written]
    exceeded = {audit.subject for audit in many if audit.verdict.is_refuted}
    assert "dp-linear" in exceeded
    assert "dp-ebm-sound" not in exceeded


def test_no_audit_is_no_fault(tmp_path):
    assert read_audits(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[{]", "the file"),
        ('{"subject": "a"}', "the file"),
        ('[{"subject": "a"}]', "0.task: Field required"),
    ],
)
def test_a_broken_file_is_named(tmp_path, text, problem):
    path = tmp_path / "audit-mine.json"
    path.write_text(text)
    with pytest.raises(DpreproError, match=f"audit-mine.json: {problem}.*dprepro audit"):
        read_audits(tmp_path)


def test_a_verdict_that_audits_do_not_give_is_named(tmp_path):
    (first, *_) = json.loads((RESULTS / "audit.json").read_text(encoding="utf-8"))
    (tmp_path / "audit.json").write_text(json.dumps([first | {"verdict": "hardly"}]))
    with pytest.raises(DpreproError, match=r"0.verdict: Input should be 'within', .* 'too few"):
        read_audits(tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "audit.json").mkdir()
    with pytest.raises(DpreproError, match="cannot be read"):
        read_audits(tmp_path)


def test_an_audit_stays_as_it_was_written():
    with pytest.raises(ValidationError, match="frozen"):
        read_audits(RESULTS)[0].verdict = "within"


KEPT = Ledger(1.0, 1e-6, ZERO_OUT, [gaussian(8.0)]).summary()


def test_the_summary_of_a_ledger_is_read():
    (record,) = records([0.8], ledger=KEPT)
    found = kept_ledger(record)
    assert (found.epsilon, found.delta, found.adjacency) == (1.0, 1e-6, "zero-out")
    assert found.spent_epsilon == KEPT["true_epsilon"] < found.replace_one_epsilon
    assert (found.unaccounted, found.gaps, found.floating_point) == ((), (), ())
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
