"""Several processes share the figures of a command, and their pictures are the same."""

import io
import os
import time
from functools import partial

import pytest

from dprepro.release import progress
from dprepro.report.draw import files
from dprepro.report.draw.files import in_processes
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import PlainConsole


def test_several_processes_return_what_one_does_in_the_same_order(monkeypatch):
    jobs = [partial(divmod, number, 3) for number in range(12)]
    monkeypatch.setattr(files, "cpu_count", lambda: 3)
    several = in_processes(jobs)
    where = in_processes([_where] * 30)
    monkeypatch.setattr(files, "cpu_count", lambda: 1)
    assert several == in_processes(jobs) == [divmod(number, 3) for number in range(12)]
    assert where[0] == os.getpid(), "this process takes its share"
    assert 2 <= len(set(where)) <= 3
    assert in_processes([os.getpid] * 12) == [os.getpid()] * 12


def test_few_figures_start_no_process(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    assert in_processes([os.getpid] * 2) == [os.getpid()] * 2


def test_a_process_that_ends_early_is_one_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    with pytest.raises(DpreproError, match=r"ended early.*LOKY_MAX_CPU_COUNT=1"):
        in_processes([partial(_end_elsewhere, os.getpid())] * 60)


def test_an_error_of_a_job_is_raised_as_it_is(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    with pytest.raises(DpreproError, match="a feature"):
        in_processes([partial(_fail, "a feature")] * 12)


def test_a_bar_counts_the_figures_and_says_how_long_the_rest_will_take(monkeypatch):
    monkeypatch.setattr(files, "cpu_count", lambda: 2)
    console = PlainConsole(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(progress, "error_console", lambda: console)
    monkeypatch.setenv("TERM", "xterm")
    in_processes([_where] * 12)
    said = console.file.getvalue()
    assert "drawing figures" in said
    assert "/12" in said
    assert "left" in said


def _where():
    time.sleep(0.1)
    return os.getpid()


def _end_elsewhere(here):
    if os.getpid() != here:
        os._exit(3)
    time.sleep(0.2)


def _fail(text):
    raise DpreproError(text)
