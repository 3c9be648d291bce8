"""No error, record or journal quotes a value of a user's table, or says how many rows it has.

Tables are spoilt in every way that we could think of, with values that cannot be there by chance.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.cli import main
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature, TaskKind
from dprepro.data.encode import ENCODINGS
from dprepro.experiment import worker
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.experiment.record import Task
from dprepro.experiment.worker import DataRef, Encoded, run_task
from dprepro.methods import registry
from dprepro.methods.entry import Method, Setting
from tests.in_process import in_process
from tests.lab import CARD
from tests.methods.quick import quick

__all__ = ["in_process"]

TEXT = "SENTINEL-7f3a"
NUMBER = 987654.321
ROWS = 1237
# As people and machines write them: 987,654.321 and 9.87654e5; 1,237 rows, of which a fifth, 248,
# is held out and 989 train.
SECRETS = re.compile(r"SENTINEL|987,?65|9\.8765|\b1,?23[67]\b|\b98[89]\b|\b24[78]\b")
# Lines of code and a speed are no rows.
PLACE = re.compile(r"\w+\.pyx?:\d+|[\d.]+ tasks/s")
# Of rows or of their file; the cards here expect one that nothing has.
DIGEST = re.compile(r"[0-9a-f]{12,}")
NO_DIGEST = "0" * 64
DIGESTS = {"data_fingerprint": ""}

OBSERVED = CARD.partition("features:")[0]
CONFIG = """
dataset: tiny.yaml
metric: auc
splits: 1
seed: 1
epsilons: [1]
delta: 1e-6
methods: [dp-ebm-gdp, dpboost-sound, dp-logistic-fair, logistic]
"""


def lines() -> list[str]:
    """Return a good table: a header and its rows."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=ROWS)
    labels = np.where(a + rng.normal(size=ROWS) > 0, "yes", "no")
    return [
        "a,b,y",
        *(
            f"{x:.3f},{'uv'[i % 2]},{label}"
            for i, (x, label) in enumerate(zip(a, labels, strict=True))
        ),
    ]


def one(row: str) -> Callable[[list[str]], list[str]]:
    """Return a way to spoil a table: one row in the middle becomes another."""
    return lambda good: [*good[:700], row, *good[701:]]


