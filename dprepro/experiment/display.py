"""How a run shows: a live table with a progress bar, or plain lines where there is no terminal."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress import MofNCompleteColumn, TextColumn
from rich.text import Text

from dprepro.experiment.config import ExperimentConfig
from dprepro.experiment.forecast import Forecast
from dprepro.experiment.pending import Pending
from dprepro.experiment.plan import asked_metrics
from dprepro.experiment.record import Record, Task
from dprepro.experiment.run import CellKey, Observer, Summary, Tally
from dprepro.privacy.budget import PrivacyBudget, whose_epsilon
from dprepro.privacy.guarantee_status import UNVERIFIED
from dprepro.runtime.terminal import Stacked, StackedColumn, counted, progress_bar
from dprepro.runtime.text import visible

# From this share of all tasks on, others speak for a method that has not finished any.
_ENOUGH = 0.25


class Eta:
    """Tasks a second, and the time left, from the tasks that have finished.

    The first task of each worker waits for the worker to start, to read its rows and to load
    compiled code, so these tasks do not count for the pace. The time left is the sum of what the
    tasks to run will take: each as long as its method's tasks on average, shared by all workers.
    There is none before each method to run has finished a task, here or in an earlier run, or a
    quarter of all tasks has finished.

    Parameters
    ----------
    todo
        The tasks to run.
    done
        Records of earlier runs.
    jobs
        Number of workers.
    clock
        The time in seconds.
    """

    def __init__(
        self,
        todo: Iterable[Task],
        done: Iterable[Record],
        jobs: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._left = Counter(task.label for task in todo)
        self._total = self._left.total()
        self._jobs = max(jobs, 1)
        self._clock = clock
        self._took: dict[str, list[float]] = defaultdict(list)
        self._finished = 0
        self._start = self._last = clock()
        for record in done:
            self._learn(record)

    def advance(self, record: Record) -> None:
        """Take in a task that has finished."""
        self._finished += 1
        self._left[record.task.label] -= 1
        self._last = self._clock()
        if self._finished == self._jobs:
            self._start = self._last
        self._learn(record)

    def _learn(self, record: Record) -> None:
        if record.status == "ok":
            self._took[record.task.label].append(sum(record.seconds.values()))

    @property
    def per_second(self) -> float | None:
        """Tasks a second since each worker has finished one; None until some have."""
        counted = self._finished - self._jobs
        gone = self._last - self._start
        return counted / gone if counted > 0 and gone > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last task has finished; None while nothing can be said."""
        waiting = {label: count for label, count in self._left.items() if count > 0}
        unknown = [label for label in waiting if not self._took[label]]
        known = [seconds for took in self._took.values() for seconds in took]
        if not known or (unknown and self._finished < _ENOUGH * self._total):
            return None
        usual = sum(known) / len(known)
        means = {label: sum(took) / len(took) for label, took in self._took.items() if took}
        work = sum(count * means.get(label, usual) for label, count in waiting.items())
        return work / min(self._jobs, max(sum(waiting.values()), 1))

    @property
    def in_words(self) -> str:
        """``3.1 tasks/s``, or ``12 tasks/min`` where they are slow; empty until it is known."""
        rate = self.per_second
        if rate is None:
            return ""
        if rate < 1:
            return f"{60 * rate:.2g} tasks/min"
        return f"{rate:.2g} tasks/s" if rate < 10 else f"{rate:,.0f} tasks/s"


_PHASES = ("encode", "fit", "predict")
_LOOKS: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)}
_UNKNOWN = "-:--"
_LEGEND = "[n/m]: only n of m splits finished."


def display_for(config: ExperimentConfig, console: Console) -> Observer:
    """Return the display that suits the console; a dumb terminal cannot draw anything anew."""
    is_live = console.is_terminal and not console.is_dumb_terminal
    return LiveDisplay(config, console) if is_live else PlainDisplay(config, console)


