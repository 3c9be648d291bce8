"""Several processes share the figures of a command, and their pictures are the same."""

import os
from functools import partial

import pytest

from dprepro.errors import DpreproError
from dprepro.report.draw import processes
from dprepro.report.draw.processes import in_processes


def test_several_processes_return_what_one_does_in_the_same_order(monkeypatch):
    jobs = [partial(divmod, number, 3) for number in range(10)]
    monkeypatch.setattr(processes, "cpu_count", lambda: 2)
    several = in_processes(jobs)
    where = in_processes([os.getpid] * 10)
    monkeypatch.setattr(processes, "cpu_count", lambda: 1)
    assert several == in_processes(jobs) == [divmod(number, 3) for number in range(10)]
    assert os.getpid() not in where
    assert in_processes([os.getpid] * 10) == [os.getpid()] * 10


def test_few_figures_start_no_process(monkeypatch):
    monkeypatch.setattr(processes, "cpu_count", lambda: 2)
    assert in_processes([os.getpid] * 2) == [os.getpid()] * 2


def test_a_process_that_ends_early_is_one_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(processes, "cpu_count", lambda: 2)
    with pytest.raises(DpreproError, match=r"ended early.*LOKY_MAX_CPU_COUNT=1"):
        in_processes([partial(os._exit, 3)] * 10)


def test_an_error_of_a_job_is_raised_as_it_is(monkeypatch):
    monkeypatch.setattr(processes, "cpu_count", lambda: 2)
    with pytest.raises(DpreproError, match="a feature"):
        in_processes([partial(_fail, "a feature")] * 10)


def _fail(text):
    raise DpreproError(text)
