from pathlib import Path

import pytest
import yaml

from dprepro.errors import DpreproError
from dprepro.published.deviations import (
    DEVIATIONS_FILE,
    load_claim_deviations,
    load_deviations,
)
from dprepro.published.published import load_published

ENTRY = {
    "paper": "dp-ebm-2021",
    "tables": "2",
    "datasets": "adult",
    "methods": "dp-ebm-classic-2021",
    "epsilons": [0.5, 1],
    "expected": "worse",
    "reason": "Theorem 2 asks for more noise than was added.",
}


CLAIM = {"paper": "dp-ebm-2021", "claim": "best-in-all", "reason": "A rival is ahead on Pol."}


def write(folder: Path, *entries: dict, claims: tuple[dict, ...] = ()) -> Path:
    path = folder / "deviations.yaml"
    path.write_text(yaml.safe_dump({"deviations": list(entries), "claims": list(claims)}))
    return path


def test_the_reviewed_file_is_sound():
    for entry in [*load_deviations(DEVIATIONS_FILE), *load_claim_deviations(DEVIATIONS_FILE)]:
        assert len(entry.reason.split()) >= 5, f"a reason says why: {entry}"


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


def test_the_examples_in_the_file_are_valid_entries(tmp_path):
    lines = DEVIATIONS_FILE.read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("#   - paper")]
    cells, claims = (
        [line.removeprefix("#") for line in lines[start : start + length]]
        for start, length in zip(starts, (7, 3), strict=True)
    )
    path = tmp_path / "d.yaml"
    path.write_text("\n".join(["deviations:", *cells, "claims:", *claims]) + "\n")
    (entry,) = load_deviations(path)
    assert entry.expected == "worse"
    (claim,) = load_claim_deviations(path)
    assert claim.claim == "gdp-against-classic"


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
    ],
)
def test_wrong_claims_are_refused(tmp_path, change, message):
    with pytest.raises(DpreproError, match=message):
        load_claim_deviations(write(tmp_path, claims=({**CLAIM, **change},)))