class LiveDisplay:
    """The running means above a progress bar with the time left."""

    def __init__(self, config: ExperimentConfig, console: Console) -> None:
        self._config = config
        self._tally = Tally(config.metric)
        self._others: Sequence[Record] = ()
        self._progress = progress_bar(
            console,
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}", markup=False),
            TextColumn("{task.fields[failed]}", "red", markup=False),
            left=TextColumn("{task.fields[left]}", markup=False),
        )
        self._live = Live(console=console, get_renderable=self._render, transient=True)

    def _render(self) -> Group:
        whole = self._tally.joined(self._others)
        return Group(cells_table(self._config, whole, spread=False), self._progress)

    def begin(self, outlook: Pending, jobs: int) -> None:
        """Draw the table as earlier runs left it."""
        self._tally.extend(outlook.done)
        self._others = outlook.others
        self._pace = Eta(outlook.todo, outlook.done, jobs)
        if outlook.todo:
            self._bar = self._progress.add_task(
                self._config.name, total=len(outlook.todo), failed="", pace="", left=_UNKNOWN
            )
            self._live.start()

    def advance(self, record: Record) -> None:
        """Move the bar by one task and its cell's mean."""
        self._tally.add(record)
        self._pace.advance(record)
        failed, left = self._tally.statuses["failed"], self._pace.seconds_left
        self._progress.update(
            self._bar,
            advance=1,
            failed=f"{failed} failed" if failed else "",
            pace=self._pace.in_words,
            left=_UNKNOWN if left is None else f"about {duration(left)}",
        )

    def end(self) -> None:
        """Take table and bar away; the summary follows."""
        self._live.stop()


class PlainDisplay:
    """A line now and then, for logs.

    Parameters
    ----------
    interval
        Seconds between two lines.
    """

    def __init__(self, config: ExperimentConfig, console: Console, interval: float = 10.0) -> None:
        self._config = config
        self._console = console
        self._interval = interval
        self._tally = Tally(config.metric)
        self._ran = 0

    def begin(self, outlook: Pending, jobs: int) -> None:
        """Say what lies ahead."""
        self._tally.extend(outlook.done)
        self._total = len(outlook.todo)
        self._pace = Eta(outlook.todo, outlook.done, jobs)
        self._start = self._last = time.monotonic()
        before = sum(record.status != "skipped" for record in outlook.done)
        skipped = sum(1 for entry in outlook.planned if entry.skip)
        self._print(
            f"{counted(len(outlook.planned), 'task')}: {before} done before, {skipped} skipped, "
            f"{self._total} to run" + (f" on {jobs} worker(s)" if jobs else "")
        )
        if outlook.again:
            self._print(_again(self._config, outlook))

    def advance(self, record: Record) -> None:
        """Print a line if it is time, or if the task failed in a new way."""
        self._tally.add(record)
        self._pace.advance(record)
        self._ran += 1
        task, now = record.task, time.monotonic()
        if record.status == "failed":
            if self._tally.problems["failed", task.label, record.message] == 1:
                self._print(f"{_cell_name((task.label, task.epsilon))} failed: {record.message}")
        elif now - self._last >= self._interval or self._ran == self._total:
            self._last = now
            self._print(self._line((task.label, task.epsilon), now))

    def _line(self, cell: CellKey, now: float) -> str:
        gone = now - self._start
        left, pace = self._pace.seconds_left, self._pace.in_words
        outlook = (f", {pace}" if pace else "") + (f", about {duration(left)} left" if left else "")
        splits = len(self._tally.values.get(cell, ()))
        if not splits:
            return f"{self._ran}/{self._total} in {duration(gone)}{outlook}"
        return (
            f"{self._ran}/{self._total} in {duration(gone)}{outlook}; "
            f"{_cell_name(cell)}: {self._config.metric} {number(self._tally.mean(cell))} "
            f"({splits} split{'' if splits == 1 else 's'})"
        )

    def end(self) -> None:
        """Leave the lines as they are."""

    def _print(self, line: str) -> None:
        self._console.print(Text(visible(f"{self._config.name}: {line}")), soft_wrap=True)


