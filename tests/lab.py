"""A small laboratory: a tiny dataset, methods that behave and misbehave, and their configs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprepro.experiment.plan_record import StatedCell, StatedPlan
from dprepro.experiment.record import OF_THE_LINE
from dprepro.methods import registry

METHODS = '''
import os, re, signal, time
import numpy as np
from dprepro.methods.entry import Guarantee, Method
from dprepro.privacy.ledger import Ledger, LedgerEntry


class Noisy:
    """Ranks rows by their first feature plus noise."""

    def __init__(self, epsilon, seed, pause=0.0, **_):
        self.epsilon, self.seed, self.pause = epsilon, seed, pause

    def fit(self, X, y):
        if "PAUSES" in os.environ:
            time.sleep(self.pause)
        self.classes_ = np.unique(y)
        if np.isfinite(self.epsilon):
            scale, budget = 1 / self.epsilon, (self.epsilon, 0.0)
            entry = LedgerEntry("laplace", "scores", 1.0, "L1", scale, 1, budget)
            self.ledger_ = Ledger(self.epsilon, 0.0, "zero-out", [entry])
        self.threshold = float(X["a"].mean())
        return self

    def decision_function(self, X):
        scale = 1.0 / self.epsilon
        noise = np.random.default_rng(self.seed).laplace(size=len(X)) * scale
        return X["a"].to_numpy() - self.threshold + noise

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


class Bad(Noisy):
    def __init__(self, how, **kwargs):
        super().__init__(**kwargs)
        self.how = how

    def fit(self, X, y):
        if self.how == "raises":
            raise RuntimeError("no luck today")
        if self.how == "exits":
            os._exit(3)
        if self.how == "is-killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "sleeps":
            time.sleep(1000)
        if self.how == "holds-the-gil":
            re.match(r"(a+)+$", "a" * 60 + "b")
        if self.how == "unless-fixed" and not os.path.exists(os.environ["FIXED"]):
            raise RuntimeError("not fixed yet")
        return super().fit(X, y)


def noisy(setting, **params):
    return Noisy(epsilon=setting.epsilon, seed=setting.seed, **params)


def bad(how):
    def build(setting, **params):
        return Bad(how, epsilon=setting.epsilon, seed=setting.seed)
    return build


def method(name, build, takes_epsilon=True, tasks=("binary",), **more):
    return Method(
        name=name, title=name, tasks=frozenset(tasks), guarantee=Guarantee.PURE,
        adjacency="zero-out", assumes=(), reference="", build=build,
        takes_epsilon=takes_epsilon, **more,
    )


METHODS = [
    method("noisy", noisy, defaults={"pause": 0.0}),
    method("plain", noisy, takes_epsilon=False),
    method("for-numbers", noisy, tasks=("regression",)),
    method("lacks-module", noisy, requires="surely_not_installed"),
    *(
        method(how, bad(how))
        for how in ("raises", "exits", "is-killed", "sleeps", "holds-the-gil", "unless-fixed")
    ),
]
'''

CARD = """
name: tiny
task: binary
file: tiny.csv
target: y
positive: "yes"
features:
  a: {numeric: [-5, 5]}
  b: {categories: [u, v]}
"""


class Lab:
    """A folder with dataset, card, methods and configs, and ways to run the latter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        (folder / "methods").mkdir()
        (folder / "methods" / "misbehaviour.py").write_text(METHODS)
        (folder / "tiny.yaml").write_text(CARD)
        (folder / "undocumented.yaml").write_text(CARD.partition("features:")[0])
        rng = np.random.default_rng(5)
        a = rng.normal(size=80)
        rows = [
            f"{x:.4f},{'uv'[i % 2]},{'yes' if x + e > 0 else 'no'}"
            for i, (x, e) in enumerate(zip(a, rng.normal(size=80), strict=True))
        ]
        (folder / "tiny.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")

    def config(self, name: str = "lab", **keys: Any) -> Path:
        """Write a config (JSON is YAML) and return its path."""
        settings = {
            "title": "a test",
            "dataset": "./tiny.yaml",
            "metric": "auc",
            "epsilons": [1, 8],
            "splits": 3,
            "seed": 7,
            "methods": ["noisy"],
            **keys,
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(settings, indent=1))
        return path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DPREPRO_METHODS": str(self.folder / "methods"),
            "FIXED": str(self.folder / "fixed"),
            "COLUMNS": "200",
            "PAUSES": "yes",
        }

    def command(self, *arguments: object) -> list[str]:
        return [
            *(sys.executable, "-m", "dprepro", "run"),
            *map(str, arguments),
            *("--results", str(self.results)),
        ]

    def start(self, *arguments: object, **popen: Any) -> subprocess.Popen[str]:
        """Start ``dprepro run`` in a process group of its own."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **popen,
        )

    def run(self, *arguments: object, **popen: Any) -> tuple[int, str]:
        """Run ``dprepro run`` to its end; return exit code and output."""
        process = self.start(*arguments, **popen)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    def lines(self, name: str = "lab") -> list[dict[str, Any]]:
        """Return the journal's lines as dicts."""
        return [json.loads(line) for line in (self.results / f"{name}.jsonl").open()]

    def records(self, name: str = "lab") -> dict[str, dict[str, Any]]:
        """Return the journal's records by key, without what may differ between runs."""
        return {
            line["key"]: {k: v for k, v in line.items() if k not in ("seconds", *OF_THE_LINE)}
            for line in self.lines(name)
            if line["kind"] == "record"
        }


def plan_of(
    keys: Mapping[tuple[str, float], Sequence[str]],
    config: str = "x",
    title: str = "",
    splits: int = 1,
    **more: Any,
) -> StatedPlan:
    """Return the plan line of a config of one's own, given the keys of each cell."""
    cells = tuple(
        StatedCell(label=label, epsilon=epsilon, keys=tuple(found))
        for (label, epsilon), found in keys.items()
    )
    given = {"metric": "auc", "published": None, "builtin": False, "builtin_card": True} | more
    return StatedPlan(config=config, title=title, splits=splits, cells=cells, **given)


def of_format_1(raw: bytes) -> bytes:
    """Return lines of a journal as version 0.1.0 wrote them."""
    old = re.sub(rb',"format":3,"after":"\w{8}","crc32":"\w{8}"', b"", raw)
    return old.replace(b'{"kind":"end"}\n', b"")


def of_format_2(raw: bytes) -> bytes:
    """Return lines of a journal as version 0.2.0 wrote them."""
    heads = [line[:-1] + b',"format":2' for line in of_format_1(raw).splitlines()]
    return b"".join(b'%b,"crc32":"%08x"}\n' % (head, zlib.crc32(head)) for head in heads)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A laboratory of its own, whose methods are registered in this process too."""
    lab = Lab(tmp_path)
    monkeypatch.setenv("DPREPRO_METHODS", lab.environment["DPREPRO_METHODS"])
    monkeypatch.setenv("FIXED", lab.environment["FIXED"])
    registry.all_methods.cache_clear()
    yield lab
    registry.all_methods.cache_clear()
