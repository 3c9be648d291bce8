from __future__ import annotations

import threading
from typing import Any

import pytest

from dprepro.experiment.executors import Call, CallQueue, HandedBackError, Slot


def _take(queue: CallQueue, slot: str) -> Any:
    call = queue.take(slot)
    assert call is not None
    return call.affinity, call.args[0]


def test_slots_keep_to_their_group_then_help_with_the_longest() -> None:
    queue = CallQueue()
    for affinity, size in (("a", 2), ("b", 4), ("c", 1)):
        for number in range(size):
            queue.put(Call(print, (number,), affinity))
    assert _take(queue, "one") == ("a", 0)
    assert _take(queue, "two") == ("b", 0)
    assert _take(queue, "one") == ("a", 1)
    assert _take(queue, "one") == ("c", 0)  # nobody serves c yet
    assert _take(queue, "one") == ("b", 1)  # only b is left
    assert _take(queue, "two") == ("b", 2)
    assert _take(queue, "three") == ("b", 3)
    queue.close()
    assert queue.take("one") is None


def test_a_waiting_slot_is_woken() -> None:
    queue = CallQueue()
    taken: list[Call | None] = []
    waiting = threading.Thread(target=lambda: taken.append(queue.take("slot")))
    waiting.start()
    call = Call(print, (), None)
    queue.put(call)
    waiting.join(10)
    assert taken == [call]


def test_a_retired_slot_gets_nothing_more_and_frees_its_group() -> None:
    queue = CallQueue()
    for number in range(3):
        queue.put(Call(print, (number,), "a"))
    queue.put(Call(print, (0,), "b"))
    assert _take(queue, "one") == ("a", 0)
    queue.retire("one")
    assert queue.take("one") is None
    assert queue.unfinished() == 3  # what the retired slot ran counts no more
    assert _take(queue, "two") == ("a", 1)  # free again, and first in line


def test_a_retired_slot_that_waits_is_woken() -> None:
    queue = CallQueue()
    taken: list[Call | None] = []
    waiting = threading.Thread(target=lambda: taken.append(queue.take("slot")))
    waiting.start()
    queue.retire("slot")
    waiting.join(10)
    assert taken == [None]


def test_emptying_returns_what_waits_and_ends_the_slots() -> None:
    queue = CallQueue()
    calls = [Call(print, (number,), number % 2) for number in range(3)]
    for call in calls:
        queue.put(call)
    assert set(queue.empty()) == set(calls)
    assert queue.take("one") is None
    assert queue.empty() == []


class _Hesitant(Slot):
    """Hands every call back once."""

    def __init__(self, queue: CallQueue) -> None:
        super().__init__(queue)
        self.seen: set[Call] = set()
        self.ended = False

    def serve(self, call: Call) -> Any:
        if call not in self.seen:
            self.seen.add(call)
            self._queue.put(call)
            raise HandedBackError
        return call.fn(*call.args)

    def end(self) -> None:
        self.ended = True


def test_a_call_that_is_handed_back_is_served_later() -> None:
    queue = CallQueue()
    calls = [Call(pow, (2, number), None) for number in range(3)]
    calls.append(Call(int, ("no number",), None))
    for call in calls:
        queue.put(call)
    slot = _Hesitant(queue)
    slot.start()
    assert [call.future.result(10) for call in calls[:3]] == [1, 2, 4]
    with pytest.raises(ValueError, match="no number"):
        calls[3].future.result(10)
    queue.close()
    slot.join(10)
    assert slot.ended