def cells_table(config: ExperimentConfig, tally: Tally, spread: bool = True) -> Group:
    """Return the mean of every cell: rows methods, columns epsilons; below it what marks mean.

    With `spread` the standard deviation over splits stands beside it. Cells with fewer splits
    than the fullest one say how many they have, of those that the config asks for.
    """
    labels = [
        m.label
        for e in config.methods
        for m in e.expanded
        if any(k[0] == m.label for k in tally.values)
    ]
    counts = [len(values) for values in tally.values.values()]
    most = max(counts, default=0)
    measure = "mean ± sd" if spread else "mean"
    made_up = " of SYNTHETIC data" if tally.is_synthetic else ""
    part = f"{most} of {config.splits}" if most < config.splits else f"{most}"
    title = f"{config.name}: {config.metric}, {measure} over {part} split(s){made_up}"
    columns = [StackedColumn("epsilon", [(Text(visible(label)),) for label in labels])]
    for epsilon in sorted({epsilon for _, epsilon in tally.values}):
        cells = [_pieces(tally, (label, epsilon), spread, config.splits) for label in labels]
        heading = "none" if math.isinf(epsilon) else f"{epsilon:g}"
        columns.append(StackedColumn(heading, cells, justify="right"))
    looks = {"title_style": "bold", "min_width": len(title), **_LOOKS}
    legend = [_LEGEND] if min(counts, default=0) < most else []
    legend += [said] if (said := whose_epsilon(tally.units)) else []
    dim = (Text(line, style="dim") for line in legend)
    return Group(Stacked(title, columns, looks=looks), *dim)


def pending_table(config: ExperimentConfig, outlook: Pending, ahead: Forecast) -> Group:
    """Return the plan, counted by method, with what is to run in minutes of one processor.

    Below it stands how many records are of other settings.
    """
    notes = []
    if outlook.stale:
        notes.append(f"{outlook.stale} record(s) have settings that the config no longer asks for")
    if outlook.again:
        notes.append(_again(config, outlook))
    kinds = {
        "done": [r.task.label for r in outlook.done if r.status == "ok"],
        "failed": [r.task.label for r in outlook.done if r.status == "failed"],
        "skipped": [p.task.label for p in outlook.planned if p.skip],
        "to run": [task.label for task in outlook.todo],
    }
    planned = [p.task.label for p in outlook.planned]
    labels = list(dict.fromkeys(planned))
    rows = [
        [planned.count(label), *(found.count(label) for found in kinds.values())]
        for label in labels
    ]
    rows.append([len(planned), *(len(found) for found in kinds.values())])
    figures = {
        heading: [str(row[position]) for row in rows]
        for position, heading in enumerate(("tasks", *kinds))
    }
    figures["takes"] = [*(_takes(ahead, label) for label in labels), _takes(ahead)]
    table = _counts_table(f"{config.name}: the plan", [*labels, "all"], figures, len(labels) - 1)
    return Group(table, *(Text(note) for note in notes))


def _takes(ahead: Forecast, label: str | None = None) -> str:
    """Return what the tasks of a label, or all, take; "?" stands for what is not known."""
    parts = [part for part in ahead.parts if label in (None, part.label)]
    known = sum(part.total for part in parts)
    said = [roughly(known)] if known else []
    return " + ".join([*said, *["?"] * any(part.seconds is None for part in parts)])


def forecast_lines(ahead: Forecast, jobs: int | None, folder: Path) -> Iterator[str]:
    """Yield how long a run will take, where the times come from, and what has none.

    Parameters
    ----------
    jobs
        Number of workers; None where it is not known.
    folder
        That of the run's journal.
    """
    if ahead.known:
        alone = f"{roughly(ahead.seconds)} of one processor"
        known = sum(part.tasks for part in ahead.known)
        shared = (
            alone
            if jobs is None
            else f"{roughly(ahead.wall_seconds(jobs))} on {counted(jobs, 'worker')} ({alone})"
        )
        yield f"Expected: {shared} for {counted(known, 'task')}."
        yield f"Times are means of the same method on the same dataset: {_whence(ahead, folder)}."
    if ahead.unknown:
        named = ", ".join(f"{label} ({count})" for label, count in ahead.unknown.items())
        top = "They come on top. " if ahead.known else ""
        yield (
            f"No time is known of {counted(sum(ahead.unknown.values()), 'task')}: {named}. {top}"
            "With --splits 1 a run shows how long one takes."
        )


def _whence(ahead: Forecast, folder: Path) -> str:
    """Return where times come from, with numbers of tasks."""
    sources = {
        (True, True): f"recorded in {folder}",
        (False, True): "of the runs that come with dprepro, on another machine",
        (True, False): f"recorded in {folder}, with other parameters",
        (False, False): "of the runs that come with dprepro, with other parameters",
    }
    counts = Counter[tuple[bool, bool]]()
    for part in ahead.known:
        counts[part.is_own, part.is_same] += part.tasks
    return "; ".join(f"{counts[k]} {said}" for k, said in sources.items() if counts[k])


