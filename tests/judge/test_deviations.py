import io
import itertools
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dprepro.judge import deviations
from dprepro.judge.deviations import load_claim_deviations, load_deviations
from dprepro.papers.hypotheses import load_held_out, load_hypotheses
from dprepro.papers.published_cell import FOLDER, load_published
from dprepro.runtime.errors import DpreproError

ENTRY = {
    "paper": "dp-ebm-2021",
    "tables": "2",
    "datasets": "adult",
    "methods": "dp-ebm-classic-2021",
    "epsilons": [0.5, 1],
    "expected": "worse",
    "reason": "Theorem 2 asks for more noise than was added.",
    "evidence": [{"results": "adult", "shows": "both compositions"}],
}


CLAIM = {
    "paper": "dp-ebm-2021",
    "claim": "best-in-all",
    "reason": "A rival is ahead on Pol.",
    "evidence": [{"file": "README.md", "shows": "the table"}],
}


def write(folder: Path, *entries: dict, claims: tuple[dict, ...] = ()) -> Path:
    path = folder / "deviations.yaml"
    path.write_text(yaml.safe_dump({"deviations": list(entries), "claims": list(claims)}))
    return path


def test_the_reviewed_files_are_sound():
    for entry in [*load_deviations(), *load_claim_deviations()]:
        assert len(entry.reason.split()) >= 5, f"a reason says why: {entry}"


def test_no_cause_is_known_here_and_unknown_there():
    pairs = [
        (entry, question)
        for entry in load_deviations()
        for question in load_hypotheses()
        if any(question.asks_about(entry.paper, *place) for place in _columns(entry))
    ]
    assert len(pairs) >= 5
    for entry, question in pairs:
        other = "identified" if entry.is_unknown else "unknown"
        assert question.finding != other, (entry.methods, entry.datasets)


def _columns(entry):
    return itertools.product(entry.tables, entry.datasets, entry.methods)


def test_where_to_look_is_told_with_the_reason(tmp_path):
    (entry,) = load_deviations(write(tmp_path, ENTRY))
    assert entry.told == f"{ENTRY['reason']} Evidence: results of adult (both compositions)."


def test_a_wheel_has_no_documents_or_tests_to_look_for(tmp_path, monkeypatch):
    monkeypatch.setattr(deviations, "checkout", lambda: None)
    entry = {**ENTRY, "evidence": [{"file": "docs/nothing.md", "shows": "x"}]}
    path = write(tmp_path, entry)
    with pytest.raises(DpreproError, match=r"nothing\.md"):
        load_deviations(path)
    monkeypatch.setattr(deviations, "FOLDER", tmp_path)
    assert len(load_deviations(path)) == 1


def test_evidence_can_lie_beside_a_file_of_ones_own(tmp_path):
    (tmp_path / "mine.txt").write_text("0.1")
    entry = {**ENTRY, "evidence": [{"file": "mine.txt", "shows": "x"}]}
    assert len(load_deviations(write(tmp_path, entry))) == 1


def test_telco_has_the_printed_share_without_eleven_rows(data_dir):
    (file,) = (data_dir / "telco").glob("*.csv")
    table = pd.read_csv(file)
    positive, blank = table["Churn"] == "Yes", table["TotalCharges"].str.strip() == ""
    assert blank.sum() == 11
    assert round(100 * positive.mean(), 2) == 26.54
    assert round(100 * positive[~blank].mean(), 2) == 26.58


def test_a_reader_that_takes_the_first_row_for_a_header_counts_one_less(data_dir):
    text = (data_dir / "elevators" / "elevators.arff").read_text(encoding="utf-8")
    rows = text.lower().split("@data")[1].strip().splitlines()
    assert len(pd.read_csv(io.StringIO("\n".join(rows)))) == 16_599 - 1


def test_a_reason_that_says_unknown_is_listed_as_unknown():
    entries = [*load_deviations(), *load_claim_deviations()]
    said = [e.is_unknown for e in entries if "unknown" in e.reason.lower()]
    assert said
    assert all(said)
    assert not all(entry.is_unknown for entry in entries)


