"""A run in a notebook: a bar that is drawn anew, and an interrupt after which it goes on."""

from __future__ import annotations

import math
import os
import signal
import sys
from types import ModuleType

import pytest

from dprepro import run

CONFIG = """
dataset: breast-cancer
metric: auc
epsilons: [1]
delta: 1e-6
splits: 2
seed: 1
domain: observed
methods: [dp-ebm-gdp, logistic]
"""


class _Notebook:
    """Stands in for IPython in a kernel: what a cell shows, and shows anew."""

    kernel = True

    def __init__(self, monkeypatch):
        self.shown, self.stop_after = [], math.inf
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        ipython.get_ipython = lambda: self
        display.HTML, display.display = str, self._display
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def _display(self, text, display_id):
        assert display_id
        self.update(text)
        return self

    def update(self, text):
        self.shown.append(text)
        if f" few: {self.stop_after}/" in text:
            os.kill(os.getpid(), signal.SIGINT)


def test_a_notebook_shows_a_bar_and_goes_on_after_an_interrupt(tmp_path, monkeypatch, capsys):
    config = tmp_path / "few.yaml"
    config.write_text(CONFIG)
    notebook = _Notebook(monkeypatch)
    notebook.stop_after = 1
    with pytest.raises(KeyboardInterrupt):
        run(config, results=tmp_path, jobs=1)
    assert "stopped: the same call goes on with the rest" in notebook.shown[-1]
    notebook.stop_after = math.inf
    summary = run(config, results=tmp_path, jobs=1)
    assert 0 < summary.ran < 4
    assert (
        f"few: {summary.ran}/{summary.ran} tasks, {4 - summary.ran} from before"
        in (notebook.shown[-1])
    )
    assert capsys.readouterr() == ("", "")
