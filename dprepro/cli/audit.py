"""`dprepro audit`: lower bounds on the epsilon that a method spends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from enum import Enum
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprepro import __version__
from dprepro.cli.options import Size
from dprepro.privacy.budget import PrivacyBudget
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.terminal import console, counted, error_console, progress_bar
from dprepro.runtime.text import file_names

if TYPE_CHECKING:
    from rich.console import Console

    from dprepro.audit import AuditResult, OneRunResult
    from dprepro.audit.case import Case
    from dprepro.data.domain import TaskKind


RECORD, RECORD_SEED = Path("results/audit.json"), 2021
"""What `--all` writes, and with which seed."""


class Task(str, Enum):
    """Kinds of task that private methods support."""

    BINARY = "binary"
    MULTICLASS = "multiclass"
    REGRESSION = "regression"


def audit(
    method: Annotated[
        list[str] | None,
        typer.Argument(
            help="Private methods, cases of one (METHOD/CASE, METHOD/canaries), or mechanisms such "
            "as gaussian. Default: all."
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The stated epsilon.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The stated delta.")] = 1e-6,
    task: Annotated[Task | None, typer.Option(help="Only this kind of task; default: all.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Number of runs; default: that of the case.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    seed: Annotated[
        int | None, typer.Option(help="Seed of a repeatable audit; default: a new one each time.")
    ] = None,
    one_run: Annotated[
        bool, typer.Option("--one-run", help="Use one run with many canaries (DP-EBM, gaussian).")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help=f"Audit everything private and write {RECORD}, with the seed {RECORD_SEED}.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write results as .json; .png and .svg as --picture. Results in the file that are "
            "of other subjects stay."
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw both distributions of outputs: .png or .svg.")
    ] = None,
    size: Size = None,
) -> None:
    """Bound epsilon from below, by many runs on two neighbouring tables.

    The tables are the worst pair known for the method. The audit tells them apart by the outputs
    alone, and its bound holds with 95 % confidence. EXCEEDED means that the stated guarantee is
    refuted, with 99.99 % confidence. The exit code is then 1, unless the ledger gives a reason for
    it. "undecided" means that the bound is too high, but not as surely. "ceiling" is the
    largest bound that these tables allow. "too few runs" means that so few runs can show hardly
    any of it, so a small bound says nothing about the method.

    In a terminal, the command says first about how long it will take.

    With --output an audit keeps finished runs beside that file, in FILE.runs, until it ends. If it
    is stopped, the same command continues it.

    Example: dprepro audit dp-ebm-sound --epsilon 1 --jobs 2 --picture audit.png
    """
    from dprepro.audit.render import FORMATS, check_format, render, write_picture
    from dprepro.privacy.gdp import check_epsilon_delta

    if not 0 < epsilon < float("inf"):
        raise typer.BadParameter(f"--epsilon must be a finite number above 0, given {epsilon:g}")
    try:
        check_epsilon_delta(epsilon, delta)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if everything and (method or one_run or task):
        raise typer.BadParameter(
            "--all leaves nothing to choose: leave out METHOD, --task, --one-run"
        )
    if everything:
        output, seed = output or RECORD, RECORD_SEED if seed is None else seed
    if output is not None and output.suffix in FORMATS:
        output, picture = None, output
    _check_files(output, picture, one_run)
    if size is not None and picture is None:
        raise DpreproError("--size is about a picture: name its file with --picture")
    if picture is not None:
        check_format(picture)
    chosen = _chosen(method, task.value if task else None, one_run)
    results: list[AuditResult | OneRunResult]
    if one_run:
        results = [_run_once(name, kind, epsilon, delta, seed) for name, kind in chosen]
    else:
        budget = PrivacyBudget(epsilon, delta)
        many = _run_many(chosen, budget, trials, jobs, seed, output)
        if picture is not None:
            write_picture(many, picture, size)
        results = [*many]
    if output is not None and one_run:
        _record(output, results)
    console().print(render(results))
    if any(result.unexplained for result in results):
        raise typer.Exit(1)


def _version_of(result: AuditResult | OneRunResult) -> dict[str, int]:
    """Return the version of the audited method; nothing for a mechanism."""
    from dprepro.methods import registry

    method = registry.all_methods().get(result.subject.partition("/")[0]) if result.task else None
    return {"method_version": method.version} if method else {}


def _record(output: Path, results: Sequence[AuditResult | OneRunResult]) -> None:
    """Write results; those of other subjects that the file holds stay, in their places."""
    when = {"date": datetime.now(timezone.utc).date().isoformat(), "dprepro": __version__}
    records = [*_recorded(output)]
    places = {_key(record): place for place, record in enumerate(records)}
    for result in results:
        record = result.to_json() | when | _version_of(result)
        place = places.setdefault(_key(record), len(records))
        records[place : place + 1] = [record]
    output.parent.mkdir(parents=True, exist_ok=True)
    # A kill leaves the old file or the new one.
    new = output.with_name(f"{output.name}.new")
    new.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8", newline="\n")
    new.replace(output)


def _recorded(output: Path) -> list[dict[str, Any]]:

    if not output.exists():
        return []
    try:
        records = json.loads(output.read_text(encoding="utf-8"))
        _ = [_key(record) for record in records]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DpreproError(
            f"--output {output}: the file holds no results of audits: choose another, or delete it"
        ) from error
    return list(records)


def _key(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what makes two results those of one audit."""
    once = "canaries" in record
    return record["subject"], record["task"], record["epsilon"], record["delta"], once


