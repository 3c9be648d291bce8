"""A fit that is killed goes on where it was: the same bits, no pass twice, no noise twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprepro.rows.store import StoreError
from tests.rows.killing import (
    CHUNK,
    MODELS,
    ROWS,
    Fit,
    answers_in,
    events,
    fit_in_memory,
    rows,
    run,
)

EARLY = [
    ("before chunk", 1), ("after chunk", 2), ("before reserve", 1), ("after reserve", 1),
    ("before manifest", 1), ("after manifest", 1),
]  # fmt: skip
"""While the store is filled."""

LATER = [
    ("answer in no disk", 1), ("torn answer", 1), ("before answer", 2),
    ("answer without a mark", 3), ("after merge of a chunk", 1), ("before merge", 1),
    ("before rename", 1), ("after rename", 1), ("before merge of a chunk", 1), ("torn pass", 1),
    ("torn pass", 2), ("after pass", 3), ("torn answer", 1), ("after answer", 1), ("torn pass", 6),
    ("answer without a mark", 2), ("before answer", 1), ("torn pass", 4),
]  # fmt: skip
"""Each in a process that goes on after the one before: an event counts from its start."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows().to_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def fit_of(table: Path, model: str, **settings: Any) -> Fit:
    return Fit(model, table.with_name("store"), table, **settings)


def killed_at(fit: Fit, moments: list[tuple[str, int]]) -> list[list[Any]]:
    """Start a fit again and again; return the answers that were on the disk after each kill."""
    found = []
    for moment in moments:
        assert run(replace(fit, kill_at=moment)) is None, f"never came to {moment}"
        found.append(answers_in(fit.folder / "answers.jsonl"))
    return found


def finished(fit: Fit) -> dict[str, Any]:
    outcome = run(fit)
    assert outcome is not None
    assert "error" not in outcome, outcome["error"]
    return outcome


@pytest.mark.parametrize("model", MODELS)
def test_a_fit_with_a_seed_has_the_bits_of_one_that_was_never_killed(
    table: Path, model: str
) -> None:
    fit = fit_of(table, model)
    killed_at(fit, LATER)
    outcome = finished(replace(fit, n_jobs=2))
    assert repr(outcome["model"]) == repr(fit_in_memory(fit, rows()))
    assert not fit.folder.exists()
    check_nothing_was_repeated(fit)


def test_the_store_is_filled_anew_if_it_was_not_whole(table: Path) -> None:
    fit = fit_of(table, "labels")
    killed_at(fit, EARLY)
    outcome = finished(fit)
    assert repr(outcome["model"]) == repr(fit_in_memory(fit, rows()))
    # The last process found a whole store, and the one before it wrote that.
    assert {process for process, _ in events(fit, "read")} == {*range(len(EARLY))}


@pytest.mark.parametrize("model", ["adaptive", "regression", "plus labels", "plus regression"])
def test_no_noise_is_drawn_twice_for_a_query(table: Path, model: str) -> None:
    """Without a seed every draw is another: the model is made of what was on the disk."""
    fit = fit_of(table, model, seed=None)
    killed = killed_at(fit, LATER)
    outcome = finished(fit)
    last = answers_in(table.with_name("answers.jsonl"))
    for before, after in zip(killed, [*killed[1:], last], strict=True):
        assert after[: len(before)] == before
    assert len(killed[-1]) >= 7
    entropy, *kept = last
    assert list(entropy) == ["public_entropy"]
    check_released(outcome, kept)
    check_nothing_was_repeated(fit)


def check_released(outcome: dict[str, Any], kept: list[Any]) -> None:
    """Compare what the last process released with the answers on disk."""
    values = [np.array(line["answer"], line["dtype"]).reshape(line["shape"]) for line in kept]
    for name, value in outcome["releases"]:
        if name == "LeafSums":  # all steps at once, in the unit of the query
            whole = np.array(values)
            assert whole.shape == value.shape
            nonzero = whole != 0
            units = value[nonzero] / whole[nonzero]
            np.testing.assert_allclose(units, units[0], rtol=1e-12)
            assert not value[~nonzero].any()
            values = []
        else:
            np.testing.assert_array_equal(values.pop(0), value)
    assert not values


