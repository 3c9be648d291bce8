"""Workers of a Dask cluster, and what they do with a call: hand it to a process of their own.

Dask brings a call to one of its workers, and the result back. The process is as `LocalExecutor`
has it here. So a call meets the same conditions in both places (one thread, its time limit, its
death is its own), and one that holds Python's lock never makes its worker seem dead.

Calls and results stay pickled on their way through the scheduler and the Dask worker, which so
never import what the calls need, nor stand still for as long as that takes.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import pickle
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dprepro.experiment import environment
from dprepro.experiment.executors import (
    Call,
    CallQueue,
    Executor,
    MachineFaultError,
    NowhereToRunError,
    Slot,
)
from dprepro.experiment.local import LocalExecutor
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.extras import needs_extra

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

    Raises DpreproError if this worker cannot serve the run: other library versions, no data, no
    memory.
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


# In seconds: to reach the scheduler; without any worker, before the run gives up; between two
# looks at the workers; to notice that one is lost; for them to end their processes at the end.
CONNECT_LIMIT = 10.0
WORKERLESS_LIMIT = 60.0
LOOK_INTERVAL = 1.0
NOTICE_LIMIT = 5.0
END_LIMIT = 10.0

CONNECT_TRIES = 5

_RESUME = "Finished tasks are in the journal, and the same command continues the run"


class DaskExecutor(Executor):
    """Runs calls on the workers of a Dask cluster, as many at a time as they have threads.

    Workers may come and go. A call whose worker is lost runs again on another one; with the third
    worker that it loses it is given up (`MachineFaultError`).

    Raises NowhereToRunError if Dask is not installed, the scheduler does not answer, or no worker
    joins it.

    Parameters
    ----------
    address
        The scheduler's ``HOST:PORT``.
    time_limit, warm_up
        See `LocalExecutor`; the time counts on the worker, from the start of the call.
    """

    def __init__(
        self,
        address: str,
        time_limit: float | None = None,
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._address = address
        self._session = Session(time_limit, packed(warm_up or _nothing))
        self._slots: dict[str, list[_DaskSlot]] = {}
        self._unfinished: set[Future[Any]] = set()
        self._problem: DpreproError | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._client = _connect(address)
        try:
            self._await_workers()
        except BaseException:
            self._client.close()
            raise
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        """See `Executor.close`; the Dask workers themselves go on."""
        wait(list(self._unfinished))  # before the slots end: a call may need another worker
        super().close()

    def _put(self, call: Call) -> None:
        with self._lock:
            if self._problem is None:
                self._unfinished.add(call.future)
                self._queue.put(call)
            else:
                call.future.set_exception(self._problem)
        call.future.add_done_callback(self._unfinished.discard)

    def _all_slots(self) -> list[_DaskSlot]:
        with self._lock:
            return [slot for slots in self._slots.values() for slot in slots]

    def _await_workers(self) -> None:
        start = time.monotonic()
        self._look()
        if not self._slots:
            print(
                f"no worker has joined the cluster at {self._address} yet; waiting for one, at "
                f"most {WORKERLESS_LIMIT:g} s",
                file=sys.stderr,
                flush=True,
            )
        while not self._slots:
            if time.monotonic() - start > WORKERLESS_LIMIT:
                raise _no_workers(self._address)
            time.sleep(LOOK_INTERVAL)
            self._look()

    def _watch(self) -> None:
        """Follow the workers, and fail what is unfinished once no hope is left for it."""
        last_seen = time.monotonic()
        while not self._ended.wait(LOOK_INTERVAL):
            try:
                self._look()
            except Exception:
                if not self._ended.is_set():
                    self._fail(_scheduler_gone(self._address))
                return
            if self.jobs:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > WORKERLESS_LIMIT:
                self._fail(_no_workers(self._address))
                return

    def _look(self) -> None:
        """Give every worker that joined its slots, and retire the slots of those that left."""
        threads: dict[str, int] = self._client.nthreads()
        with self._lock:
            if self._ended.is_set():
                return
            for worker in self._slots.keys() - threads.keys():
                for slot in self._slots.pop(worker):
                    slot.retire()
            for worker in threads.keys() - self._slots.keys():
                self._slots[worker] = [
                    _DaskSlot(self._queue, self._client, self._session, self._address, worker)
                    for _ in range(threads[worker])
                ]
                for slot in self._slots[worker]:
                    slot.start()

    def _fail(self, problem: DpreproError) -> None:
        with self._lock:
            self._problem = problem
        for call in self._queue.empty():
            call.future.set_exception(problem)
        for slot in self._all_slots():
            slot.fail(problem)

    def _leave(self) -> None:
        """Have the workers end their processes, and close the connection."""
        self._ended.set()
        # In a thread, since Dask would wait without limit for a worker that does not answer.
        farewell = threading.Thread(target=self._end_session, daemon=True)
        farewell.start()
        farewell.join(END_LIMIT)
        self._client.close()
        for slot in self._all_slots():
            slot.join()

    def _end_session(self) -> None:
        if self._client.status == "running":
            with contextlib.suppress(Exception):
                self._client.run(end_session, self._session.token, on_error="ignore")


class _DaskSlot(Slot):
    """Hands calls to one thread of one worker."""

    def __init__(
        self, queue: CallQueue, client: Any, session: Session, address: str, worker: str
    ) -> None:
        super().__init__(queue)
        self._client = client
        self._session = session
        self._address = address
        self._worker = worker
        self._retired = threading.Event()
        self._problem: DpreproError | None = None
        self._running: Any = None

    def kill(self) -> None:
        """Cancel the call that runs."""
        super().kill()
        self._cancel()

    def fail(self, problem: DpreproError) -> None:
        """Let the call that runs fail with `problem`."""
        self._problem = problem
        self._cancel()

    def retire(self) -> None:
        """End, since the worker is lost; the call that runs goes to another one."""
        self._retired.set()
        self._queue.retire(self)
        self._cancel()

    def end(self) -> None:
        """Nothing is left to do: the worker's processes end with the session."""

    def serve(self, call: Call) -> Any:
        """See `Slot.serve`."""
        from distributed.scheduler import KilledWorker

        try:
            self._running = self._submit(call)
            if self._retired.is_set():
                self._cancel()
            result, error = self._running.result()
        except KilledWorker:  # it came back under one address so quickly that nobody noticed
            raise MachineFaultError(
                f"the Dask worker {self._worker} was lost again and again while it ran it"
            ) from None
        except DpreproError:
            raise
        except Exception as reason:
            if self._has_lost_worker():
                self.try_again(call, f"the Dask worker {self._worker} was lost while it ran it")
            raise self._explain(reason) from reason
        finally:
            self._running = None
        if error is not None:
            raise error
        return pickle.loads(result)

    def _submit(self, call: Call) -> Any:
        # Dask could move the call itself if other workers were allowed, but forgets to do so for
        # as long as there are none.
        return self._client.submit(
            run_call,
            self._session,
            packed(call.fn, *call.args),
            call.affinity,
            workers=[self._worker],
            pure=False,
        )

    def _has_lost_worker(self) -> bool:
        """Tell whether a call went wrong because the worker is gone.

        Dask's errors do not say so, and may come before the loss is noticed.
        """
        if self._killed or self._problem is not None or self._client.status != "running":
            return False
        return self._retired.wait(NOTICE_LIMIT)

    def _explain(self, reason: Exception) -> DpreproError:
        if self._problem is not None:
            return self._problem
        if self._client.status != "running":
            return _scheduler_gone(self._address)
        return _cannot_run(self._worker, reason)

    def _cancel(self) -> None:
        running = self._running
        if running is not None:
            with contextlib.suppress(Exception):
                running.cancel()


