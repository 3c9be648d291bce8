from __future__ import annotations

from dataclasses import replace

import pytest

from dprepro.experiment.display import Eta
from dprepro.experiment.record import Record, Task
from tests.experiment.test_record import TASK


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def tasks(label: str, count: int) -> list[Task]:
    return [replace(TASK, label=label, split=split) for split in range(count)]


def finished(task: Task, seconds: float) -> Record:
    return Record(task, "ok", metrics={"auc": 0.5}, seconds={"encode": 0.0, "fit": seconds})


def test_the_first_round_of_the_workers_does_not_count() -> None:
    """Two workers take 30 seconds to start, and then half a second a task."""
    clock, todo = Clock(), tasks("a", 10)
    pace = Eta(todo, [], jobs=2, clock=clock)
    clock.now = 30.0
    for task in todo[:2]:
        pace.advance(finished(task, 0.5))
        assert pace.per_second is None
    assert (pace.per_second, pace.in_words) == (None, "")
    for task in todo[2:6]:
        clock.now += 0.25
        pace.advance(finished(task, 0.5))
    assert pace.per_second == pytest.approx(4.0)
    assert pace.in_words == "4 tasks/s"
    assert pace.seconds_left == pytest.approx(4 * 0.5 / 2)


def test_slow_tasks_are_counted_by_the_minute() -> None:
    clock, todo = Clock(), tasks("a", 3)
    pace = Eta(todo, [], jobs=1, clock=clock)
    for task in todo:
        clock.now += 30.0
        pace.advance(finished(task, 30.0))
    assert pace.in_words == "2 tasks/min"
    assert pace.seconds_left == 0


def test_fast_tasks_are_counted_in_whole_numbers() -> None:
    clock, todo = Clock(), tasks("a", 5)
    pace = Eta(todo, [], jobs=1, clock=clock)
    for task in todo:
        clock.now += 0.0004
        pace.advance(finished(task, 0.0))
    assert pace.in_words == "2,500 tasks/s"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1.5, "40 tasks/min"), (1.0, "1 tasks/s"), (1 / 9.5, "9.5 tasks/s"), (0.1, "10 tasks/s"),
        (1 / 10.6, "11 tasks/s"),
    ],
)  # fmt: skip
def test_a_pace_is_told_in_two_digits_or_whole_numbers(seconds: float, said: str) -> None:
    clock, todo = Clock(), tasks("a", 2)
    pace = Eta(todo, [], jobs=1, clock=clock)
    pace.advance(finished(todo[0], seconds))
    clock.now = seconds
    pace.advance(finished(todo[1], seconds))
    assert pace.in_words == said


def test_without_workers_nothing_is_left_to_wait_for() -> None:
    earlier = [finished(task, 20.0) for task in tasks("a", 2)]
    assert Eta([], earlier, jobs=0, clock=Clock()).seconds_left == 0.0


def test_nothing_is_said_of_methods_that_have_not_finished_a_task() -> None:
    todo = [*tasks("quick", 2), *tasks("slow", 10)]
    pace = Eta(todo, [], jobs=1, clock=Clock())
    pace.advance(finished(todo[0], 0.1))
    assert pace.seconds_left is None
    pace.advance(finished(todo[1], 0.1))
    assert pace.seconds_left is None
    pace.advance(finished(todo[2], 20.0))
    assert pace.seconds_left == pytest.approx(9 * 20.0)


def test_earlier_runs_say_how_long_a_method_takes() -> None:
    earlier = [finished(task, 20.0) for task in tasks("slow", 2)]
    assert Eta(tasks("slow", 6), earlier, 3, Clock()).seconds_left == pytest.approx(40.0)


def test_from_a_quarter_of_all_tasks_on_other_methods_speak_for_one() -> None:
    todo = [*tasks("quick", 2), *tasks("other", 6)]
    pace = Eta(todo, [], jobs=1, clock=Clock())
    for task in todo[:2]:
        pace.advance(finished(task, 1.0))
    assert pace.seconds_left == pytest.approx(6.0)


def test_tasks_that_end_in_one_instant_have_no_pace() -> None:
    todo = tasks("a", 3)
    pace = Eta(todo, [], jobs=1, clock=Clock())
    for task in todo:
        pace.advance(finished(task, 0.0))
        assert pace.per_second is None


def test_one_task_is_waited_for_by_one_worker() -> None:
    todo = tasks("a", 3)
    pace = Eta(todo, [], jobs=2, clock=Clock())
    for task in todo[:2]:
        pace.advance(finished(task, 20.0))
    assert pace.seconds_left == pytest.approx(20.0)


def test_a_method_of_which_no_task_is_left_is_not_waited_for() -> None:
    todo = [*tasks("failing", 1), *tasks("a", 20)]
    pace = Eta(todo, [], jobs=1, clock=Clock())
    pace.advance(Record(todo[0], "failed", message="x"))
    pace.advance(finished(todo[1], 2.0))
    assert pace.seconds_left == pytest.approx(19 * 2.0)


def test_a_failed_task_says_nothing_of_the_time() -> None:
    todo = tasks("a", 8)
    pace = Eta(todo, [], jobs=1, clock=Clock())
    pace.advance(Record(todo[0], "failed", message="x"))
    assert pace.seconds_left is None
