from pathlib import Path

import pytest
import yaml

from dprepro.papers.hypotheses import HeldOut, Question, load_held_out, load_hypotheses
from dprepro.runtime.errors import DpreproError

ENTRY = {
    "paper": "dp-ebm-2021",
    "table": "2",
    "method": "dpboost-2021",
    "datasets": ["adult", "telco"],
    "question": "How were the labels coded?",
    "tried": [{"label": "labels 0/1", "says": "As scikit-learn codes them."}],
    "finding": "unknown",
    "says": "Neither coding gives the printed numbers.",
}


def write(folder: Path, *entries: dict) -> Path:
    path = folder / "hypotheses.yaml"
    path.write_text(yaml.safe_dump({"questions": list(entries)}))
    return path


def test_the_reviewed_file_is_sound():
    questions = load_hypotheses()
    assert {q.method for q in questions} >= {"dpboost-2021"}
    for entry in questions:
        assert len(entry.says.split()) >= 5, f"a finding says why: {entry.question}"
        assert len(entry.tried) >= 2, f"one setting alone is no choice: {entry.question}"


def test_questions_come_in_order_and_say_which_rows(tmp_path):
    other = {"label": "labels 0/1", "says": "On other rows.", "dataset": "adult-raw"}
    first, second = load_hypotheses(
        write(tmp_path, ENTRY, {**ENTRY, "tried": [*ENTRY["tried"], other], "datasets": "credit"})
    )
    assert first.datasets == ["adult", "telco"]
    assert second.datasets == ["credit"]
    assert [h.dataset for h in second.tried] == [None, "adult-raw"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"datasets": ["adlut"]}, "question 2: datasets: no printed cell has 'adlut'"),
        ({"method": "dpbost"}, "question 2: methods: no printed cell has 'dpbost'"),
        ({"table": "3"}, "question 2: .*not printed together"),
        ({"finding": "likely"}, "finding"),
        ({"says": ""}, "says"),
        ({"tried": []}, "tried"),
        ({"tried": [{"label": "", "says": "Said."}]}, "label"),
        ({"tried": [{"label": "x", "says": ""}]}, "says"),
        ({"datasets": []}, "datasets"),
        ({"question": ""}, "question"),
        ({"tried": ENTRY["tried"] * 2}, "'labels 0/1' is tried twice"),
        ({"epsilon": 1}, "epsilon"),
        ({"paper": "dp-ebm"}, "unknown document 'dp-ebm'"),
    ],
)
def test_wrong_entries_are_refused(tmp_path, change, message):
    with pytest.raises(DpreproError, match=message):
        load_hypotheses(write(tmp_path, ENTRY, {**ENTRY, **change}))


@pytest.mark.parametrize("key", list(ENTRY))
def test_every_key_is_needed(tmp_path, key):
    with pytest.raises(DpreproError, match=key):
        load_hypotheses(write(tmp_path, {k: v for k, v in ENTRY.items() if k != key}))


@pytest.mark.parametrize(
    ("place", "is_asked"),
    [
        (("dp-ebm-2021", "2", "telco", "dpboost-2021"), True),
        (("dp-ebm-2022", "2", "telco", "dpboost-2021"), False),
        (("dp-ebm-2021", "3", "telco", "dpboost-2021"), False),
        (("dp-ebm-2021", "2", "credit", "dpboost-2021"), False),
        (("dp-ebm-2021", "2", "telco", "dp-logistic"), False),
    ],
)
def test_a_question_is_about_its_own_columns(place, is_asked):
    assert Question(**ENTRY).asks_about(*place) is is_asked


HELD_OUT = {
    "paper": "dp-ebm-2021",
    "method": "dpboost-2021",
    "chosen_on": {"table": "2", "datasets": ["adult", "telco"]},
}


def held_out(folder: Path, **changes) -> list[HeldOut]:
    path = folder / "hypotheses.yaml"
    path.write_text(yaml.safe_dump({"questions": [], "held_out": [{**HELD_OUT, **changes}]}))
    return load_held_out(path)


def test_the_settings_of_dp_ebm_are_chosen_in_auroc_and_judged_in_rmse():
    gdp = next(e for e in load_held_out() if e.method == "dp-ebm-gdp-2021")
    assert (gdp.chosen_on.table, gdp.judged_on.table) == ("2", "3")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "dpbost"}, "held_out 1: methods: no printed cell has 'dpbost'"),
        ({"chosen_on": {"table": "2", "datasets": ["adult"]}}, "leave one dataset out takes two"),
        ({"chosen_on": {"table": "2", "datasets": ["adult", "pol"]}}, "not printed together"),
        ({"judged_on": {"table": "3", "datasets": ["adult"]}}, "not printed together"),
        ({"judged_on": {"table": "3", "datasets": []}}, "datasets"),
        ({"epsilons": [1]}, "epsilons"),
    ],
)
def test_wrong_entries_of_what_is_held_out_are_refused(tmp_path, change, message):
    assert held_out(tmp_path)[0].judged_on is None
    with pytest.raises(DpreproError, match=message):
        held_out(tmp_path, **change)
