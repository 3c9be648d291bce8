from __future__ import annotations

import hashlib
import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from dprepro.data.card import load_card
from dprepro.experiment import record as record_module
from dprepro.experiment.journal import journal_bytes, journal_files
from dprepro.experiment.record import Record, Task, parsed
from tests.conftest import ROOT

TASK = Task("d", "m", "l", {"b": 1, "a": [1, 2]}, 1.0, 1e-6, 0, 1, "observed", 0.2, 1, "f")
CHANGES: dict[str, Any] = {
    "dataset": "e",
    "method": "n",
    "label": "k",
    "params": {"b": 2},
    "epsilon": math.inf,
    "delta": 0.0,
    "split": 1,
    "seed": None,
    "domain": "public",
    "test_share": 0.3,
    "method_version": 2,
    "data_fingerprint": "g",
    "evaluation": "folds",
    "tuned": True,
    "unit": "patient",
    "rows_per_unit": 2,
}


def test_every_field_enters_the_key() -> None:
    assert set(CHANGES) == {field.name for field in fields(Task)}
    keys = {replace(TASK, **{name: value}).key for name, value in CHANGES.items()}
    assert len(keys | {TASK.key}) == len(CHANGES) + 1


AWKWARD: tuple[dict[str, Any], ...] = (
    {"params": {"split": 7, "in": [{"split": 7}, 'a "split":7, b']}},
    {"split": 10**12, "unit": 'a "split":7', "rows_per_unit": 2, "tuned": True},
    {"delta": 0, "test_share": 0.1},
    {"delta": 0.0, "test_share": 0.1},
    {"epsilon": math.inf, "delta": 0.0, "seed": None, "evaluation": "test-set"},
)


@pytest.mark.parametrize("changes", [*({n: value} for n, value in CHANGES.items()), *AWKWARD])
def test_a_key_is_the_digest_of_all_that_a_task_says(changes: dict[str, Any]) -> None:
    for split in (0, 7, 19):
        task = replace(TASK, **({"split": split} | changes))
        text = json.dumps(task.to_json(), sort_keys=True, separators=(",", ":"))
        assert task.key == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_tasks_of_one_cell_differ_in_their_split_alone() -> None:
    tasks = [TASK, *(replace(TASK, **{n: v}) for n, v in CHANGES.items() if n != "split")]
    assert len({task.cell for task in tasks}) == len(tasks)
    assert replace(TASK, split=7, params={"a": [1, 2], "b": 1}).cell == TASK.cell


def test_what_is_known_of_cells_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "_MOST_KNOWN", 3)
    monkeypatch.setattr(record_module, "_known", {})
    for seed in range(20):
        assert replace(TASK, seed=seed).key == replace(TASK, seed=seed).key
        assert 1 <= len(record_module._known) <= 3


def test_a_key_that_was_asked_for_is_in_no_record() -> None:
    asked, other = replace(TASK), replace(TASK)
    assert len(asked.key) == 16
    assert "key" not in asked.to_json()
    assert asked == other
    assert asked.to_json() == other.to_json()
    assert replace(asked, split=7).key == replace(TASK, split=7).key != asked.key


def test_the_order_of_parameters_does_not_enter_the_key() -> None:
    assert replace(TASK, params={"a": [1, 2], "b": 1}).key == TASK.key
    assert len(TASK.key) == 16


@pytest.mark.parametrize("epsilon", [0.5, math.inf])
@pytest.mark.parametrize("status", ["ok", "failed", "skipped"])
def test_a_record_survives_strict_json(epsilon: float, status: Any) -> None:
    record = Record(
        replace(TASK, epsilon=epsilon),
        status,
        metrics={"auc": 0.1 + 0.2},
        seconds={"fit": 1.25},
        ledger={"true_epsilon": 0.437},
        message="why",
    )
    text = json.dumps(record.to_json(), allow_nan=False)
    assert Record.from_json(json.loads(text)) == record


@pytest.mark.parametrize("fingerprint", ["private-0-1", "0+private-0-1", "private-0-1+0"])
def test_a_record_of_private_rows_names_what_of_it_is_exact(fingerprint: str) -> None:
    task = replace(TASK, data_fingerprint=fingerprint)
    assert task.is_private
    for status, named in (
        ("ok", "metrics: "),
        ("failed", "status and message: "),
        ("skipped", "data_fingerprint and key: equal ones"),
    ):
        record = Record(task, status, metrics={"auc": 0.5})
        assert record.to_json()["exact"] == list(record.exact)
        assert record.exact[0].startswith(named)
        assert record.exact[-1].endswith("in two journals say that no row changed")
        assert Record.from_json(record.to_json()) == record


def test_of_public_rows_a_record_is_what_it_was() -> None:
    for fingerprint in ("g", "synthetic-g", "g+h"):
        record = Record(replace(TASK, data_fingerprint=fingerprint), "ok")
        assert "exact" not in record.to_json()
        assert not record.task.is_private


def committed_records() -> list[dict[str, Any]]:
    """Return the last record of every journal of our own."""
    lines = [journal_bytes(path).splitlines() for path in journal_files(ROOT / "results").values()]
    records = ([line for line in found if b'"kind":"record"' in line][-1:] for found in lines)
    return [parsed(line) for last in records for line in last]


def test_committed_records_keep_their_keys_and_their_text() -> None:
    found = committed_records()
    assert len(found) > 20
    for line in found:
        record = Record.from_json(line)
        assert (record.task.key, record.to_json()) == (line["key"], line)


def test_the_fingerprints_of_public_data_are_those_of_the_committed_records(
    tmp_path: Path,
) -> None:
    for task in (Record.from_json(line).task for line in committed_records()):
        with_test = task.evaluation == "test-set"
        # In a folder without files, where the private card has its stand-in.
        assert load_card(task.dataset).fingerprint(tmp_path, with_test) == task.data_fingerprint


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0}, {"delta": 1.0}, {"delta": -0.1}, {"test_share": 1.0},
        {"test_share": -0.1}, {"split": -1}, {"rows_per_unit": 0}, {"domain": "other"},
        {"evaluation": "other"},
    ],
)  # fmt: skip
def test_what_no_task_can_say_is_refused(wrong: dict[str, Any]) -> None:
    values = TASK.to_json()
    least = {"delta": 0.0, "test_share": 0.0, "split": 0, "rows_per_unit": 1}
    assert Task.from_json(values | least) == replace(TASK, **least)
    with pytest.raises(ValueError, match="beyond what tasks can say"):
        Task.from_json(values | wrong)