def check_nothing_was_repeated(fit: Fit) -> None:
    """The rows were read once; a question was asked of a chunk once, unless its asker died."""
    assert [process for process, _ in events(fit, "read")] == [0] * -(-ROWS // CHUNK)
    asked: dict[str, list[int]] = {}
    for process, (question, moves, chunk) in events(fit, "question"):
        asked.setdefault(f"{question} after {moves} moves, of {chunk}", []).append(process)
    assert max(map(len, asked.values())) > 1, "no kill interrupted a question"
    for processes in asked.values():
        assert len(set(processes)) == len(processes)
        # A question is repeated in the next process, as its answer was lost, and never later.
        assert processes == [*range(processes[0], processes[0] + len(processes))]
    # Scores are made anew of all moves where a process died amid them: in one chunk at most.
    started: dict[int, list[int]] = {}
    for process, (name, chunk) in events(fit, "move"):
        if name == "Start":
            started.setdefault(chunk, []).append(process)
    again = [process for processes in started.values() for process in processes[1:]]
    assert again
    assert len(set(again)) == len(again)


def test_a_restart_of_the_machine_loses_scores_and_nothing_else(table: Path) -> None:
    fit = fit_of(table, "labels", boot="one")
    killed_at(fit, [("after pass", 14)])
    scores = fit.folder / "scores"
    scores.write_bytes(bytes(len(scores.read_bytes())))  # what is written last is lost
    outcome = finished(replace(fit, boot="two"))
    assert repr(outcome["model"]) == repr(fit_in_memory(fit, rows()))
    started = [
        (process, chunk) for process, (name, chunk) in events(fit, "move") if name == "Start"
    ]
    assert started == [(process, chunk) for process in (0, 1) for chunk in range(4)]
    assert {process for process, _ in events(fit, "read")} == {0}


def test_a_machine_whose_starts_are_unknown_counts_as_restarted(table: Path) -> None:
    fit = fit_of(table, "labels", boot="")
    killed_at(fit, [("after pass", 14)])
    (fit.folder / "scores").write_bytes(bytes((fit.folder / "scores").stat().st_size))
    assert repr(finished(fit)["model"]) == repr(fit_in_memory(fit, rows()))


@pytest.mark.parametrize("moment", [("file deleted", 1), ("file deleted", 3)])
def test_a_fit_that_was_killed_while_it_deleted_its_rows_starts_anew(
    table: Path, moment: tuple[str, int]
) -> None:
    fit = fit_of(table, "labels")
    killed_at(fit, [moment])
    assert fit.folder.exists()
    assert repr(finished(fit)["model"]) == repr(fit_in_memory(fit, rows()))
    assert not fit.folder.exists()


def test_what_is_not_the_same_fit_is_refused(table: Path) -> None:
    fit = fit_of(table, "labels")
    killed_at(fit, [("after pass", 9)])
    before = {path.name: path.read_bytes() for path in fit.folder.iterdir()}
    others = [
        replace(fit, params={"n_epochs": 4}), replace(fit, params={"epsilon": 2.0}),
        replace(fit, seed=1), replace(fit, seed=None), replace(fit, model="adaptive"),
        replace(fit, model="plus labels"), replace(fit, model="regression"),
        replace(fit, model="regression", target="other"),
    ]  # fmt: skip
    for other in others:
        check_refused(other, "holds the rows of another fit: .* Name another folder, or delete")
    check_refused(replace(fit, encrypted=True), "rows that are not encrypted, of a fit that was")
    changed = rows()
    changed.loc[0, "x"] = 0.5
    written = table.read_bytes()
    changed.to_parquet(table)
    check_refused(fit, "a table that has changed")
    table.write_bytes(written)  # of another time
    check_refused(fit, "a table that has changed")
    assert before == {path.name: path.read_bytes() for path in fit.folder.iterdir()}


def check_refused(fit: Fit, message: str) -> None:
    outcome = run(fit)
    assert outcome is not None
    assert outcome["releases"] == []
    with pytest.raises(StoreError, match=message) as caught:
        raise outcome["error"]
    assert str(ROWS) not in str(caught.value).replace(str(fit.folder), "")
