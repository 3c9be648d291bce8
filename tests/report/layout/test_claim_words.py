from dataclasses import replace

from dprepro.published.document import load_documents
from dprepro.report.judge.check import check_documents
from dprepro.report.judge.claims import Finding, Outcome
from dprepro.report.layout.claim_words import claim_notes, said
from dprepro.report.read.metrics import tolerances
from dprepro.report.read.results import Results

PAPER = load_documents()["dp-ebm-2021"]
REPORT = check_documents([PAPER], Results(()), [], tolerances())
NOT_RUN = next(found for found in REPORT.claims if found.claim.name == "best-in-all")
FAILED = replace(
    NOT_RUN,
    outcome=Outcome.FAILS,
    published=Finding(True, {}, "best in 35 of 35 settings"),
    measured=Finding(False, {}, "best in 34 of 35 settings; behind on pol at ε=0.5"),
)


def test_notes_name_what_is_missing_and_left_out():
    lines = claim_notes(NOT_RUN)
    assert "Cells missing: adult 20, credit 20, telco 20" in lines[0]
    assert lines[1] == "20 cells left out: real patient data that was never released."
    assert not any("Explained" in line or "contradict it" in line for line in lines)


def test_notes_say_when_the_document_contradicts_itself():
    contradicted = replace(FAILED, whole=Finding(False, {}, "best in 39 of 40 settings"))
    assert any("contradict it: best in 39 of 40" in line for line in claim_notes(contradicted))


def test_explanations_are_shown():
    assert (
        claim_notes(replace(FAILED, explanation="the rival tunes"))[-1]
        == "Explained: the rival tunes"
    )


def test_a_claim_without_results_says_nothing():
    assert said(None) == ""
    assert said(NOT_RUN.whole) == NOT_RUN.whole.text
