"""A run takes as long as tasks like its own took before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dprepro.experiment.display import forecast_lines, roughly
from dprepro.experiment.forecast import Expected, Forecast, forecast
from dprepro.experiment.record import Record, Task
from tests.experiment.test_record import TASK
from tests.report.journals import write

TASKS = [replace(TASK, split=split) for split in range(4)]
NONE = Path("nowhere")


def took(seconds: float, **fields: object) -> list[Record]:
    times = {"encode": seconds / 4, "fit": seconds / 2, "predict": seconds / 4}
    return [Record(replace(TASK, split=9, **fields), "ok", {"auc": 0.5}, times)]  # type: ignore[arg-type]


def only(todo: list[Task], own: Path, shipped: Path = NONE) -> Expected:
    (part,) = forecast(todo, own, shipped).parts
    return part


def test_a_task_takes_the_mean_of_its_method_and_dataset(tmp_path: Path) -> None:
    write(tmp_path, "one", [*took(2.0), *took(4.0, epsilon=8.0), *took(90.0, dataset="other")])
    write(tmp_path, "two", [*took(6.0, label="k"), *took(90.0, method="n")])
    part = only(TASKS, tmp_path)
    assert (part.tasks, part.seconds, part.total) == (4, 4.0, 16.0)
    assert (part.is_own, part.is_same) == (True, True)


def test_a_packed_journal_and_one_that_failed_or_is_damaged(tmp_path: Path) -> None:
    assert only([replace(TASK, method="ebm", dataset="telco")], NONE, Path("results")).seconds
    failed = [replace(record, status="failed", metrics={}) for record in took(3.0)]
    write(tmp_path, "failed", failed)
    (tmp_path / "damaged.jsonl").write_text("nothing\n")
    assert only(TASKS, tmp_path).seconds is None


def test_the_same_parameters_come_before_ones_own_records(tmp_path: Path) -> None:
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    for folder, name, records in (
        (own, "a", took(2.0, params={"rounds": 5})),
        (shipped, "b", [*took(8.0), *took(100.0, params={"rounds": 9})]),
    ):
        write(folder, name, records)
    part = only(TASKS, own, shipped)
    assert (part.seconds, part.is_own, part.is_same) == (8.0, False, True)
    other = [replace(task, params={"rounds": 7}) for task in TASKS]
    part = only(other, own, shipped)
    assert (part.seconds, part.is_own, part.is_same) == (2.0, True, False)
    assert only(other, NONE, shipped).seconds == 54.0


def test_workers_share_what_is_not_one_task() -> None:
    ahead = Forecast((Expected("a", 10, 6.0), Expected("b", 1, 50.0), Expected("c", 3)))
    assert (ahead.tasks, ahead.seconds, ahead.unknown) == (14, 110.0, {"c": 3})
    assert [ahead.wall_seconds(jobs) for jobs in (1, 2, 16)] == [110.0, 55.0, 50.0]


def test_it_is_said_where_times_come_from_and_of_which_tasks_none_is_known() -> None:
    parts = (
        Expected("a", 10, 6.0, is_own=True, is_same=True),
        Expected("b", 5, 60.0, is_same=True),
        Expected("c", 2, 60.0),
        Expected("d", 3),
    )
    assert list(forecast_lines(Forecast(parts), 4, Path("mine"))) == [
        "Expected: 2 min on 4 workers (8 min of one processor) for 17 tasks.",
        "Times are means of the same method on the same dataset: 10 recorded in mine; 5 of the "
        "runs that come with dprepro, on another machine; 2 of the runs that come with dprepro, "
        "with other parameters.",
        "No time is known of 3 tasks: d (3). They come on top. With --splits 1 a run shows how "
        "long one takes.",
    ]
    cluster, *_ = forecast_lines(Forecast(parts), None, Path("mine"))
    assert cluster == "Expected: 8 min of one processor for 17 tasks."
    assert not list(forecast_lines(Forecast(()), 4, Path("mine")))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.943, "0.94 s"), (89, "89 s"), (5399, "90 min"), (7e3, "1.9 h"), (1e6, "12 days"),
     (0.0, "0 s"), (90, "1.5 min")],
)  # fmt: skip
def test_times_have_two_digits(seconds: float, said: str) -> None:
    assert roughly(seconds) == said
