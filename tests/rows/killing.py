"""Fits of a table in processes of their own, which are killed where a test says.

A process imports nothing: it is forked by one that has imported all.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import shutil
import signal
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dprepro.methods.dp_ebm.rounds
import dprepro.methods.dp_ebm_plus.curator
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.privacy.curator_base import listening
from dprepro.rows import answer_log, ingest, partition, store, table
from dprepro.rows.folder import ANSWERS, Folder
from tests.released import published

ROWS, CHUNK = 1000, 300
FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("z", -5, 5),
    CategoricalFeature("c", ("a", "b", "d")),
)
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "labels": (DPEBMClassifier, {"n_epochs": 3}),
    "adaptive": (DPEBMClassifier, {"n_epochs": 3, "sensitivity": "sound", "max_leaves": 4}),
    "regression": (DPEBMRegressor, {"n_epochs": 3}),
    "plus labels": (DPEBMPlusClassifier, {"n_epochs": 12}),  # a query each
    "plus classes": (DPEBMPlusClassifier, {"n_epochs": 12}),
    "plus regression": (DPEBMPlusRegressor, {"n_epochs": 12}),
}
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.rows.warmed"])

ROOT = Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    """Return the environment of a process that imports `tests`, wherever it runs.

    A runner of tasks, which other tests start, keeps the working directory out of the path.
    """
    return os.environ | {"PYTHONPATH": str(ROOT)}


@dataclass(frozen=True)
class Fit:
    """A fit to make, and where it is to be killed: at the n-th event of a kind."""

    model: str
    folder: Path = Path()
    table: Path = Path()
    seed: int | None = 0
    kill_at: tuple[str, int] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    n_jobs: int = 1
    boot: str | None = None
    target: str = ""
    encrypted: bool = False


def rows(n: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    z = rng.normal(0, 2, n)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
            "z": z.clip(-5, 5),
            "c": rng.choice(["a", "b", "d"], n),
        }
    )
    target = z + 3 * (frame["c"] == "a") + rng.normal(size=n)
    kinds = np.where(target > 1, np.where(target > 3, "high", "mid"), "low")
    return frame.assign(
        labels=np.where(target > 1, "yes", "no"), kinds=kinds, numbers=target, other=-target
    )


def fit_in_memory(fit: Fit, frame: pd.DataFrame) -> dict[str, Any]:
    """Return what a fit to rows in memory publishes."""
    names = [feature.name for feature in FEATURES]
    return published(model_of(fit).fit(frame[names], frame[target_of(fit)]))


def run(fit: Fit) -> dict[str, Any] | None:
    """Make a fit in another process; return what came of it, or None where it was killed."""
    result = fit.folder.with_name("result.pickle")
    result.unlink(missing_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        forkserver.ensure_running()
    process = _FORKS.Process(target=_main, args=(fit, result))
    process.start()
    process.join()
    if process.exitcode == -signal.SIGKILL:
        return None
    assert process.exitcode == 0
    outcome: dict[str, Any] = pickle.loads(result.read_bytes())
    return outcome


def answers_in(path: Path) -> list[Any]:
    """Return the whole lines of answers on disk."""
    if not path.is_file():
        return []
    lines = path.read_bytes().splitlines(keepends=True)
    return [json.loads(line[9:]) for line in lines if line.endswith(b"\n")]


def events(fit: Fit, kind: str) -> list[Any]:
    """Return what every process did of a kind: (number of the process, what)."""
    path = _log(fit)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    pids: dict[int, int] = {}
    found = []
    for line in lines:
        pid, name, what = json.loads(line)
        number = pids.setdefault(pid, len(pids))
        if name == kind:
            found.append((number, what))
    return found


def _log(fit: Fit) -> Path:
    return fit.folder.with_name("log.jsonl")


def target_of(fit: Fit) -> str:
    """Return the name of the column of targets."""
    known = {"regression": "numbers", "classes": "kinds"}
    return fit.target or known.get(fit.model.split()[-1], "labels")


def model_of(fit: Fit) -> Any:
    kind, params = MODELS[fit.model]
    known: dict[str, Any] = {"regression": (-10.0, 10.0), "classes": ("high", "low", "mid")}
    target = known.get(fit.model.split()[-1], ("no", "yes"))
    return kind(
        domain=Domain(FEATURES, target), random_state=fit.seed, n_jobs=fit.n_jobs,
        **{**params, **fit.params},
    )  # fmt: skip


class _Heard:
    def __init__(self) -> None:
        self.releases: list[Any] = []

    def asked(self, query: Any, release: Any) -> None:
        self.releases.append((type(query).__name__, np.asarray(release.value)))

    def told(self, instruction: Any) -> None:
        """Nothing is released."""


def _main(fit: Fit, result: Path) -> None:
    _inject(fit)
    heard, outcome = _Heard(), {}
    try:
        with listening(heard):
            source = table.Table.open(fit.table, store=fit.folder, encrypted=fit.encrypted)
            outcome["model"] = published(model_of(fit).fit(source, target_of(fit)))
    except Exception as error:
        outcome["error"] = error
    outcome["releases"] = heard.releases
    result.write_bytes(pickle.dumps(outcome))


def _inject(fit: Fit) -> None:
    """Count events, write some of them down, and die at one of them."""
    counts: Counter[str] = Counter()

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def is_time(event: str) -> bool:
        counts[event] += 1
        return (event, counts[event]) == fit.kill_at

    def happens(event: str) -> None:
        if is_time(event):
            die()

    def note(event: str, what: Any) -> None:
        with _log(fit).open("a") as file:
            file.write(json.dumps([os.getpid(), event, what]) + "\n")

    def around(owner: Any, name: str, event: str) -> None:
        original = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            happens(f"before {event}")
            found = original(*args, **kwargs)
            happens(f"after {event}")
            return found

        setattr(owner, name, wrapped)

    def kernel(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapped(scores: np.ndarray, *args: Any) -> Any:
            torn, before = is_time("torn pass"), scores.copy()
            found = original(scores, *args)
            if torn:
                scores[len(scores) // 2 :] = before[len(scores) // 2 :]
                die()
            happens("after pass")
            return found

        setattr(owner, name, wrapped)

    table.CHUNK_ROWS = CHUNK
    if fit.boot is not None:
        boot = fit.boot
        store._boot = lambda: boot
    around(ingest, "_add", "chunk")
    around(Folder, "reserve", "reserve")
    around(Folder, "write_manifest", "manifest")
    around(store.Store, "write", "merge of a chunk")
    around(store.Store, "finish", "merge")
    around(Folder, "sync", "rename")
    around(answer_log.KeptAnswers, "_write", "answer")
    for name in ("fused_pass",):
        kernel(dprepro.methods.dp_ebm.rounds, name)
    for name in ("coded_sums", "class_sums"):
        kernel(dprepro.methods.dp_ebm_plus.curator, name)

    reading = ingest._add

    def noted_reading(*args: Any) -> None:
        note("read", 1)
        reading(*args)

    ingest._add = noted_reading

    for kind in (
        dprepro.methods.dp_ebm.rounds.EBMPartition,
        dprepro.methods.dp_ebm_plus.curator.ExactAnswers,
    ):

        def noted_answer(self: Any, question: Any, original: Any = kind.answer) -> Any:
            note("question", [answer_log.digest(question), len(self._moves), self._columns._chunk])
            return original(self, question)

        def noted_move(self: Any, instruction: Any, original: Any = kind._move) -> Any:
            note("move", [type(instruction).__name__, self._columns._chunk])
            return original(self, instruction)

        kind.answer, kind._move = noted_answer, noted_move
    assert partition.MOVING == -1

    write = answer_log.KeptAnswers._write

    def torn_write(self: Any, line: Any) -> None:
        if is_time("torn answer"):
            text = answer_log.line_of(line)
            self._file.write(text[: len(text) // 2])
            self._file.flush()
            die()
        write(self, line)

    answer_log.KeptAnswers._write = torn_write

    synced = answer_log.synced

    def watched_sync(file: Any) -> None:
        happens("answer in no disk")
        synced(file)
        happens("answer without a mark")

    answer_log.synced = watched_sync

    delete = Folder.delete

    def watched_delete(self: Any) -> None:
        if (self.path / ANSWERS).is_file():
            shutil.copy(self.path / ANSWERS, self.path.with_name("answers.jsonl"))
        unlink = Path.unlink

        def watched_unlink(path: Path, *args: Any, **kwargs: Any) -> None:
            happens("file deleted")
            unlink(path, *args, **kwargs)

        Path.unlink = watched_unlink
        delete(self)
        Path.unlink = unlink

    Folder.delete = watched_delete
