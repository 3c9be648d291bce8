"""What a Dask worker does with a call: hand it to a process of its own.

Calls and results stay pickled on their way through the scheduler and the Dask worker, which so
never import what the calls need, nor stand still for as long as that takes.
"""

from __future__ import annotations

import multiprocessing
import pickle
import socket
import threading
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dprepro.experiment import environment
from dprepro.experiment.local import LocalExecutor
from dprepro.runtime.errors import DpreproError

# Seconds without a call after which processes end that a vanished run left behind.
IDLE_LIMIT = 600.0


@dataclass
class _Pool:
    """The processes that serve a run, and how many calls they have at the moment."""

    executor: LocalExecutor
    calls: int = 0


_pools: dict[str, _Pool] = {}
_pools_lock = threading.Lock()


@dataclass(frozen=True)
class Session:
    """What the workers need to know of a run.

    Attributes
    ----------
    time_limit
        See `LocalExecutor`.
    warm_up
        See `LocalExecutor`; a `packed` call.
    versions
        Of the libraries where the run was started.
    token
        Tells runs apart.
    """

    time_limit: float | None
    warm_up: bytes
    versions: Mapping[str, str] = field(default_factory=environment.versions)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)


def packed(fn: Callable[..., Any], *args: Any) -> bytes:
    """Return ``fn(*args)``, still to be called, as bytes."""
    return pickle.dumps((fn, args))


def run_call(
    session: Session, call: bytes, affinity: Hashable
) -> tuple[bytes, BaseException | None]:
    """Run a `packed` call in a process of this Dask worker.

    Return its pickled result and None, or nothing and what it raised.

    Raises
    ------
    DpreproError
        If this worker cannot serve the run: other library versions, no data, no memory.
    """
    from distributed import get_worker

    worker = get_worker()
    try:
        with _called(session, worker.state.nthreads) as executor:
            return executor.submit(_run_packed, call, affinity=affinity).result(), None
    except DpreproError as error:
        place = f"Dask worker {worker.address} on {socket.gethostname()}"
        raise DpreproError(f"{place}: {error}") from None
    except Exception as error:
        return b"", error


def end_session(token: str) -> None:
    """End the processes that serve a run, whatever they do."""
    with _pools_lock:
        pool = _pools.pop(token, None)
    if pool is not None:
        pool.executor.kill()


@contextmanager
def _called(session: Session, jobs: int) -> Iterator[LocalExecutor]:
    """Yield the processes that serve a run, as many as this Dask worker has threads."""
    with _pools_lock:
        pool = _pool(session, jobs)
        pool.calls += 1
    try:
        yield pool.executor
    finally:
        with _pools_lock:
            pool.calls -= 1


def _pool(session: Session, jobs: int) -> _Pool:
    if session.token not in _pools:
        _check_versions(session.versions)
        _end_idle()
        # Dask marks its workers as daemons, which may not start processes lest these outlive
        # them. Ours end with their parent.
        multiprocessing.current_process().daemon = False
        warm_up = partial(_run_packed, session.warm_up)
        _pools[session.token] = _Pool(LocalExecutor(jobs, session.time_limit, warm_up, IDLE_LIMIT))
    return _pools[session.token]


def _end_idle() -> None:
    """End the processes without a call: their run may have been killed, and more may follow.

    A run that is alive gets new ones with its next call.
    """
    for token in [token for token, pool in _pools.items() if pool.calls == 0]:
        _pools.pop(token).executor.kill()


def _run_packed(call: bytes) -> bytes:
    fn, args = pickle.loads(call)
    return pickle.dumps(fn(*args))


def _check_versions(wanted: Mapping[str, str]) -> None:
    here = environment.versions()
    other = [
        f"{name} {here.get(name, 'missing')} instead of {wanted.get(name, 'none')}"
        for name in sorted({*wanted, *here})
        if here.get(name) != wanted.get(name)
    ]
    if other:
        raise DpreproError(
            f"its versions are not those of the machine that started the run: {', '.join(other)}. "
            "Results could differ; install the same versions"
        )