def _nothing() -> None:
    pass


def _connect(address: str) -> Any:
    more = ", here and on the workers"
    with needs_extra("dask", "--executor dask needs Dask", more, NowhereToRunError):
        import distributed  # noqa: F401
    import asyncio

    # What goes wrong is told once, by the errors below.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        # A client would wait without limit for something else that listens there.
        kind = asyncio.run(asyncio.wait_for(_kind_of_server(address), CONNECT_LIMIT))
        if kind != "Scheduler":
            raise ValueError(f"a {kind} of Dask answers there")
        return client_of(address, CONNECT_LIMIT)
    except Exception as error:
        reason = str(error) or f"waited {CONNECT_LIMIT:g} s"
        raise NowhereToRunError(
            f"no Dask scheduler answers at {address!r} ({reason}); --address takes the HOST:PORT "
            "that `dask scheduler` prints when it starts"
        ) from error


def client_of(address: str, limit: float) -> Any:
    """Return a connection to a scheduler, made within so many seconds.

    Dask asserts that the scheduler answers with one message. A second one may come with it: that a
    worker came or went at that moment. Then the next try connects.
    """
    from distributed import Client

    for _ in range(CONNECT_TRIES - 1):
        with contextlib.suppress(AssertionError):
            return Client(address, timeout=limit, set_as_default=False)
    return Client(address, timeout=limit, set_as_default=False)


async def _kind_of_server(address: str) -> str:
    from distributed import rpc

    async with rpc(address) as server:
        return str((await server.identity())["type"])


def _scheduler_gone(address: str) -> NowhereToRunError:
    return NowhereToRunError(
        f"the connection to the Dask scheduler at {address} was lost. {_RESUME}, once a scheduler "
        "runs there or at another --address"
    )


def _no_workers(address: str) -> NowhereToRunError:
    return NowhereToRunError(
        f"the Dask scheduler at {address} has had no workers for {WORKERLESS_LIMIT:g} s; start "
        f"some with `dask worker {address}`. {_RESUME}"
    )


def _cannot_run(worker: str, reason: Exception) -> DpreproError:
    return DpreproError(
        f"worker {worker} could not take a task ({type(reason).__name__}: {reason}); scheduler and "
        f"workers need the same dprepro as this machine. {_RESUME}"
    )