def _counts_table(
    title: str, labels: Sequence[str], figures: Mapping[str, Sequence[str]], last: int
) -> Stacked:
    """Return a table of methods and figures; a blank line follows the row `last`."""
    columns = [
        StackedColumn("method", [(Text(visible(label)),) for label in labels]),
        *(
            StackedColumn(heading, [(Text(cell),) for cell in cells], "right")
            for heading, cells in figures.items()
        ),
    ]
    return Stacked(title, columns, ends={last}, looks={"title_style": "bold", **_LOOKS})


def _again(config: ExperimentConfig, outlook: Pending) -> str:
    return (
        f"{outlook.again} of the tasks to run have finished before, but their records lack a "
        f"metric that the config asks for ({', '.join(asked_metrics(config))})"
    )


def profile_table(summary: Summary) -> Stacked:
    """Return where the time went, by method."""
    seconds = summary.tally.seconds
    total = sum(seconds.values())
    labels = list(dict.fromkeys(label for label, _ in seconds))
    figures: dict[str, list[str]] = {}
    for phase in _PHASES:
        taken = [seconds.get((label, phase), 0.0) for label in labels]
        figures[f"{phase} s"] = [f"{value:.2f}" for value in taken]
    spent = [sum(seconds.get((label, phase), 0.0) for phase in _PHASES) for label in labels]
    figures["share"] = [f"{value / total if total else 0.0:.0%}" for value in spent]
    return _counts_table(f"{summary.name}: where the time went", labels, figures, -1)


def notes(summary: Summary, journal: Path) -> Iterable[str]:
    """Yield the lines below the table: made-up data, failures, skips, times."""
    if summary.tally.is_synthetic:
        yield (
            "SYNTHETIC DATA: the real data were never released and are not on this machine. These "
            "results come from a random stand-in of the same shape: do not compare them with "
            "printed numbers"
        )
    for (status, label, message), count in summary.tally.problems.items():
        yield f"{status}: {label}, {count} task(s): {message}"
    if summary.failed:
        yield (
            "failed tasks are run again with --retry-failed, or when the card or their settings "
            "have changed"
        )
    for (label, fault), count in summary.unfinished.items():
        yield f"not finished: {label}, {count} task(s): {fault}"
    if summary.unfinished:
        yield "nothing is recorded of unfinished tasks: the same command runs them again"
    for label, count in summary.tally.unverified.items():
        yield f"{label}, {count} task(s): {UNVERIFIED}"
    if summary.tally.is_private:
        yield (
            "PRIVATE DATA: the journal holds exact scores of private rows, which are not covered "
            "by epsilon: keep it to yourself. `dprepro fit` writes models to release, and says "
            "whether their guarantee holds"
        )
    kept = sum(summary.tally.statuses.values()) - summary.ran
    yield (
        f"{summary.ran} task(s) run in {duration(summary.wall_seconds)}, "
        f"{kept} from before or skipped; journal: {journal}"
    )


def duration(seconds: float) -> str:
    """Return seconds as ``4.2 s``, ``3:07`` or ``1:03:07``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def roughly(seconds: float) -> str:
    """Return seconds with two digits, as ``4.2 s``, ``13 min``, ``1.6 h`` or ``3.1 days``."""
    units = [("s", 1, 90), ("min", 60, 90 * 60), ("h", 3600, 48 * 3600), ("days", 86400, math.inf)]
    unit, size = next((unit, size) for unit, size, limit in units if seconds < limit)
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"


def number(value: float) -> str:
    """Return a metric's value with as many decimals as its size calls for."""
    size = abs(value)
    return f"{value:.4f}" if size < 10 else f"{value:.2f}" if size < 1000 else f"{value:,.0f}"


def _pieces(tally: Tally, cell: CellKey, spread: bool, asked: int) -> tuple[Text, ...]:
    """Return the parts of a cell that stand below one another where there is little room."""
    if cell not in tally.values:
        return ()
    sd, splits = tally.sd(cell), len(tally.values[cell])
    fullest = max(map(len, tally.values.values()))
    parts = [
        number(tally.mean(cell)),
        f"±{number(sd)}" if spread and sd is not None else "",
        f"[{splits}/{asked}]" if splits < fullest else "",
    ]
    return tuple(Text(part) for part in parts if part)


def _cell_name(cell: CellKey) -> str:
    label, epsilon = cell
    return PrivacyBudget(epsilon, 0.0).name(label)