def test_the_slip_of_the_slides_is_told_with_the_papers_figure():
    (entry,) = [e for e in load_claim_deviations() if e.claim == "claimed-classic"]
    (printed,) = [
        cell
        for cell in load_published("dp-ebm-2021")
        if (cell.dataset, cell.method, cell.epsilon) == ("adult", "dp-ebm-classic-2021", 0.5)
    ]
    assert "0.875" in entry.reason
    assert f"{printed.mean:.3f} (sd {printed.std:.3f})" in entry.reason


def test_the_examples_in_the_readme_are_valid_entries(tmp_path):
    blocks = re.findall(
        r"```yaml\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    path, questions = tmp_path / "d.yaml", tmp_path / "h.yaml"
    for file, block in zip((path, questions), blocks, strict=True):
        file.write_text(block)
    (entry,) = load_deviations(path)
    assert entry.expected == "worse"
    (claim,) = load_claim_deviations(path)
    assert claim.claim == "gdp-against-classic"
    assert [one.finding for one in load_hypotheses(questions)] == ["identified"]
    assert [one.judged_on for one in load_held_out(questions)] == [None]


def test_entries_come_in_order(tmp_path):
    first, second = load_deviations(
        write(tmp_path, ENTRY, {**ENTRY, "epsilons": "inf", "methods": "ebm"})
    )
    assert first.epsilons == [0.5, 1.0]
    assert second.epsilons == [float("inf")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"datasets": "adlut"}, "deviation 2: datasets: no printed cell has 'adlut'"),
        ({"expected": "reproduced"}, "expected"),
        ({"cause": "guessed"}, "cause"),
        ({"reason": ""}, "reason"),
        ({"epsilon": 1}, "epsilon"),
        ({"paper": "dp-ebm"}, "unknown document 'dp-ebm'"),
        ({"evidence": []}, "evidence"),
        ({"evidence": [{"file": "README.md"}]}, "shows"),
        ({"evidence": [{"shows": "x"}]}, "one of `results`, `test` and `file`"),
        ({"evidence": [{"results": "adlut", "shows": "x"}]}, "'adlut'; did you mean 'adult'"),
        ({"evidence": [{"results": "fast", "shows": "x"}]}, "no recorded results .* 'fast'"),
        ({"evidence": [{"file": "docs/nothing.md", "shows": "x"}]}, "no 'docs/nothing.md'"),
        ({"evidence": [{"test": "tests/test_init.py::test_x", "shows": "x"}]}, "no .*::test_x"),
    ],
)
def test_wrong_entries_are_refused(tmp_path, change, message):
    with pytest.raises(DpreproError, match=message):
        load_deviations(write(tmp_path, ENTRY, {**ENTRY, **change}))


@pytest.mark.parametrize("key", list(ENTRY))
def test_every_key_is_needed(tmp_path, key):
    with pytest.raises(DpreproError, match=key):
        load_deviations(write(tmp_path, {k: v for k, v in ENTRY.items() if k != key}))


def test_claims_are_explained_beside_cells(tmp_path):
    path = write(tmp_path, ENTRY, claims=(CLAIM,))
    assert len(load_deviations(path)) == 1
    (entry,) = load_claim_deviations(path)
    assert (entry.claim, entry.reason) == ("best-in-all", CLAIM["reason"])
    assert load_claim_deviations(write(tmp_path, ENTRY)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claim": "best-in-al"}, "claim 1: .* did you mean 'best-in-all'"),
        ({"paper": "dp-ebm"}, "dp-ebm has no claim 'best-in-all'. Allowed: none"),
        ({"reason": ""}, "reason"),
        ({"expected": "worse"}, "expected"),
        (
            {"evidence": [{"file": "docs/nothing.md", "shows": "x"}]},
            "claim 1: .* no 'docs/nothing.md'",
        ),
    ],
)
def test_wrong_claims_are_refused(tmp_path, change, message):
    with pytest.raises(DpreproError, match=message):
        load_claim_deviations(write(tmp_path, claims=({**CLAIM, **change},)))
