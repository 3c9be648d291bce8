"""Threads: who runs what, and what happens when something goes wrong.

Limits on memory: threads by what fits, a message below it, and no loop without end.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dprepro.experiment.machine_errors import machine_fault
from dprepro.runtime import threads as memory
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import read_bytes
from dprepro.runtime.threads import ALONE, Threads, granted
from tools.campaign.addresses import is_answered


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


ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 10**6


def run(most: int, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python below a limit of so many MB on addresses, and 60 s of a processor."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 65))
        resource.setrlimit(resource.RLIMIT_AS, (most * MEGABYTE, most * MEGABYTE))

    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )


def command(*arguments: str) -> str:
    return f"import sys; sys.argv[1:] = {arguments!r}; from dprepro.cli import main; main()"


@pytest.mark.parametrize("threads", ["", "64"])
@pytest.mark.parametrize("most", [300, 990])
def test_below_the_least_a_command_ends_with_2_and_what_to_do(most: int, threads: str) -> None:
    done = run(most, command("methods"), OPENBLAS_NUM_THREADS=threads)
    assert done.returncode == 2
    assert f"may use {most} MB of addresses" in done.stderr
    assert "raise the limit" in done.stderr
    assert done.stderr.count("\n") == 1
    assert is_answered(done.returncode, done.stderr)


@pytest.mark.parametrize("threads", ["", "1", "64"])
def test_from_the_least_on_a_command_does_its_work(threads: str) -> None:
    done = run(1000, command("methods", "dp-ebm-gdp"), OPENBLAS_NUM_THREADS=threads)
    assert done.returncode == 0, done.stderr
    assert "(epsilon, delta)" in done.stdout


def test_help_needs_no_libraries_and_so_no_memory() -> None:
    assert run(300, command("--help")).returncode == 0
    assert run(300, command("--version")).returncode == 0


def test_a_public_name_settles_the_threads_before_numpy_reads_them() -> None:
    code = (
        "import os; from dprepro import Domain; import numpy; "
        "print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['ARROW_DEFAULT_MEMORY_POOL'])"
    )
    done = run(1300, code, OPENBLAS_NUM_THREADS="48", ARROW_DEFAULT_MEMORY_POOL="system")
    assert done.stdout == "2 system\n", done.stderr


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch):
    """Return what is set below a limit, given a machine of 16 processors."""

    def settle(most: int | None, **variables: str) -> dict[str, str]:
        for name in (*memory.THREAD_VARIABLES, "ARROW_DEFAULT_MEMORY_POOL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(memory, "limit_of_memory", lambda: most)
        monkeypatch.setattr(memory, "_take_buffers", lambda: None)
        monkeypatch.setattr(os, "cpu_count", lambda: 16)
        monkeypatch.delitem(sys.modules, "numpy")
        memory.settle_threads()
        names = (*memory.THREAD_VARIABLES, "ARROW_DEFAULT_MEMORY_POOL")
        return {name: os.environ[name] for name in names if name in os.environ}

    return settle


def test_without_a_limit_nothing_is_set(settled) -> None:  # type: ignore[no-untyped-def]
    assert settled(None) == {}


@pytest.mark.parametrize(("megabytes", "threads"), [(1000, "1"), (1255, "1"), (1256, "2")])
def test_threads_are_as_many_as_fit(settled, megabytes: int, threads: str) -> None:  # type: ignore[no-untyped-def]
    found = settled(megabytes * MEGABYTE)
    assert found == dict.fromkeys(memory.THREAD_VARIABLES, threads) | {
        "ARROW_DEFAULT_MEMORY_POOL": "system"
    }


def test_what_the_user_asked_for_stays_where_it_fits(settled) -> None:  # type: ignore[no-untyped-def]
    found = settled(
        3000 * MEGABYTE, OPENBLAS_NUM_THREADS="3", OMP_NUM_THREADS="99,2", MKL_NUM_THREADS="many",
        ARROW_DEFAULT_MEMORY_POOL="mimalloc",
    )  # fmt: skip
    assert found["OPENBLAS_NUM_THREADS"] == "3"
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == "8"
    assert found["ARROW_DEFAULT_MEMORY_POOL"] == "mimalloc"


def test_a_machine_with_room_for_all_is_left_alone(settled) -> None:  # type: ignore[no-untyped-def]
    assert settled(10**12) == {"ARROW_DEFAULT_MEMORY_POOL": "system"}


def test_a_limit_on_data_counts_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {resource.RLIMIT_AS: resource.RLIM_INFINITY, resource.RLIMIT_DATA: 5 * MEGABYTE}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], limits[kind]))
    assert memory.limit_of_memory() == 5 * MEGABYTE
    with pytest.raises(DpreproError, match="may use 5 MB"):
        memory.require_memory()


@pytest.mark.parametrize(
    "said",
    [
        "libscipy_openblas64_.so: failed to map segment from shared object",
        "libgomp.so.1: cannot allocate memory in static TLS block",
        "libtorch.so: cannot create shared object descriptor: Cannot allocate memory",
    ],
)
def test_a_library_that_does_not_fit_is_a_fault_of_the_machine(said: str) -> None:
    error = ImportError("numpy: READ THIS FOR ADVICE")
    error.__cause__ = ImportError(said)
    assert "not enough memory" in machine_fault(error)
    assert machine_fault(ImportError("no module named x")) == ""


def test_reading_takes_no_more_memory_than_there_is_to_read(tmp_path: Path) -> None:
    """A journal may have 1 GiB, and as much was taken before it was opened."""
    path = tmp_path / "small"
    path.write_bytes(b"12345")
    code = (
        "from pathlib import Path; from dprepro.runtime.files import read_bytes; "
        f"print(read_bytes(Path({str(path)!r}), 2**30))"
    )
    done = run(300, code)
    assert done.stdout == "b'12345'\n", done.stderr
    assert read_bytes(Path("/proc/self/stat"), 10_000).endswith(b"\n")
    with pytest.raises(DpreproError, match="larger than a file of its kind can be"):
        read_bytes(path, 4)