def every(change: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
    """Return a way to spoil a table: each row is changed."""
    return lambda good: [good[0], *map(change, good[1:])]


SPOILT: dict[str, Callable[[list[str]], list[str]]] = {
    "an unknown label": one(f"0.5,u,{TEXT}"),
    "a label that is a number": one(f"0.5,u,{NUMBER}"),
    "labels in every row": every(lambda row: row.rpartition(",")[0] + f",{TEXT}"),
    "an unknown category": one(f"0.5,{TEXT},yes"),
    "text for a number": one(f"{TEXT},u,yes"),
    "a date for a number": one(f"1987-06-54 {TEXT},u,yes"),
    "a complex number": one(f"{NUMBER}+1j,u,yes"),
    "a number out of bounds": one(f"{NUMBER},u,yes"),
    "a constant out of bounds": every(lambda row: f"{NUMBER}," + row.partition(",")[2]),
    "an infinite number": one("inf,u,yes"),
    "a number beyond all floats": one(f"{NUMBER}e999,u,yes"),
    "a missing number": one(",u,yes"),
    "a missing category": one("0.5,,yes"),
    "a missing label": one(f"{NUMBER},u,"),
    "one label only": every(lambda row: row.rpartition(",")[0] + ",yes"),
    "a field too many": one(f"0.5,u,yes,{TEXT}"),
    "a field too few": one(f"{TEXT},u"),
    "an open quote": one(f'0.5,u,"{TEXT}'),
    "a second row for a header": lambda good: [f"{NUMBER},{TEXT},yes", *good[1:]],
    "a header that repeats a value": lambda good: [f"{TEXT},{TEXT},y", *good[1:]],
    "another separator": lambda good: [
        row.replace(",", ";") for row in [f"{NUMBER},{TEXT},yes", *good[1:]]
    ],
    "an encoding that is none": one(f"0.5,\udcff{TEXT},yes"),
    "a category of its own in every row": lambda good: [
        good[0], *(f"0.5,{TEXT}{i},yes" for i in range(ROWS))
    ],
    "a label of its own in every row": lambda good: [
        good[0], *(f"0.5,u,{TEXT}{i}" for i in range(ROWS))
    ],
    "rows that are twice there": lambda good: [*good[:-1], good[1]],
    "no rows": lambda good: good[:1],
    "a single row": lambda good: [good[0], f"{NUMBER},u,yes"],
    "nothing": lambda good: [],
}  # fmt: skip
CARDS = {
    "public": CARD,
    "observed": OBSERVED,
    "expecting": CARD + "private: true\nexpect: {rows: 100, positives: 5, positive_share: [0.01, "
    f"0.02], values_sha256: '{NO_DIGEST}'}}\n",
    "checksum": CARD.replace(
        "file: tiny.csv", f"private: true\nsources: [{{file: tiny.csv, sha256: '{NO_DIGEST}'}}]"
    ),
    "regression": OBSERVED.replace("binary", "regression").replace('positive: "yes"\n', ""),
    "classes": CARD.replace("binary", "multiclass").replace(
        'positive: "yes"', 'labels: ["yes", "no", "other"]'
    ),
    "observed classes": OBSERVED.replace("binary", "multiclass").replace('positive: "yes"\n', ""),
}


@dataclass(frozen=True)
class Said:
    """What a command printed, and what it left in the journals."""

    code: int
    text: str
    journals: str


@dataclass(frozen=True)
class Table:
    """A folder with a table, its card and a config."""

    folder: Path

    def say(self, *arguments: str, capfd: pytest.CaptureFixture[str]) -> Said:
        """Run a command as the command line does, errors printed."""
        given = [str(self.folder / a) if a.endswith(".yaml") else a for a in arguments]
        before, sys.argv = sys.argv, ["dprepro", *given]
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.argv = before
        printed = capfd.readouterr()
        journals = "".join(
            path.read_text(encoding="utf-8") for path in self.folder.glob("results/*.jsonl")
        )
        return Said(code, printed.out + printed.err, journals)


def write(folder: Path, card: str, spoil: Callable[[list[str]], list[str]]) -> Table:
    (folder / "tiny.yaml").write_text(CARDS[card])
    text = "".join(line + "\n" for line in spoil(lines()))
    (folder / "tiny.csv").write_text(text, errors="surrogateescape")
    metric = "rmse" if card == "regression" else "accuracy"
    domain = "domain: observed\n" if "features" not in CARDS[card] else "domain: public\n"
    (folder / "mine.yaml").write_text(CONFIG.replace("auc", metric) + domain)
    return Table(folder)


def assert_withheld(text: str, folder: Path | None = None) -> None:
    """Assert that a text holds none of the planted values; folders are no values.

    Nor does it hold, of the table in the folder, a digest or the number of bytes.
    """
    if folder is not None:
        text = text.replace(str(folder), "").replace(NO_DIGEST, "")
        size = (folder / "tiny.csv").stat().st_size
        sizes = rf"\b({size}|{size:,})\b" if size > 1000 else "(?!)"
        assert not DIGEST.search(text), text
        assert not re.search(sizes, text), text
    assert not SECRETS.search(text), text


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("fault", SPOILT)
def test_loading_says_nothing_of_the_rows(
    tmp_path: Path, card: str, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path, card, SPOILT[fault])
    said = table.say("data", "verify", "tiny.yaml", capfd=capfd)
    if said.code:  # else it counts the rows of a good table, as its owner asked
        assert_withheld(said.text, tmp_path)
        for command, code in (("describe", 2), ("fetch", 1)):
            again = table.say("data", command, "tiny.yaml", capfd=capfd)
            assert again.code == code
            assert_withheld(again.text, tmp_path)


@pytest.mark.parametrize("card", ["public", "observed"])
@pytest.mark.parametrize("fault", SPOILT)
def test_a_run_says_nothing_of_the_rows(
    tmp_path: Path, card: str, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path, card, SPOILT[fault])
    said = table.say(
        "fit", "mine.yaml", "--method", "dp-ebm-gdp", "--output", str(tmp_path / "m.json"),
        capfd=capfd,
    )  # fmt: skip
    assert said.code in (0, 2)
    assert_withheld(said.text, tmp_path)
    ahead = table.say("run", "mine.yaml", "--dry-run", "--results", str(tmp_path), capfd=capfd)
    assert ahead.code in (0, 2)
    assert_withheld(PLACE.sub("", ahead.text), tmp_path)
    if table.say("data", "verify", "tiny.yaml", capfd=capfd).code == 0:
        config = load_config(tmp_path / "mine.yaml")
        for planned in plan(config):
            record = run_task(planned.task, DataRef(config.card))
            assert_withheld(PLACE.sub("", record.message), tmp_path)


@pytest.mark.parametrize(
    ("fault", "code"), [("a missing number", 2), ("one label only", 1), ("text for a number", 2)]
)
def test_journals_say_nothing_of_the_rows(
    tmp_path: Path,
    fault: str,
    code: int,
    capfd: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if fault != "one label only":  # one of them in a worker process
        request.getfixturevalue("in_process")
    table = write(tmp_path, "public", SPOILT[fault])
    said = table.say(
        "run", "mine.yaml", "--results", str(tmp_path / "results"), "--jobs", "1", capfd=capfd
    )
    entries = [json.loads(line) for line in said.journals.splitlines()]
    failed = [entry for entry in entries if entry.get("status") == "failed"]
    assert (said.code, bool(failed)) == (code, code == 1)
    assert TEXT not in said.journals
    for entry in failed:
        # Seconds and digests are digits by chance.
        told = {**entry, "seconds": None, "key": None, "task": {**entry["task"], **DIGESTS}}
        assert_withheld(PLACE.sub("", json.dumps(told)), tmp_path)
    assert_withheld(PLACE.sub("", said.text), tmp_path)


def data(task: TaskKind) -> tuple[pd.DataFrame, np.ndarray, Domain]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(ROWS), "c": rng.choice(["a", "b"], ROWS)})
    features = (NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b")))
    signal = X["x"].to_numpy() + (X["c"] == "b")
    if task == "regression":
        return X, signal, Domain(features, (0.0, 2.0))
    return X, (signal > 1).astype(np.int64), Domain(features, ("no", "yes"))


def column(X: Any, value: Any, rows: slice | int) -> Any:
    """Return encoded rows with a value in the first column of some rows."""
    if isinstance(X, pd.DataFrame):
        X = X.astype(object) if isinstance(value, (str, complex)) else X.copy()
        first = X.iloc[:, 0].astype(object if isinstance(value, (str, complex)) else float)
        first.iloc[rows] = value
        others = {k: X.iloc[:, k] for k in range(1, X.shape[1])}
        spoilt = pd.DataFrame({0: first, **others})
        spoilt.columns = X.columns
        return spoilt
    X = X.astype(object if isinstance(value, str) else np.result_type(X, type(value)))
    X[rows, 0] = value
    return X


def target(y: np.ndarray, value: Any, rows: slice | int) -> np.ndarray:
    y = y.astype(object) if isinstance(value, str) else y.astype(np.result_type(y, type(value)))
    y[rows] = value
    return y


EVERY = slice(None)
POISON: dict[str, Callable[[Encoded], Encoded]] = {
    "text in X": lambda e: replace(e, X_train=column(e.X_train, TEXT, 700)),
    "text all over X": lambda e: replace(e, X_train=column(e.X_train, TEXT, EVERY)),
    "a complex X": lambda e: replace(e, X_train=column(e.X_train, NUMBER * 1j, 700)),
    "an infinite X": lambda e: replace(e, X_train=column(e.X_train, math.inf, 700)),
    "a missing X": lambda e: replace(e, X_train=column(e.X_train, math.nan, 700)),
    "X out of bounds": lambda e: replace(e, X_train=column(e.X_train, NUMBER, 700)),
    "an X of one dimension": lambda e: replace(e, X_train=np.full(ROWS, NUMBER)),
    "a text y": lambda e: replace(e, y_train=target(e.y_train, TEXT, 700)),
    "text all over y": lambda e: replace(e, y_train=target(e.y_train, TEXT, EVERY)),
    "another y": lambda e: replace(e, y_train=target(e.y_train, NUMBER, 700)),
    "a constant y": lambda e: replace(e, y_train=target(e.y_train, NUMBER, EVERY)),
    "a complex y": lambda e: replace(e, y_train=target(e.y_train, NUMBER * 1j, 700)),
    "an infinite y": lambda e: replace(e, y_train=target(e.y_train, math.inf, 700)),
    "a missing y": lambda e: replace(e, y_train=target(e.y_train, math.nan, 700)),
    "a y of two dimensions": lambda e: replace(e, y_train=np.full((ROWS, 2), NUMBER)),
    "a y that is too short": lambda e: replace(e, y_train=e.y_train[:-1]),
    "no y": lambda e: replace(e, y_train=None),
    "a test y that is text": lambda e: replace(e, y_test=target(e.y_test, TEXT, EVERY)),
}
METHODS = [
    (m, t) for m in registry.all_methods().values() for t in sorted(m.tasks - {"multiclass"})
]


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Task, Any]]:
    """Return a function that makes every task find poisoned rows, and the task."""

    def prepare(method: Method, kind: TaskKind, fault: str) -> tuple[Task, Encoded]:
        X, y, domain = data(kind)
        encoded = ENCODINGS[method.encoding](domain).transform(X)
        good = Encoded(encoded, y, encoded[:50], y[:50], domain, 2 if kind == "binary" else 0)
        rows = POISON[fault](good)
        monkeypatch.setattr(worker, "rows_of", lambda *_: rows)
        monkeypatch.setattr(worker, "_dataset", lambda _: type("D", (), {"task": kind}))
        epsilon, delta = (1.0, 1e-6) if method.takes_epsilon else (math.inf, 0.0)
        task = Task(
            "tiny", method.name, method.name, quick(method), epsilon, delta, 0, 1,
            "public", 0.2, 1, "f",
        )  # fmt: skip
        return task, rows

    return prepare


