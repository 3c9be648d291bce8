"""Threads: who runs what, and what happens when something goes wrong."""

import threading

import pytest

from dprepro.threads import ALONE, Threads, granted


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("items", [0, 1, 2, 7])
def test_results_come_in_the_order_of_the_items(number, items):
    with Threads(number) as threads:
        assert threads.map(lambda item: 10 * item, range(items)) == [10 * k for k in range(items)]


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


def test_who_waits_for_a_thread_that_cannot_start_is_told():
    with Threads(3) as threads:
        gave_up = threading.Event()

        def no_more(*_):
            raise RuntimeError("can't start new thread")

        threads._pool.submit = no_more
        with pytest.raises(RuntimeError, match="start"):
            threads.together(lambda _: gave_up.wait(), gave_up.set)
        assert gave_up.is_set()


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
