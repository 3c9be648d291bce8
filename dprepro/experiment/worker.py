"""What a worker process does: run one task and return its record."""

from __future__ import annotations

import json
import os
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dprepro.data.card import load_card
from dprepro.data.dataset import Dataset, load
from dprepro.data.domain import Domain, TaskKind
from dprepro.data.encode import ENCODINGS
from dprepro.estimators.contract import Estimator, figures_of, ledger_of, ledger_summary_of
from dprepro.experiment.config import ExperimentConfig, load_config
from dprepro.experiment.executors import MachineFaultError
from dprepro.experiment.machine_errors import machine_fault
from dprepro.experiment.method_names import names_in_config
from dprepro.experiment.metrics import Scores, score
from dprepro.experiment.plan import note_disclosures, setting_of, task_seed
from dprepro.experiment.record import Record, Task
from dprepro.experiment.splits import SplitKey, all_rows_of, key_of_all_rows, train_test_rows
from dprepro.methods import own, registry
from dprepro.privacy.budget import ROW
from dprepro.rows.card_table import CardTable
from dprepro.rows.units import UnitBound
from dprepro.runtime.errors import DEBUG_VARIABLE, DpreproError, is_our_own, publishable
from dprepro.runtime.kernels import compile_once, prepare

MESSAGE_LENGTH = 600
TRACEBACK_FRAMES = 3
Value = TypeVar("Value")


@dataclass(frozen=True)
class DataRef:
    """Where a worker finds the dataset: what to give to `dprepro.data.dataset.load`. Made by `of`.

    `with_test` asks for the donors' own test rows. `fingerprint` tells states of the data apart
    within one process. `seal`, unless empty, is the card's `Card.seal` where the run was planned,
    under the random key `nonce`: of one run, and kept in memory only.
    """

    card: str
    data_dir: Path | None = None
    fingerprint: str = ""
    with_test: bool = False
    nonce: str = ""
    seal: str = ""

    @classmethod
    def of(
        cls,
        config: ExperimentConfig,
        data_dir: Path | None = None,
        *,
        nonce: str = "",
        fingerprint: str = "",
    ) -> DataRef:
        """Return where a config's dataset is, in absolute paths: a worker's folder may be another.

        `nonce`, in hex, is drawn for one run or one process, so that the seal checks no guess about
        private rows for anybody else. Without it no file is read, and there is no seal.
        """
        path, with_test = Path(config.card), config.evaluation == "test-set"
        return cls(
            card=str(path.resolve()) if path.is_file() else config.card,
            data_dir=data_dir.expanduser().resolve() if data_dir else None,
            fingerprint=fingerprint,
            with_test=with_test,
            nonce=nonce,
            seal=load_card(config.card).seal(nonce, data_dir, with_test) if nonce else "",
        )


@dataclass(frozen=True, repr=False)
class Encoded:
    """One split in one representation, with the domain that the representation was made from."""

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    domain: Domain
    n_classes: int


def warm_up(data: DataRef, methods: Collection[str] = ()) -> None:
    """Load dataset, methods and kernels, and pin libraries to one thread, ahead of the tasks.

    Raises DpreproError if this machine lacks the dataset or one of `methods`, or has another
    dataset of the name.
    """
    from threadpoolctl import threadpool_limits

    dataset = _dataset(data)
    card = load_card(data.card)
    if data.seal not in ("", card.seal(data.nonce, data.data_dir, data.with_test)):
        raise DpreproError(
            f"the data of {dataset.name} ({dataset.source}) are not those that the run was "
            "planned with; put the same files, and the same card, in both places"
        )
    if _need_kernels(methods, dataset.task):
        prepare()
    # The environment already says so; this holds for libraries that read it differently.
    threadpool_limits(limits=1)


def get_ready(config: str, methods: Sequence[str] = ()) -> None:
    """Import what the tasks of a config need, and compile and load their kernels, without its data.

    `methods`: only these; see `dprepro.experiment.plan.narrow`. Raises DpreproError.
    """
    experiment = load_config(config)
    entries = [entry for method in experiment.methods for entry in method.expanded]
    asked = set(names_in_config(methods, (n for e in entries for n in (e.label, e.method))))
    names = {e.method for e in entries if not asked or {e.method, e.label} & asked}
    if _need_kernels(sorted(names), load_card(experiment.card).task):
        compile_once()
        prepare()


def compile_kernels(methods: Iterable[str], task: TaskKind) -> None:
    """Compile the kernels where this machine has not, if one of `methods` is made of them.

    Raises DpreproError if there is no such method, or the kernels cannot be compiled.
    """
    if _need_kernels(methods, task):
        compile_once()


def _need_kernels(methods: Iterable[str], task: TaskKind) -> bool:
    found = [registry.get(name) for name in methods]  # each has to be there
    return any(method.needs_kernels(task) for method in found)


