from dataclasses import replace

from dprepro.judge.claim import Finding
from tests.report.claims import FAILED, NOT_RUN


def test_notes_name_what_is_missing_and_left_out():
    lines = NOT_RUN.notes
    assert "Cells missing: adult 20, credit 20, telco 20" in lines[0]
    assert lines[1] == "20 cells left out: real patient data that was never released."
    assert not any("Explained" in line or "contradict it" in line for line in lines)


def test_notes_say_when_the_document_contradicts_itself():
    contradicted = replace(FAILED, whole=Finding(False, {}, "best in 39 of 40 settings"))
    assert any("contradict it: best in 39 of 40" in line for line in contradicted.notes)


def test_explanations_are_shown():
    assert replace(FAILED, explanation="the rival tunes").notes[-1] == "Explained: the rival tunes"


def test_a_note_of_the_claim_is_among_them_where_there_is_one():
    noted, silent = (
        replace(FAILED, claim=FAILED.claim.model_copy(update={"note": note}))
        for note in ("the grid is not stated", "")
    )
    assert noted.notes == [*silent.notes, "the grid is not stated"]
    assert "" not in silent.notes
