import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from dprepro.results.audits import read_audits
from dprepro.runtime.errors import DpreproError

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_our_own_audits_are_read():
    audits = read_audits(RESULTS)
    many = [audit for audit in audits if audit.trials]
    once = [audit for audit in audits if audit.guesses]
    assert len(many) + len(once) == len(audits)
    written = json.loads((RESULTS / "audit.json").read_text())
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
    (first, *_) = json.loads((RESULTS / "audit.json").read_text())
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