def run_task(task: Task, data: DataRef, metrics: tuple[str, ...] = ()) -> Record:
    """Fit and score one method on one split.

    `metrics` are those that the config asks for, by the names of records.

    Whatever the method raises ends up in the record (status ``failed``), as far as it may be
    published; only an interrupt or the death of the process escapes, and `MachineFaultError` if
    the machine refused memory, room on the disk, or the like.
    """
    try:
        with warnings.catch_warnings():
            # Thousands of fits would repeat the same few lines; the ledger keeps what matters.
            warnings.simplefilter("ignore")
            record = _run(task, data, metrics)
        json.dumps(record.to_json(), allow_nan=False)
    except (Exception, SystemExit) as error:
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exception(error)
        if fault := machine_fault(error):
            raise MachineFaultError(fault) from None
        return Record(task, "failed", message=_describe(error))
    return record


def _run(task: Task, data: DataRef, metrics: tuple[str, ...]) -> Record:
    _, encode_seconds = _timed(lambda: rows_of(task, data))
    estimator, fit_seconds = _timed(lambda: fit_task(task, data))
    scores, predict_seconds = _timed(lambda: _scores(estimator, task, data, metrics))
    return Record(
        task,
        "ok",
        metrics=scores.values | figures_of(estimator),
        seconds={"encode": encode_seconds, "fit": fit_seconds, "predict": predict_seconds},
        ledger=ledger_summary_of(estimator),
        absent=scores.absent,
    )


def fit_task(task: Task, data: DataRef) -> Estimator:
    """Return the task's estimator, fitted on its training rows. Raises what the method raises."""
    rows = rows_of(task, data)
    seed = task_seed(task)
    estimator = _fit(task, _dataset(data).task, rows.X_train, rows.y_train, rows.domain, seed)
    note_disclosures(ledger_of(estimator), task)
    return estimator


def fit_all_rows(task: Task, data: DataRef, dataset: Dataset | None = None) -> Estimator:
    """Return the task's estimator, fitted on all rows but the donors' own test rows.

    Its noise is that of no split. `dataset` is that of `data` where it has been read already.
    Raises what the method raises.
    """
    dataset = _dataset(data) if dataset is None else dataset
    given, y = all_rows_of(dataset, SplitKey.of(task))
    domain = _domain(dataset, task.dataset, task.domain, given, y)
    X = ENCODINGS[registry.get(task.method).encoding](domain).transform(given)
    seed = task_seed(task, all_rows=True)
    estimator = _fit(task, dataset.task, X, y, domain, seed)
    note_disclosures(ledger_of(estimator), task, all_rows=True)
    return estimator


@dataclass(frozen=True)
class TableRef:
    """A table of the user's own.

    Attributes
    ----------
    path
        Of a file, or of a folder of parquet files.
    store, encrypted
        See `dprepro.rows.table.Table.open`.
    """

    path: Path
    store: Path | None = None
    encrypted: bool = False


def open_table(task: Task, data: DataRef, given: TableRef) -> CardTable:
    """Return a table that is read in chunks, as the task's estimator is fitted to it.

    The card of the dataset says what is in the table; see `CardTable`. The dataset itself is not
    read. Of each unit of the task as many rows train as it allows.

    Raises DpreproError if the method takes no such tables, the domain is not public, or the table
    cannot be read.
    """
    if not registry.get(task.method).takes_tables:
        names = [name for name, method in registry.all_methods().items() if method.takes_tables]
        raise DpreproError(
            f"{task.method} takes rows in memory only, and no table that is read in chunks. These "
            f"methods take one: {', '.join(names)}"
        )
    if task.domain != "public":
        raise DpreproError(
            "a table that is read in chunks needs a public domain, as nothing is read from its "
            f"rows beforehand: say `domain: public` in the config, given `domain: {task.domain}`"
        )
    card = load_card(data.card)
    bound = None
    if task.unit != ROW:
        bound = UnitBound(task.rows_per_unit, key_of_all_rows(SplitKey.of(task)))
    return CardTable(given.path, card, store=given.store, encrypted=given.encrypted, bound=bound)


def fit_table(task: Task, data: DataRef, given: TableRef) -> Estimator:
    """Return the task's estimator, fitted to all rows of a table that is read in chunks.

    Raises what `open_table` and the method raise.
    """
    table, card = open_table(task, data, given), load_card(data.card)
    estimator = _fit(
        task, card.task, table, card.target, table.domain, task_seed(task, all_rows=True)
    )
    note_disclosures(ledger_of(estimator), task, all_rows=True)
    return estimator


def _fit(task: Task, kind: TaskKind, X: Any, y: Any, domain: Domain, seed: int | None) -> Estimator:
    method = registry.get(task.method)
    setting = setting_of(task, method, kind, domain, seed)
    return own.fit_method(method, setting, task.params, X, y)


