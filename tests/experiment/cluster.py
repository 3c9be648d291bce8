"""A Dask cluster on 127.0.0.1, of real processes, as a user would start it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from distributed import Client

from dprepro.experiment.cluster import client_of

ROOT = Path(__file__).resolve().parents[2]


class Cluster:
    """A scheduler, and the workers started for it. Use it as a context manager."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        path = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
        self._environment = {**environment, "PYTHONPATH": path}
        self.workers: list[subprocess.Popen[bytes]] = []
        contact = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(contact)
        )
        # No worker can come or go yet: see `client_of`.
        with Client(scheduler_file=str(contact), timeout=60, set_as_default=False) as client:
            self.address: str = client.scheduler.address.removeprefix("tcp://")

    def add_workers(self, number: int = 1, nanny: bool = True, **environment: str) -> None:
        """Start workers of one thread, and wait for them; a nanny replaces a lost one."""
        nanny_option = "--nanny" if nanny else "--no-nanny"
        options = ("--nthreads", "1", "--local-directory", str(self._folder), nanny_option)
        self.workers += [
            self._start("worker", self.address, *options, **environment) for _ in range(number)
        ]
        with self.client() as client:
            client.wait_for_workers(len(self.workers), timeout=60)

    def client(self) -> Client:
        """Return a connection of the test's own."""
        return client_of(self.address, 60)

    def pids(self) -> list[int]:
        """Return the process ids of the workers themselves, not of their nannies."""
        with self.client() as client:
            return list(client.run(os.getpid).values())

    def kill_workers(self) -> None:
        """Kill the workers, and wait until the scheduler has noticed."""
        _kill(self.workers)
        self.workers.clear()
        with self.client() as client:
            while client.nthreads():
                time.sleep(0.1)

    def _start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
            env={**self._environment, **environment},
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        _kill([*self.workers, self.scheduler])


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill processes; with a nanny ends its worker, and with a worker the processes it has."""
    for process in processes:
        process.kill()
    for process in processes:
        process.wait(60)
