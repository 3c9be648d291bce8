"""A progress bar in a notebook: one output of HTML that is drawn anew, without any widget."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.display import Eta, duration
from dprepro.experiment.pending import Pending
from dprepro.experiment.record import Record

_INTERVAL = 0.2
"""Seconds between two drawings: each is a message to the browser."""


def in_notebook() -> bool:
    """Whether the caller is the kernel of a notebook, such as Jupyter's."""
    module = sys.modules.get("IPython")
    shell: Any = module.get_ipython() if module else None
    return getattr(shell, "kernel", None) is not None


class NotebookDisplay:
    """Tasks that have finished and failed, and the time left."""

    def __init__(self, config: ExperimentConfig) -> None:
        self._name = config.name
        self._ran = self._failed = 0
        self._last = -_INTERVAL

    def begin(self, outlook: Pending, jobs: int) -> None:
        """Draw the bar as earlier runs left it."""
        from IPython.display import HTML, display

        self._total, self._done = len(outlook.todo), len(outlook.done)
        self._pace = Eta(outlook.todo, outlook.done, jobs)
        self._html = HTML
        self._shown = display(HTML(self._text("")), display_id=True)

    def advance(self, record: Record) -> None:
        """Move the bar by one task."""
        self._ran += 1
        self._failed += record.status == "failed"
        self._pace.advance(record)
        now = time.monotonic()
        if now - self._last >= _INTERVAL:
            self._last, left = now, self._pace.seconds_left
            self._draw("" if left is None else f", about {duration(left)} left")

    def end(self) -> None:
        """Leave the bar as the run ended, or was interrupted."""
        is_whole = self._ran == self._total
        self._draw("" if is_whole else ", stopped: the same call goes on with the rest")

    def _draw(self, more: str) -> None:
        self._shown.update(self._html(self._text(more)))

    def _text(self, more: str) -> str:
        before = f", {self._done} from before" if self._done else ""
        failed = f", {self._failed} failed" if self._failed else ""
        said = f"{self._name}: {self._ran}/{self._total} tasks{before}{failed}{more}"
        value = self._ran if self._total else 1
        bar = f'<progress value="{value}" max="{self._total or 1}"></progress>'
        return f"<div>{bar} {escape(said)}</div>"
