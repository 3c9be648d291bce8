from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.data import PRIVATE_PREFIX, SYNTHETIC_PREFIX
from dprepro.experiment.record import Record
from dprepro.experiment.run import Summary, Tally
from tests.experiment.test_record import TASK


def _ok(split: int, auc: float, seconds: float = 1.0) -> Record:
    task = replace(TASK, split=split)
    return Record(task, "ok", metrics={"auc": auc}, seconds={"fit": seconds})


def test_cells_hold_mean_and_sample_standard_deviation() -> None:
    values = [0.7, 0.9, 0.85]
    tally = Tally("auc")
    tally.extend(_ok(i, value) for i, value in enumerate(values))
    assert tally.mean(("l", 1.0)) == pytest.approx(np.mean(values))
    assert tally.sd(("l", 1.0)) == pytest.approx(np.std(values, ddof=1))


def test_the_order_of_records_does_not_move_the_mean() -> None:
    values = list(np.random.default_rng(0).random(25))
    tallies = [Tally("auc"), Tally("auc")]
    for tally, order in zip(tallies, (values, values[::-1]), strict=True):
        tally.extend(_ok(i, value) for i, value in enumerate(order))
    assert tallies[0].mean(("l", 1.0)) == tallies[1].mean(("l", 1.0))


def test_one_split_has_no_standard_deviation() -> None:
    tally = Tally("auc")
    tally.add(_ok(0, 0.5))
    assert tally.sd(("l", 1.0)) is None


def test_failures_and_skips_are_counted_by_reason() -> None:
    tally = Tally("auc")
    tally.extend(Record(replace(TASK, split=i), "failed", message="boom") for i in range(3))
    tally.add(Record(replace(TASK, epsilon=math.inf), "skipped", message="no"))
    assert tally.problems == {("failed", "l", "boom"): 3, ("skipped", "l", "no"): 1}
    assert Summary("x", tally, ran=3, wall_seconds=1.0).failed == 3
    assert tally.values == {}


def test_seconds_add_up_by_method_and_phase() -> None:
    tally = Tally("auc")
    tally.extend([_ok(0, 0.5, 1.5), _ok(1, 0.5, 2.0)])
    assert tally.seconds == {("l", "fit"): 3.5}


def test_one_synthetic_record_marks_the_whole() -> None:
    tally = Tally("auc")
    tally.add(_ok(0, 0.5))
    assert not tally.is_synthetic
    made_up = replace(TASK, data_fingerprint=f"{SYNTHETIC_PREFIX}abc")
    tally.add(Record(made_up, "ok", metrics={"auc": 0.5}))
    assert tally.is_synthetic
    assert not tally.is_private


def test_records_of_private_rows_are_noticed() -> None:
    private = replace(TASK, data_fingerprint=f"{PRIVATE_PREFIX}abc-def")
    for status, noticed in (("skipped", True), ("failed", True), ("ok", True)):
        tally = Tally("auc")
        tally.add(Record(private, status, metrics={"auc": 0.5}))  # type: ignore[arg-type]
        assert tally.is_private == noticed
