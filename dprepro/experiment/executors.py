"""What the places where tasks run have in common: calls, their queue, and slots that serve it.

The local pool (`dprepro.experiment.local`) and the cluster (`dprepro.experiment.cluster`) differ
only in what a slot does with a call, so that the runner does not care.
"""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn

from dprepro.runtime.errors import DpreproError


class TimeLimitError(Exception):
    """The call took longer than its limit; its worker was killed."""


class WorkerDiedError(Exception):
    """The worker process ended by itself while it ran the call."""


class MachineFaultError(Exception):
    """The call was not brought to its end: its worker was killed, or the machine refused."""


class NowhereToRunError(DpreproError):
    """The executor cannot be had or is gone: no config can run, where another error ends one."""


class HandedBackError(Exception):
    """The slot could not serve the call and has put it back into the queue."""


MOST_ATTEMPTS = 3
"""How often a call runs that is stopped by a fault of the machine each time."""


class Executor(ABC):
    """Runs calls in other processes, each to its end once: slots take them from a queue."""

    def __init__(self) -> None:
        self._queue = CallQueue()

    @property
    def jobs(self) -> int:
        """Number of calls that run at one time; it can change with the workers."""
        return len(self._all_slots())

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, affinity: Hashable = None
    ) -> Future[Any]:
        """Queue ``fn(*args)``; calls of one `affinity` go to one worker where that costs nothing.

        A call that a fault of the machine stopped runs again, `MOST_ATTEMPTS` times in all.

        The future holds the result, or `TimeLimitError`, or `WorkerDiedError`, or
        `MachineFaultError`, or what was raised; `DpreproError` where no worker can be had.
        """
        call = Call(fn, args, affinity)
        self._put(call)
        return call.future

    def close(self) -> None:
        """Wait for what was submitted, then end the workers."""
        self._queue.close()
        self._leave()

    def kill(self) -> None:
        """End the workers now; unfinished futures are cancelled."""
        for call in self._queue.empty():
            call.future.cancel()
        for slot in self._all_slots():
            slot.kill()
        self._leave()

    def _put(self, call: Call) -> None:
        """Add a call to the queue."""
        self._queue.put(call)

    @abstractmethod
    def _all_slots(self) -> Sequence[Slot]:
        """Return what serves the queue now."""

    @abstractmethod
    def _leave(self) -> None:
        """Wait until all slots have ended."""


class Call:
    """A function and its arguments, waiting or running, and the future of its result."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], affinity: Hashable) -> None:
        self.fn = fn
        self.args = args
        self.affinity = affinity
        self.faults: list[str] = []
        self.future: Future[Any] = Future()


class CallQueue:
    """Calls in groups of equal affinity, each group preferably served by one slot."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, deque[Call]] = {}
        self._serving: dict[object, Hashable] = {}
        self._retired: set[object] = set()
        self._busy: set[object] = set()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, call: Call) -> None:
        """Add a call behind those of its group."""
        with self._changed:
            self._groups.setdefault(call.affinity, deque()).append(call)
            self._changed.notify()

    def take(self, slot: object) -> Call | None:
        """Return the next call for `slot`, waiting for one; None once closed and empty.

        A slot that was retired gets None too.
        """
        with self._changed:
            self._busy.discard(slot)
            while not (self._groups or self._closed or slot in self._retired):
                self._changed.wait()
            if slot in self._retired or not self._groups:
                return None
            affinity = self._choose(slot)
            self._serving[slot] = affinity
            self._busy.add(slot)
            group = self._groups[affinity]
            call = group.popleft()
            if not group:
                del self._groups[affinity]
            return call

    def unfinished(self) -> int:
        """Return how many calls run or wait."""
        with self._changed:
            return len(self._busy) + sum(map(len, self._groups.values()))

    def _choose(self, slot: object) -> Hashable:
        """Stay with the group last served; else the first unserved one; else help the longest."""
        last = self._serving.get(slot, _NOTHING)
        if last in self._groups:
            return last
        served = {affinity for other, affinity in self._serving.items() if other is not slot}
        free = next((affinity for affinity in self._groups if affinity not in served), _NOTHING)
        if free is not _NOTHING:
            return free
        return max(self._groups, key=lambda affinity: len(self._groups[affinity]))

    def retire(self, slot: object) -> None:
        """Give `slot` no more calls; its group is free for others."""
        with self._changed:
            self._retired.add(slot)
            self._serving.pop(slot, None)
            self._busy.discard(slot)
            self._changed.notify_all()

    def close(self) -> None:
        """Let the slots end once the queue is empty."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def empty(self) -> list[Call]:
        """Take out what nobody serves yet, close, and return the calls."""
        with self._changed:
            calls = [call for group in self._groups.values() for call in group]
            self._groups.clear()
        self.close()
        return calls


_NOTHING = object()


class Slot(threading.Thread, ABC):
    """A thread that serves a queue, one call at a time, until it is closed and empty."""

    def __init__(self, queue: CallQueue) -> None:
        super().__init__(daemon=True)
        self._queue = queue
        self._killed = False

    @abstractmethod
    def serve(self, call: Call) -> Any:
        """Run the call in a worker and return its result, or raise `HandedBackError`."""

    @abstractmethod
    def end(self) -> None:
        """Let go of the worker; the last thing the thread does."""

    def try_again(self, call: Call, fault: str) -> NoReturn:
        """Put a call back that a fault of the machine stopped, unless that happens each time.

        Raises HandedBackError if the call is in the queue again. Raises MachineFaultError if it has
        had all its attempts, or everything is being stopped.
        """
        call.faults.append(fault)
        if self._killed or len(call.faults) >= MOST_ATTEMPTS:
            raise MachineFaultError("; ".join(dict.fromkeys(call.faults)))
        self._queue.put(call)
        raise HandedBackError

    def run(self) -> None:
        """Serve the queue."""
        _block_interrupts()
        while (call := self._queue.take(self)) is not None:
            try:
                result = self.serve(call)
            except HandedBackError:
                continue
            except BaseException as error:
                if not self._killed:
                    call.future.set_exception(error)
            else:
                if not self._killed:
                    call.future.set_result(result)
            if self._killed:
                call.future.cancel()
        self.end()

    def kill(self) -> None:
        """Cancel what runs instead of finishing it."""
        self._killed = True


def _block_interrupts() -> None:
    """Let Ctrl-C reach the main thread only.

    Processes that this thread starts inherit the mask: the runner decides when workers end.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