def _check_files(output: Path | None, picture: Path | None, one_run: bool) -> None:

    if output is not None and output.suffix != ".json":
        raise DpreproError(f"--output {output}: allowed are .json for results, .png and .svg")
    if output is not None:
        _recorded(output)
    if one_run and picture is not None:
        raise DpreproError("one run has no distributions to draw: leave out --one-run or --picture")


def _chosen(
    names: Sequence[str] | None, task: TaskKind | None, one_run: bool
) -> list[tuple[str, TaskKind | None]]:
    """Return the subjects to audit, each task of a method by itself."""
    from dprepro.audit import find_case, find_one_run_case, one_run_subjects, stands_for, subjects

    allowed = one_run_subjects() if one_run else subjects()
    if not names:
        return [(n, kind) for n, kind in allowed if task in (None, kind)]
    chosen: list[tuple[str, TaskKind | None]] = []
    for name in names:
        meant = [(n, k) for n, k in allowed if stands_for(name, n) and (task in (None, k) or not k)]
        if not meant:
            # An unknown name or task is refused with what is allowed.
            (find_one_run_case if one_run else find_case)(name, task)
        chosen.extend(meant)
    # METHOD stands for METHOD/CASE, too: if both are given, each runs once.
    return list(dict.fromkeys(chosen))


def _run_many(
    chosen: Sequence[tuple[str, TaskKind | None]],
    budget: PrivacyBudget,
    trials: int | None,
    jobs: int,
    seed: int | None,
    output: Path | None,
) -> list[AuditResult]:
    """Return the results, each written to `output` as soon as it is there.

    The files of runs stay to the end: of what has finished before a kill, nothing is run again.
    Cases that share their runs find them there.
    Names methods without a ledger; an error if there are no others.
    """
    from rich.progress import MofNCompleteColumn

    from dprepro.audit import audit as run
    from dprepro.audit import find_case
    from dprepro.audit.result import UnverifiedError
    from dprepro.audit.trials import check_trials

    if trials is not None:
        check_trials(trials)
    results: list[AuditResult] = []
    errors: list[UnverifiedError] = []
    cases = [find_case(n, k, epsilon=budget.epsilon, delta=budget.delta) for n, k in chosen]
    runs = [trials or case.trials for case in cases]
    stderr = error_console()
    if stderr.is_terminal:
        _announce(stderr, list(zip(cases, runs, strict=True)), jobs)
    with (
        _folder_of_runs(output) as folder,
        progress_bar(stderr, MofNCompleteColumn(), is_transient=True) as bar,
    ):
        left = _runs_made_once(zip(cases, runs, strict=True))
        line = bar.add_task("", total=sum(left.values()))
        for number, ((name, kind), case, most) in enumerate(
            zip(chosen, cases, runs, strict=True), start=1
        ):
            called = f"{name} {kind or ''}".strip()
            bar.update(line, description=called)
            if not stderr.is_terminal:  # which shows no bar
                said = f"{number} of {len(chosen)}: {called}, {most:,} runs at most"
                stderr.print(said, soft_wrap=True)
            before = bar.tasks[0].completed
            # None are left where a case before it has made them.
            to_make = left.pop((case.runs_of, case.task), 0)
            keep_in = folder / _runs_file(case) if output or _is_shared(case, cases) else None
            try:
                results.append(
                    run(
                        case, most, jobs=jobs, seed=seed, keep_in=keep_in,
                        advance=partial(bar.advance, line) if to_make else None,
                    )
                )  # fmt: skip
                if output is not None:
                    _record(output, results[-1:])
            except UnverifiedError as error:
                errors.append(error)
            # What an audit that ended early did not need is done, too.
            bar.update(line, completed=before + to_make)
    if not results and errors:
        raise errors[0]
    for text in dict.fromkeys(map(str, errors)):
        stderr.print(text, soft_wrap=True)
    return results


def _runs_made_once(
    planned: Iterable[tuple[Case, int]],
) -> dict[tuple[str, TaskKind | None], int]:
    """Return how many runs are made at most, by whose they are: some cases share them."""
    return {(case.runs_of, case.task): most for case, most in planned}


def _announce(stderr: Console, planned: Sequence[tuple[Case, int]], jobs: int) -> None:
    """Say what will be run, and about how long it takes."""
    from dprepro.audit.trials import expected_seconds
    from dprepro.experiment.display import duration

    with stderr.status("trying each case, to see how long its runs take ..."):
        seconds = expected_seconds(planned, jobs)
    audits, runs = counted(len(planned), "audit"), sum(_runs_made_once(planned).values())
    text = f"{audits}, {runs:,} runs at most: about {duration(seconds)} with --jobs {jobs}"
    stderr.print(text, soft_wrap=True)


@contextmanager
def _folder_of_runs(output: Path | None) -> Iterator[Path]:
    """Give a folder for finished runs: one that a kill leaves behind if there is an output."""
    if output is None:
        with TemporaryDirectory(prefix="dprepro-audit-") as place:
            yield Path(place)
        return
    folder = output.with_name(f"{output.name}.runs")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _runs_file(case: Case) -> str:
    (name,) = file_names([case.runs_of.replace("/", "--")])
    return f"{name}-{case.task or 'mechanism'}.jsonl"


def _is_shared(case: Case, cases: Sequence[Case]) -> bool:
    return sum((c.runs_of, c.task) == (case.runs_of, case.task) for c in cases) > 1


def _run_once(
    name: str, task: TaskKind | None, epsilon: float, delta: float, seed: int | None
) -> OneRunResult:
    from dprepro.audit import audit_in_one_run, find_one_run_case

    return audit_in_one_run(find_one_run_case(name, task, epsilon=epsilon, delta=delta), seed=seed)
