"""Threads: who runs what, and what happens when something goes wrong."""

import threading

import pytest

from dprepro.runtime.threads import ALONE, Threads, granted


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("items", [0, 1, 2, 7])
def test_results_come_in_the_order_of_the_items(number, items):
    with Threads(number) as threads:
        assert threads.map(lambda item: 10 * item, range(items)) == [10 * k for k in range(items)]


@pytest.mark.parametrize("number", [1, 2])
def test_items_are_made_while_other_threads_work(number):
    """All made beforehand, the second would wait in vain for the work on the first."""
    begun = threading.Event()

    def made():
        yield 0
        assert begun.wait(20)
        yield 1

    def work(item):
        begun.set()
        return item

    with Threads(number) as threads:
        assert threads.map(work, made()) == [0, 1]


def test_the_error_of_what_makes_items_is_raised():
    def made():
        yield 0
        raise OSError("item 1")

    with Threads(2) as threads, pytest.raises(OSError, match="item 1"):
        threads.map(lambda item: item, made())


def test_all_run_at_the_same_time():
    """Each waits until all are there, which threads that took turns would not be."""
    gate = threading.Barrier(4, timeout=20)
    with Threads(4) as threads:
        assert sorted(threads.together(lambda thread: (gate.wait(), thread)[1])) == [0, 1, 2, 3]


def test_the_caller_is_one_of_them():
    with Threads(3) as threads:
        assert threads.together(lambda _: threading.get_ident())[0] == threading.get_ident()
    assert ALONE.together(lambda _: threading.get_ident()) == [threading.get_ident()]


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_the_error_of_any_item_is_raised(bad):
    def fail(item):
        if item == bad:
            raise OSError(f"item {item}")

    with Threads(2) as threads, pytest.raises(OSError, match=f"item {bad}"):
        threads.map(fail, range(3))


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_who_waits_for_a_thread_that_fails_is_told(bad):
    gave_up = threading.Event()

    def wait_or_fail(thread):
        if thread == bad:
            raise OSError(f"thread {thread}")
        assert gave_up.wait(20)

    with Threads(3) as threads, pytest.raises(OSError, match=f"thread {bad}"):
        threads.together(wait_or_fail, gave_up.set)


def test_an_interrupted_caller_waits_until_all_have_given_up():
    gave_up, ended = threading.Event(), []

    def interrupt(thread):
        if thread == 0:
            raise KeyboardInterrupt
        assert gave_up.wait(20)
        ended.append(thread)

    with Threads(3) as threads:
        with pytest.raises(KeyboardInterrupt):
            threads.together(interrupt, gave_up.set)
        assert sorted(ended) == [1, 2]
        assert threads.map(abs, [-1, -2, -3]) == [1, 2, 3]


def test_many_short_jobs_leave_a_thread_for_each_of_those_that_meet():
    with Threads(8) as threads:
        for _ in range(200):
            threads.map(abs, [-1, -2])
            gate = threading.Barrier(8, timeout=20)
            threads.together(lambda _, gate=gate: gate.wait())


def test_all_threads_end_with_the_block():
    before = threading.active_count()
    with Threads(5) as threads:
        threads.map(abs, [1, 2])
        assert threading.active_count() == before + 4
    assert threading.active_count() == before


def test_none_is_one_or_what_is_granted():
    assert Threads(None).number == 1
    with granted(3):
        assert Threads(None).number == 3
        assert Threads(1).number == 1
    assert Threads(None).number == 1
    assert Threads(-1).number >= 1


@pytest.mark.parametrize("wrong", [0, 1.5, "2", True])
def test_another_number_is_refused(wrong):
    with pytest.raises(ValueError, match="n_jobs must"):
        Threads(wrong)