@pytest.mark.parametrize(("method", "kind"), METHODS, ids=lambda v: getattr(v, "name", v))
def test_no_record_of_any_method_quotes_a_value(
    poisoned: Callable[..., tuple[Task, Any]], method: Method, kind: TaskKind
) -> None:
    if method.requires:
        pytest.importorskip(method.requires)
    failed = 0
    for fault in POISON:
        task, _ = poisoned(method, kind, fault)
        record = run_task(task, DataRef("tiny")).to_json()
        failed += record["status"] == "failed"
        told = json.dumps({**record, "seconds": None, "metrics": None})
        told = PLACE.sub("", told)
        assert not SECRETS.search(told), (fault, told)
    assert failed > len(POISON) // 2


OURS = [(m, t) for m, t in METHODS if m.takes_epsilon]


@pytest.mark.parametrize(("method", "kind"), OURS, ids=lambda v: getattr(v, "name", v))
def test_no_private_estimator_quotes_a_value_itself(
    poisoned: Callable[..., tuple[Task, Any]], method: Method, kind: TaskKind
) -> None:
    for fault in POISON:
        task, rows = poisoned(method, kind, fault)
        setting = Setting(kind, task.epsilon, task.delta, rows.domain, 0)
        model = method.build(setting, **task.params)
        said = ""
        try:
            model.fit(rows.X_train, rows.y_train)
        except Exception as error:
            said = str(error)
        assert not SECRETS.search(said), (fault, said)


def test_the_search_finds_what_is_planted() -> None:
    for text in (
        TEXT,
        str(NUMBER),
        f"{NUMBER:g}",
        f"{NUMBER:,}",
        f"{ROWS}",
        f"{ROWS:,} rows",
        "989",
    ):
        assert SECRETS.search(text), text
