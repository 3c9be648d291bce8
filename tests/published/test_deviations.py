from pathlib import Path

import pytest
import yaml

from dprepro.errors import DpreproError
from dprepro.published.deviations import DEVIATIONS_FILE, load_deviations

ENTRY = {
    "paper": "dp-ebm-2021",
    "tables": "2",
    "datasets": "adult",
    "methods": "dp-ebm-classic",
    "epsilons": [0.5, 1],
    "expected": "worse",
    "reason": "Theorem 2 asks for more noise than was added.",
}


def write(folder: Path, *entries: dict) -> Path:
    path = folder / "deviations.yaml"
    path.write_text(yaml.safe_dump({"deviations": list(entries)}))
    return path


def test_the_reviewed_file_is_sound():
    for entry in load_deviations(DEVIATIONS_FILE):
        assert len(entry.reason.split()) >= 5, f"a reason says why: {entry}"


def test_the_example_in_the_file_is_a_valid_entry(tmp_path):
    lines = DEVIATIONS_FILE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("#   - paper"))
    example = [line.removeprefix("#") for line in lines[start:] if line.startswith("#   ")]
    (tmp_path / "d.yaml").write_text("\n".join(["deviations:", *example]) + "\n")
    (entry,) = load_deviations(tmp_path / "d.yaml")
    assert entry.expected == "worse"


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
