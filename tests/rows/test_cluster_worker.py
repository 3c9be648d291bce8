"""What a worker returns of its partitions: whole numbers, and faults without values."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import distributed
import numpy as np
import pytest

import dprepro
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm.losses import LogisticLoss
from dprepro.methods.dp_ebm.queries import CellCounts, MergeCells
from dprepro.methods.dp_ebm.rounds import EBMPartition, Rise, Sorting, Start, StepSums
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.rows import cluster
from dprepro.rows.cluster import Fault, HeldParts, Job, SortedPart, sort_part
from tests.rows import clustered

TABLE = clustered.frame(90)


def reading(X: Any, y: Any) -> Rows:
    return Rows(X[clustered.names(True)], y.to_numpy(np.float32))


def job(**changed: Any) -> Job:
    sorting = Sorting(clustered.domain("y"), LogisticLoss(), 8)
    made = Job(reading, sorting, partial(EBMPartition, sorting=sorting), dprepro.__version__)
    return replace(made, **changed)


def sorted_part(rows: slice) -> SortedPart:
    part = sort_part(TABLE[rows], TABLE["y"][rows], pickle.loads(pickle.dumps(job())))
    assert isinstance(part, SortedPart)
    return part


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return actors as they are on a worker of two threads."""
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=2))
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    return lambda *parts: HeldParts([sorted_part(part) for part in parts], job())


def steps() -> tuple[list[Any], StepSums]:
    told = [MergeCells(k, np.minimum(np.arange(99), 7)) for k in range(3)]
    below = np.array([2, 5], np.uint8)
    moves = [Start(0), Rise(1, below, np.array([9_000, -7_000, 400], np.int32))]
    return [*told, *moves], StepSums(0, below, 2**20)


def test_the_digest_knows_other_rows() -> None:
    one, same, other = sorted_part(slice(0, 9)), sorted_part(slice(0, 9)), sorted_part(slice(1, 10))
    assert one.seen == same.seen
    assert one.seen.n_rows == other.seen.n_rows
    assert one.seen != other.seen
    late = TABLE[:9].assign(c="d")
    changed = sort_part(late, late["y"], job())
    assert changed.seen != one.seen


def test_cells_that_fit_are_bytes() -> None:
    assert {cells.dtype for cells in sorted_part(slice(0, 9)).rows.cells.values()} == {
        np.dtype(np.uint8)
    }


def test_faults_quote_no_value() -> None:
    def library(X: Any, y: Any) -> Rows:
        return Rows(X, np.array(["secret"], float))

    for broken in (library, partial(int, base="secret")):
        fault = sort_part(TABLE, TABLE["y"], job(reading=broken))
        assert isinstance(fault, Fault)
        assert "secret" not in fault.text
        assert "withheld" in fault.text
    fault = sort_part(TABLE.assign(c="unknown"), TABLE["y"], job())
    assert "'c'" in fault.text
    assert "unknown" not in fault.text


def test_too_little_memory_anywhere_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised, it would be in the worker's log, and end the fit with an error of Dask's."""

    def full(_: Any) -> bytes:
        raise MemoryError("secret")

    monkeypatch.setattr(cluster, "_digest", full)
    fault = sort_part(TABLE, TABLE["y"], job())
    assert isinstance(fault, Fault)
    assert "secret" not in fault.text


def test_a_worker_of_another_version_is_refused() -> None:
    fault = sort_part(TABLE, TABLE["y"], job(version="0.0.1"))
    assert fault.text.endswith("has 0.0.1: install the same version on every machine")


def test_partitions_together_answer_as_one(held: Any) -> None:
    one, three = held(slice(None)), held(slice(0, 20), slice(20, 20), slice(20, None))
    count = CellCounts(1.0, 1.0, 1, ZERO_OUT)
    told, step = steps()
    for question, start, instructions in ((count, 0, []), (step, 0, told), (step, 5, told[-1:])):
        answers = [held.answer(question, start, instructions).numbers for held in (one, three)]
        assert answers[0].any()
        np.testing.assert_array_equal(*answers)


def test_an_actor_that_starts_late_follows_all_and_answers_the_same(held: Any) -> None:
    told, step = steps()
    early, late = held(slice(None)), held(slice(None))
    early.answer(CellCounts(1.0, 1.0, 0, ZERO_OUT), 0, told[:2])
    early.answer(step, 2, told[2:])
    expected = early.answer(step, 5, told[-1:]).numbers
    found = late.answer(step, 0, [*told, told[-1]]).numbers
    np.testing.assert_array_equal(found, expected)


def test_an_actor_that_missed_instructions_does_not_answer(held: Any) -> None:
    told, step = steps()
    with pytest.raises(RuntimeError, match="has followed other instructions"):
        held(slice(None)).answer(step, 1, told[1:])


def test_what_goes_wrong_in_an_answer_is_told_without_values(held: Any) -> None:
    fault = held(slice(None)).answer(steps()[1], 0, [])
    assert isinstance(fault, Fault)
    assert "withheld" in fault.text
