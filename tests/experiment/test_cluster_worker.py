from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import distributed
import psutil
import pytest

from dprepro.experiment import environment
from dprepro.experiment.cluster import Session, end_session, packed, run_call
from dprepro.runtime.errors import DpreproError
from tests.experiment import calls


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session, in a process that takes itself for a Dask worker of one thread."""
    here = SimpleNamespace(address="tcp://here:1", state=SimpleNamespace(nthreads=1))
    monkeypatch.setattr(distributed, "get_worker", lambda: here)
    session = Session(time_limit=20.0, warm_up=packed(calls.nothing))
    yield session
    end_session(session.token)


def _pid(session: Session) -> int:
    result, error = run_call(session, packed(os.getpid), None)
    assert error is None
    pid = pickle.loads(result)
    assert isinstance(pid, int)
    return pid


def test_calls_of_one_session_share_a_process_until_it_ends(session: Session) -> None:
    pid = _pid(session)
    assert pid != os.getpid()
    assert _pid(session) == pid
    end_session(session.token)
    assert not psutil.pid_exists(pid)
    end_session(session.token)  # nothing is left, which is fine
    assert _pid(session) != pid


def test_sessions_do_not_share_processes(session: Session) -> None:
    other = Session(session.time_limit, session.warm_up)
    try:
        assert _pid(other) != _pid(session)
    finally:
        end_session(other.token)


def test_a_new_session_ends_what_idle_sessions_left_and_no_call(session: Session) -> None:
    """A run that was killed ends nothing; each further one would leave as many again."""
    idle, busy = _pid(session), Session(session.time_limit, session.warm_up)
    answers: list[tuple[bytes, BaseException | None]] = []
    call = packed(calls.pid_after, 3.0)
    thread = threading.Thread(target=lambda: answers.append(run_call(busy, call, None)))
    new = Session(session.time_limit, session.warm_up)
    try:
        thread.start()
        while psutil.pid_exists(idle):
            assert thread.is_alive()
            time.sleep(0.05)
        assert _pid(new)
        assert thread.is_alive()
        thread.join()
        ((result, error),) = answers
        assert error is None
        assert pickle.loads(result) not in (idle, _pid(new))
        assert _pid(session) != idle
    finally:
        for one in (busy, new):
            end_session(one.token)


def test_what_a_call_raises_is_handed_over(session: Session) -> None:
    result, error = run_call(session, packed(calls.fail, "as told"), None)
    assert result == b""
    assert isinstance(error, ValueError)
    assert str(error) == "as told"


@pytest.mark.parametrize("name", ["numpy", "dprepro", "python"])
def test_other_versions_are_refused_before_anything_starts(session: Session, name: str) -> None:
    versions = {**environment.versions(), name: "0.1"}
    here = environment.versions()[name]
    with pytest.raises(DpreproError, match=rf"tcp://here:1 on .*: {name} {here} instead of 0\.1\."):
        run_call(replace(session, versions=versions), packed(os.getpid), None)


def test_a_library_on_one_side_only_counts_too(session: Session) -> None:
    versions = environment.versions()
    del versions["scipy"]
    with pytest.raises(DpreproError, match=r"scipy \S+ instead of none"):
        run_call(replace(session, versions=versions), packed(os.getpid), None)
    with pytest.raises(DpreproError, match="extra missing instead of 1"):
        run_call(
            replace(session, versions={**environment.versions(), "extra": "1"}),
            packed(os.getpid),
            None,
        )


def test_a_machine_that_cannot_prepare_says_which_it_is(session: Session) -> None:
    bad = replace(session, warm_up=packed(calls.cannot_prepare))
    with pytest.raises(DpreproError, match=r"^Dask worker tcp://here:1 on \S+: no data here$"):
        run_call(bad, packed(os.getpid), None)
