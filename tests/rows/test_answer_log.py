"""Answers on disk: each once, in order, whole, and of the same question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprepro.methods.dp_ebm.queries import CellCounts
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT
from dprepro.rows.answer_log import KeptAnswers, UnkeptAnswers, digest
from dprepro.rows.backends import ChunkBackend
from dprepro.rows.folder import ANSWERS, Folder, StoreError

ANSWER = np.array([[1.5, -0.1], [np.pi, 1e300]])
UNIT = np.array([0.1, 2.0**-24])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "store")


def opened(folder: Folder, least: int = 0) -> tuple[KeptAnswers, list[int]]:
    marks = [least]
    return KeptAnswers(folder, least, marks.append), marks


def filled(folder: Folder) -> Path:
    answers, marks = opened(folder)
    answers.keep(("a", 1), ANSWER, UNIT)
    answers.keep("b", np.array([-3, 2**62]))
    answers.close()
    assert marks == [0, 1, 2, 3]
    return folder.path / ANSWERS


def test_answers_come_back_bit_for_bit_in_their_order(folder: Folder) -> None:
    filled(folder)
    answers, marks = opened(folder, 3)
    found = answers.next(("a", 1))
    assert found is not None
    np.testing.assert_array_equal(found[0], ANSWER, strict=True)
    np.testing.assert_array_equal(found[1], UNIT, strict=True)  # type: ignore[arg-type]
    whole = answers.once("b", lambda: pytest.fail("it was answered before"))
    np.testing.assert_array_equal(whole, np.array([-3, 2**62]), strict=True)
    assert answers.next("c") is None
    assert answers.once("c", lambda: np.array([7])) == [7]
    assert marks == [3, 4]
    assert answers.next("c") is None  # asked again: another query


def test_public_choices_are_the_same_again_and_others_elsewhere(
    folder: Folder, tmp_path: Path
) -> None:
    one = opened(folder)[0].public_entropy
    assert opened(folder, 1)[0].public_entropy == one
    assert opened(Folder(tmp_path / "other"))[0].public_entropy != one
    assert UnkeptAnswers().public_entropy != one


def test_an_answer_is_on_the_disk_before_it_can_be_used(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, marks = opened(folder)
    done: list[str] = []
    monkeypatch.setattr("dprepro.rows.answer_log.synced", lambda _: done.append(f"disk {marks}"))
    answers.keep("a", ANSWER)
    assert done == ["disk [0, 1]"]  # before it was marked
    assert marks == [0, 1, 2]


def test_what_is_cut_off_is_dropped_and_nothing_else(folder: Folder) -> None:
    path = filled(folder)
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in (start, start + 1, len(whole) - 1):
        path.write_bytes(whole[:end])
        answers, marks = opened(folder, 2)
        assert path.read_bytes() == whole[:start]
        assert answers.next(("a", 1)) is not None
        assert answers.next("b") is None
        assert marks == [2]
        with pytest.raises(StoreError, match=f"{ANSWERS} in .* is damaged or missing: delete"):
            opened(folder, 3)  # a line that was whole once


def test_any_flipped_bit_is_noticed(folder: Folder) -> None:
    path = filled(folder)
    whole = path.read_bytes()
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(StoreError, match="is damaged or missing"):
            opened(folder, 3)


def test_a_missing_file_is_noticed(folder: Folder) -> None:
    filled(folder).unlink()
    with pytest.raises(StoreError, match="is damaged or missing"):
        opened(folder, 3)


def test_the_answer_to_another_question_is_refused(folder: Folder) -> None:
    filled(folder)
    answers, _ = opened(folder, 3)
    with pytest.raises(StoreError, match="has the answer to another question"):
        answers.next(("a", 2))


@pytest.mark.parametrize(
    "other",
    [
        CellCounts(1.0, 1.0, 1, ADD_REMOVE), CellCounts(2.0, 1.0, 0, ADD_REMOVE),
        CellCounts(1.0, 0.5, 0, ADD_REMOVE), CellCounts(1.0, 1.0, 0, ZERO_OUT),
        np.zeros(3), np.zeros(3, np.float32), np.zeros((3, 1)), np.int64(3), np.int64(4), 3.5, None,
    ],
)  # fmt: skip
def test_questions_that_differ_have_other_digests(other: Any) -> None:
    questions = [CellCounts(1.0, 1.0, 0, ADD_REMOVE), np.ones(3), np.int64(5), "a"]
    assert digest(other) not in map(digest, questions)
    assert digest(other) == digest(other)


def test_a_store_is_closed_though_its_answers_cannot_be(path: Path) -> None:
    """A full disk: what is left of a temporary folder would hold the rows."""
    closed = []

    class Full:
        def close(self) -> None:
            raise OSError("no room")

    class Rows:
        def close(self, finished: bool) -> None:
            closed.append(finished)

    holder: Any = ChunkBackend.__new__(ChunkBackend)
    holder.answers, holder._store = Full(), Rows()
    with pytest.raises(OSError, match="no room"):
        holder.close(False)
    assert closed == [False]
