"""Run what is left of a plan, write every finished task to the journal, and sum up."""

from __future__ import annotations

import contextlib
import queue
import secrets
import signal
import statistics
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dprepro.experiment import environment
from dprepro.experiment.changed_code import warn_of_changed_code
from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.executors import (
    Executor,
    MachineFaultError,
    TimeLimitError,
    WorkerDiedError,
)
from dprepro.experiment.journal import (
    Journal,
    JournalContents,
    JournalTable,
    as_it_lies,
    journal_files,
    read_journal,
)
from dprepro.experiment.local import LocalExecutor
from dprepro.experiment.method_names import names_in_config
from dprepro.experiment.pending import Pending, pending_of
from dprepro.experiment.plan import (
    PlannedTask,
    asked_metrics,
    check_parameters,
    check_tuned_splits,
    narrow,
    plan,
)
from dprepro.experiment.plan_record import state_plan
from dprepro.experiment.record import Record, Task
from dprepro.runtime.append_only_file import JournalWarning
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.data.dataset import Dataset
    from dprepro.experiment.worker import DataRef

CellKey = tuple[str, float]
"""(label, epsilon) of a cell."""


@dataclass
class Tally:
    """Counts and cells over records, kept up to date while they come in.

    Attributes
    ----------
    metric
        The metric that the cells hold.
    values
        By cell, one value a finished split.
    statuses
        How many records ended in each status.
    problems
        (status, label, message) of failed and skipped records, with their number; of finished ones
        without the metric, (``"without METRIC"``, label, reason).
    seconds
        By (label, phase), summed wall time.
    is_synthetic
        Whether any record is of a synthetic stand-in.
    is_private
        Whether any record holds exact functions of private rows.
    unverified
        How many finished records nothing says the spent epsilon of, by label.
    units
        (unit of privacy, rows per unit) of the records.
    """

    metric: str
    values: dict[CellKey, list[float]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    problems: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    seconds: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    is_synthetic: bool = False
    is_private: bool = False
    unverified: Counter[str] = field(default_factory=Counter)
    units: set[tuple[str, int]] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Count one record."""
        task = record.task
        self.statuses[record.status] += 1
        self.is_synthetic |= task.is_synthetic
        self.is_private |= bool(record.exact)
        self.units.add((task.unit, task.rows_per_unit))
        if record.is_unverified:
            self.unverified[task.label] += 1
        if record.status == "ok":
            self._add_value(record)
        else:
            self.problems[record.status, task.label, record.message] += 1
        for phase, seconds in record.seconds.items():
            self.seconds[task.label, phase] += seconds

    def _add_value(self, record: Record) -> None:
        task, name = record.task, self.metric
        if name in record.metrics:
            self.values.setdefault((task.label, task.epsilon), []).append(record.metrics[name])
        else:
            reason = record.absent.get(name, "run before it was recorded")
            self.problems[f"without {name}", task.label, reason] += 1

    def extend(self, records: Iterable[Record]) -> None:
        """Count several records."""
        for record in records:
            self.add(record)

    def joined(self, records: Iterable[Record]) -> Tally:
        """Return a tally over these records as well; this one stays as it is."""
        values = {cell: list(found) for cell, found in self.values.items()}
        copied = Counter(self.statuses), Counter(self.problems), self.seconds.copy()
        unverified, units = Counter(self.unverified), set(self.units)
        joined = Tally(
            self.metric, values, *copied, self.is_synthetic, self.is_private, unverified, units
        )
        joined.extend(records)
        return joined

    def mean(self, cell: CellKey) -> float:
        """Return the mean over the cell's finished splits."""
        return statistics.fmean(self.values[cell])

    def sd(self, cell: CellKey) -> float | None:
        """Return the sample standard deviation (ddof 1) over splits; None for a single one."""
        values = self.values[cell]
        return statistics.stdev(values) if len(values) > 1 else None


@dataclass(frozen=True, repr=False)
class Summary:
    """A run of one config, ended.

    Attributes
    ----------
    name
        The config's name.
    tally
        Over all records asked for, also those that earlier runs left.
    ran
        Number of tasks that this run added.
    wall_seconds
        Wall time of this run.
    stale
        Number of records in the journal that the config no longer asks for.
    others
        Records of the config that this run was not asked for.
    unfinished
        Tasks that faults of the machine stopped each time, by method's label and fault: they have
        no record.
    results
        The folder of its journal: `dprepro.table` and `dprepro.verdicts` take the summary.
    """

    name: str
    tally: Tally
    ran: int
    wall_seconds: float
    stale: int = 0
    others: Sequence[Record] = ()
    unfinished: Mapping[tuple[str, str], int] = field(default_factory=dict)
    results: Path = Path("results")

    def __repr__(self) -> str:
        statuses = (f"{count} {status}" for status, count in self.tally.statuses.items())
        left = [f"{sum(self.unfinished.values())} not finished"] if self.unfinished else []
        said = ", ".join([*statuses, *left]) or "no task"
        return f"Summary({self.name}: {said}; {self.ran} run in {self.wall_seconds:.1f} s)"

    @property
    def whole(self) -> Tally:
        """The tally over all that the config asks for: what `dprepro table` shows of it."""
        return self.tally.joined(self.others)

    @property
    def failed(self) -> int:
        """Number of tasks of the plan whose record is a failure."""
        return self.tally.statuses["failed"]


def finished_elsewhere(
    path: Path, tasks: Collection[Task], metrics: Collection[str] = ()
) -> list[dict[str, Any] | Record]:
    """Return journal entries for those of `tasks` that a neighbour of the journal `path` finished.

    Records follow the environment that they were computed in, with the name of the journal that
    was written there as ``taken_from``. Equal tasks have equal results, so there is nothing to run;
    only tasks without a seed, which no run repeats, are left out. A neighbour is passed over if it
    or a record wanted of it cannot be read, and a record if no environment precedes it, or if it
    lacks one of `metrics`.
    """
    wanted = {task.key for task in tasks if task.seed is not None}
    entries: list[dict[str, Any] | Record] = []
    for name, neighbour in journal_files(path.parent).items() if wanted else ():
        if name == path.stem:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", JournalWarning)
                contents = read_journal(neighbour, wanted)
        except DpreproError:
            continue
        taken = list(_taken(contents, neighbour.stem, metrics))
        entries += taken
        wanted -= {entry.task.key for entry in taken if isinstance(entry, Record)}
    return entries


def _taken(
    contents: JournalContents, journal: str, metrics: Collection[str]
) -> Iterator[dict[str, Any] | Record]:
    """Yield the finished records, each environment before those that it holds for."""
    last: dict[str, Any] | None = None
    for record in contents.records:
        environment = contents.computed_in.get(record.task.key)
        if environment is None or record.status != "ok" or record.lacks(metrics):
            continue
        if environment is not last:
            # What the neighbour took over itself was computed for the journal named there.
            yield {"taken_from": journal, **environment}
            last = environment
        yield record


# What a closed or full output raises, or one whose encoding lacks a character.
_UNSHOWN = (OSError, ValueError)
# How often the runner looks up from waiting for results, in seconds.
_POLL = 0.2
_Arguments = tuple[Task, "DataRef", tuple[str, ...]]
"""Of `run_task`."""


@dataclass(frozen=True)
class Options:
    """How to run; the config says what.

    Attributes
    ----------
    executor, address
        Processes of this machine ("local"), or the workers of the Dask cluster ("dask") whose
        scheduler is at `address` (``HOST:PORT``).
    jobs
        Number of worker processes; None means one a core. A cluster runs one task a thread.
    splits, methods, epsilons
        See `dprepro.experiment.plan.narrow`.
    cells
        By label and epsilon, of how many splits the whole plan is; None means all of the config's.
    fresh
        Move the old journal aside and run everything.
    retry_failed
        Run failed tasks again.
    time_limit
        Seconds that one task may take; None means the config's.
    allow_tuned_splits
        Score a tuned config on the very splits that its parameters were chosen by.
    """

    executor: Literal["local", "dask"] = "local"
    address: str | None = None
    jobs: int | None = None
    splits: int | None = None
    methods: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = ()
    cells: Mapping[tuple[str, float], int] | None = None
    fresh: bool = False
    retry_failed: bool = False
    results: Path = Path("results")
    data_dir: Path | None = None
    time_limit: float | None = None
    allow_tuned_splits: bool = False

    def __post_init__(self) -> None:
        if (self.executor == "dask") != (self.address is not None):
            raise DpreproError(
                "--executor dask and --address HOST:PORT go together: give both or none. HOST:PORT "
                "is the address of the cluster's scheduler"
            )
        if self.executor == "dask" and self.jobs is not None:
            raise DpreproError(
                "--jobs is for the workers of this machine: leave it out. A Dask cluster runs as "
                "many tasks at a time as its workers have threads"
            )


class Observer(Protocol):
    """Told how a run goes on; draws the progress bar."""

    def begin(self, outlook: Pending, jobs: int) -> None:
        """The plan stands; workers are about to start."""

    def advance(self, record: Record) -> None:
        """A task has finished and is in the journal."""

    def end(self) -> None:
        """The run is over, however it ended."""


class _Told:
    """Tells an observer; where it cannot show what it is told, the run goes on."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def begin(self, outlook: Pending, jobs: int) -> None:
        with contextlib.suppress(*_UNSHOWN):
            self._observer.begin(outlook, jobs)

    def advance(self, record: Record) -> None:
        with contextlib.suppress(*_UNSHOWN):
            self._observer.advance(record)

    def end(self) -> None:
        with contextlib.suppress(*_UNSHOWN):
            self._observer.end()


def journal_path(config: ExperimentConfig, results: Path) -> Path:
    """Return where the journal of a config lies."""
    return results / f"{config.name}.jsonl"


def look_ahead(config: ExperimentConfig, options: Options) -> Pending:
    """Return what `run` would do, without doing or writing anything; warn as that does."""
    path, plans = journal_path(config, options.results), _plans(config, options)
    lies = as_it_lies(path)
    known = {} if options.fresh or not lies.exists() else _known(lies)
    metrics = asked_metrics(config)
    known |= _by_key(_taken_over(path, plans[1], known, options.fresh, metrics))
    outlook = pending_of(*plans, known, options.retry_failed, metrics)
    warn_of_changed_code((record.task, record.ledger) for record in outlook.done)
    return outlook


def try_rows(config: ExperimentConfig, options: Options, todo: Sequence[Task]) -> None:
    """Read the rows that tasks are to run on, as they would, and fit nothing; download nothing.

    Raises DpreproError if the rows are not what the card says, or a method cannot take them in its
    encoding. Raises UnavailableError if they are not on this machine.
    """
    from dprepro.experiment.worker import DataRef, try_encodings

    dataset = _load(config, DataRef.of(config, options.data_dir), online=False)
    try_encodings(dataset, todo)


def workers_of(options: Options, tasks: int) -> int:
    """Return how many workers of this machine run so many tasks."""
    from loky import cpu_count

    return max(1, min(options.jobs or cpu_count(), tasks))


def run(config: ExperimentConfig, options: Options, observer: Observer) -> Summary:
    """Run the tasks of one config that its journal does not hold yet.

    What another journal of the folder holds is taken over, unless ``options.fresh``. A task whose
    record lacks a metric that the config asks for counts as one that the journal does not hold. If
    nothing is left to run, a journal that can only be read stays as it is. Records that stay though
    a method of one's own has other code now are warned of; see `changed_code`.
    Results depend neither on the number of workers, nor on the order in which tasks finish, nor
    on how often the run was interrupted. A task that raises, ends its worker or exceeds its time
    limit leaves a ``failed`` record and the others go on. A task that a fault of the machine stops,
    such as a worker killed from outside, runs again; if that happens each time, it leaves no
    record.

    Raises DpreproError if config, dataset or journal cannot be used. Raises KeyboardInterrupt on
    SIGINT, SIGTERM or SIGHUP, after the workers have ended; what had finished is in the journal.
    """
    start, observer = time.perf_counter(), _Told(observer)
    # Errors of the config come before anything is written. The plan that the journal states last
    # was tried, and where it is finished, nobody waits for libraries to be imported.
    plans = _plans(config, options, try_parameters=False)
    stated = state_plan(config, (p.task for p in plans[0]))
    lies = as_it_lies(journal_path(config, options.results))
    is_tried = not options.fresh and stated.agrees_with(JournalTable(lies).last_plan)
    if not is_tried:
        check_parameters(config)
    with Journal(journal_path(config, options.results), fresh=options.fresh) as journal:
        lies = journal.path if options.fresh else as_it_lies(journal.path)
        before = read_journal(lies)
        known, metrics = _by_key(before.records), asked_metrics(config)
        taken = _taken_over(journal.path, plans[1], known, options.fresh, metrics)
        outlook = pending_of(*plans, known | _by_key(taken), options.retry_failed, metrics)
        warn_of_changed_code((record.task, record.ledger) for record in outlook.done)
        if outlook.todo and is_tried:
            check_parameters(config)  # a user's method may have changed
        if outlook.todo or outlook.skips:
            journal.ask_to_write()
        for entry in () if journal.is_read_only else taken:
            journal.append(entry)
        tally = Tally(config.metric)
        tally.extend((*outlook.done, *outlook.skips))
        data = _data_of(config, options, outlook.todo) if outlook.todo else None
        with _workers(config, options, data, outlook.todo) as (executor, stop):
            jobs = executor.jobs if executor else 0
            if not (journal.is_read_only or stated.agrees_with(before.plan)):
                journal.append(stated)
            if outlook.todo or outlook.skips:
                journal.append(environment.describe(config.text, jobs))
            for skip in outlook.skips:
                journal.append(skip)
            observer.begin(outlook, jobs)
            unfinished: Counter[tuple[str, str]] = Counter()
            try:
                calls = [(task, data, metrics) for task in outlook.todo if data is not None]
                for result in _collect(executor, calls, stop) if executor else ():
                    if isinstance(result, Record):
                        journal.append(result)
                        tally.add(result)
                        observer.advance(result)
                    else:
                        unfinished[result] += 1
            finally:
                observer.end()
    wall = time.perf_counter() - start
    ran = len(outlook.todo) - unfinished.total()
    return Summary(
        config.name, tally, ran, wall, outlook.stale, outlook.others, dict(unfinished),
        options.results,
    )  # fmt: skip


def _plans(
    config: ExperimentConfig, options: Options, try_parameters: bool = True
) -> tuple[list[PlannedTask], list[PlannedTask]]:
    """Return the config's plan, and the part of it that is asked for."""
    entries = (entry for method in config.methods for entry in method.expanded)
    # Before a plan, which reads the card.
    names_in_config(options.methods, (n for e in entries for n in (e.label, e.method)))
    planned = plan(config, options.data_dir, try_parameters=try_parameters)
    if options.cells is not None:
        splits = options.cells
        planned = [
            p for p in planned if p.task.split < splits.get((p.task.label, p.task.epsilon), 0)
        ]
    if not options.allow_tuned_splits:
        check_tuned_splits(config)
    return planned, narrow(planned, options.splits, options.methods, options.epsilons)


def _known(path: Path) -> dict[str, Record]:
    return _by_key(read_journal(path).records)


def _by_key(entries: Sequence[dict[str, Any] | Record]) -> dict[str, Record]:
    return {entry.task.key: entry for entry in entries if isinstance(entry, Record)}


def _taken_over(
    path: Path,
    asked: Sequence[PlannedTask],
    known: dict[str, Record],
    fresh: bool,
    metrics: Sequence[str],
) -> list[dict[str, Any] | Record]:
    missing = [
        p.task
        for p in asked
        if not p.skip and (p.task.key not in known or known[p.task.key].lacks(metrics))
    ]
    return [] if fresh else finished_elsewhere(path, missing, metrics)


def _data_of(config: ExperimentConfig, options: Options, todo: Sequence[Task]) -> DataRef:
    """Return where workers find the dataset, sealed with a key of this run."""
    from dprepro.experiment.worker import DataRef  # late, as all that only tasks need: pandas

    fingerprint, nonce = todo[0].data_fingerprint, secrets.token_hex(32)
    return DataRef.of(config, options.data_dir, nonce=nonce, fingerprint=fingerprint)


@contextlib.contextmanager
def _workers(
    config: ExperimentConfig, options: Options, data: DataRef | None, todo: Sequence[Task]
) -> Iterator[tuple[Executor | None, threading.Event]]:
    """Start what runs the tasks (None without any) and end it, however the run goes.

    From the start on, signals to end only set the event.
    """
    executor = _start(config, options, data, todo) if data else None
    with warnings.catch_warnings(), _stop_signals() as stop:
        # loky thinks of a dataset in memory as a leak, and replaces the worker: no matter.
        warnings.filterwarnings("ignore", message="A worker was restarted")
        try:
            yield executor, stop
        except BaseException:
            if executor:
                executor.kill()
            raise
        if executor:
            executor.close()


def _start(
    config: ExperimentConfig, options: Options, data: DataRef, todo: Sequence[Task]
) -> Executor:
    from dprepro.experiment.worker import compile_kernels, warm_up

    methods = sorted({task.method for task in todo})
    prepare = partial(warm_up, data, methods)
    limit = options.time_limit or config.time_limit
    if options.address is not None:
        from dprepro.experiment.cluster import DaskExecutor

        return DaskExecutor(options.address, limit, prepare)
    # Fetched and compiled once, before several workers want it. Not side by side: two threads that
    # import libraries at the same time can find one of them half loaded.
    compile_kernels(methods, _load(config, data).task)
    from loky import cpu_count

    processors = options.jobs or cpu_count()
    return LocalExecutor(workers_of(options, len(todo)), limit, prepare, processors=processors)


def _load(config: ExperimentConfig, data: DataRef, online: bool = True) -> Dataset:
    """Return the dataset, after refusing here, and not once a task, what a public domain does."""
    from dprepro.data.dataset import load, refuse_undeclared_missing

    dataset = load(data.card, data.data_dir, online, data.with_test)
    if config.domain == "public":
        refuse_undeclared_missing(dataset)
    return dataset


_Result = Record | tuple[str, str]
"""A record, or the label and the fault of a task that has none."""


def _collect(
    executor: Executor, calls: Sequence[_Arguments], stop: threading.Event
) -> Iterator[_Result]:
    from dprepro.experiment.worker import run_task

    finished: queue.SimpleQueue[Future[Record]] = queue.SimpleQueue()
    tasks: dict[Future[Record], Task] = {}
    for task, data, metrics in calls:
        future = executor.submit(run_task, task, data, metrics, affinity=task.split)
        tasks[future] = task
        future.add_done_callback(finished.put)
    while tasks and not stop.is_set():
        try:
            future = finished.get(timeout=_POLL)
        except queue.Empty:
            continue
        if stop.is_set():
            finished.put(future)
        else:
            yield _result(future, tasks.pop(future), stop)
    if stop.is_set():
        executor.kill()
        while not finished.empty():
            future = finished.get()
            if not future.cancelled() and future.exception() is None:
                yield future.result()
        raise KeyboardInterrupt


def _result(future: Future[Record], task: Task, stop: threading.Event) -> _Result:
    try:
        return future.result()
    except (TimeLimitError, WorkerDiedError) as error:
        return Record(task, "failed", message=str(error))
    except MachineFaultError as error:
        return task.label, str(error)
    except DpreproError:
        # A signal to the whole group can end a worker that starts before we hear of it.
        if stop.wait(_POLL):
            return task.label, "interrupted"
        raise


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Turn signals to end into an event, so that no line of the journal is cut in two.

    SIGHUP stays ignored where it is, as `nohup` wants it.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