def score_on_test_rows(
    estimator: Estimator, task: Task, data: DataRef, encoding: str | None = None
) -> dict[str, float]:
    """Return the metrics (see `score`) of a fitted estimator on the task's test rows.

    `encoding` is that of the task's method unless given.
    """
    return _scores(estimator, task, data, encoding=encoding).values


def _scores(
    estimator: Estimator,
    task: Task,
    data: DataRef,
    metrics: tuple[str, ...] = (),
    encoding: str | None = None,
) -> Scores:
    rows = rows_of(task, data, encoding)
    kind = _dataset(data).task
    return score(estimator, rows.X_test, rows.y_test, kind, rows.n_classes, metrics)


def rows_of(task: Task, data: DataRef, encoding: str | None = None) -> Encoded:
    """Return the task's split in a representation, that of its method unless given."""
    return _encoded(SplitKey.of(task), data, encoding or registry.get(task.method).encoding)


# Tasks of one split follow each other, sorted by encoding (see plan), so one entry each is enough.
@lru_cache(maxsize=1)
def _dataset(data: DataRef) -> Dataset:
    return load(data.card, data.data_dir, with_test=data.with_test)


@dataclass(frozen=True, repr=False)
class _Split:
    """One split as the dataset has it, with what is taken as known of it."""

    X_train: pd.DataFrame
    y_train: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    domain: Domain


@lru_cache(maxsize=1)
def _split(data: DataRef, key: SplitKey) -> _Split:
    return _split_of(_dataset(data), key)


def _split_of(dataset: Dataset, key: SplitKey) -> _Split:
    X_train, y_train, X_test, y_test = train_test_rows(dataset, key)
    if dataset.task != "regression" and len(np.unique(y_train)) < 2:
        raise ValueError(f"the training rows of split {key.split} hold one class only")
    domain = _domain(dataset, key.dataset, key.domain, X_train, y_train)
    return _Split(X_train, y_train, X_test, y_test, domain)


def _domain(dataset: Dataset, name: str, kind: str, X: pd.DataFrame, y: np.ndarray) -> Domain:
    """Return the card's domain, or that of the training rows X and y where `kind` says so."""
    if kind == "observed":
        return Domain.observe(X, y, dataset.task)
    if dataset.domain is None:
        raise ValueError(f"the card of {name} gives no public domain")
    return dataset.domain


@lru_cache(maxsize=1)
def _encoded(key: SplitKey, data: DataRef, encoding: str) -> Encoded:
    return _encode(_dataset(data), _split(data, key), encoding)


def _encode(dataset: Dataset, split: _Split, encoding: str) -> Encoded:
    encoder = ENCODINGS[encoding](split.domain)
    return Encoded(
        X_train=encoder.transform(split.X_train),
        y_train=split.y_train,
        X_test=encoder.transform(split.X_test),
        y_test=split.y_test,
        domain=split.domain,
        n_classes=0 if dataset.task == "regression" else _n_classes(dataset),
    )


def try_encodings(dataset: Dataset, tasks: Iterable[Task]) -> None:
    """Split and encode the rows as tasks do, one for each kind of split and encoding; fit nothing.

    Raises DpreproError if a task would fail at that; the message says which, and why.
    """
    first: dict[tuple[str, SplitKey], Task] = {}
    for task in tasks:
        kind = replace(SplitKey.of(task), split=0)
        first.setdefault((registry.get(task.method).encoding, kind), task)
    for (encoding, _), task in first.items():
        try:
            _encode(dataset, _split_of(dataset, SplitKey.of(task)), encoding)
        except ValueError as error:
            raise DpreproError(f"{task.label}, split {task.split}: {_describe(error)}") from None


def _n_classes(dataset: Dataset) -> int:
    """Return the number of labels: the domain's, whether or not each occurs, or of those found."""
    return int(dataset.y.max()) + 1 if dataset.domain is None else len(dataset.domain.target)


def _timed(action: Callable[[], Value]) -> tuple[Value, float]:
    start = time.perf_counter()
    value = action()
    return value, time.perf_counter() - start


def _describe(error: BaseException) -> str:
    """Return what an error says, short, the same on every machine, without any value.

    An error of this package is its sentence alone. Of others the text is withheld, so their kind
    and where they arose are all there is.
    """
    if is_our_own(error) and str(error):
        return str(error)[:MESSAGE_LENGTH]
    callers = (__file__, own.__file__)  # of all methods alike
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename not in callers]
    places = " > ".join(
        f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[-TRACEBACK_FRAMES:]
    )
    text = f"{type(error).__name__}: {publishable(error)}".strip()
    return f"{text} ({places})" if places else text
