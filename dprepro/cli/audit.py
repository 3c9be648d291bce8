"""`dprepro audit`: lower bounds on the epsilon that a method spends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dprepro import __version__

if TYPE_CHECKING:
    from dprepro.audit import AuditResult, OneRunResult
    from dprepro.data.domain import TaskKind


class Task(str, Enum):
    """Kinds of task that private methods support."""

    BINARY = "binary"
    REGRESSION = "regression"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("audit")(audit)


def audit(
    method: Annotated[
        list[str] | None,
        typer.Argument(
            help="Private methods, cases of one (METHOD/CASE), or mechanisms such as gaussian. "
            "Default: all."
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The stated epsilon.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The stated delta.")] = 1e-6,
    task: Annotated[
        Task | None, typer.Option(help="Only this kind of task; default: both.")
    ] = None,
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
    output: Annotated[
        Path | None, typer.Option(help="Write results as .json; .png and .svg as --picture.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw both distributions of outputs: .png or .svg.")
    ] = None,
) -> None:
    """Bound epsilon from below, by many runs on two neighbouring tables.

    The tables are the worst pair known for the method. The audit tells them apart by the outputs
    alone, and its bound holds with 95 % confidence. EXCEEDED means that the stated guarantee is
    refuted. The exit code is then 1, unless the ledger gives a reason for it.

    Example: dprepro audit dp-ebm-sound --epsilon 1 --jobs 2 --picture audit.png
    """
    from dprepro.audit.picture import FORMATS, check_format, write_picture
    from dprepro.audit.render import render
    from dprepro.privacy.gdp import check_epsilon_delta

    try:
        check_epsilon_delta(epsilon, delta)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if output is not None and output.suffix in FORMATS:
        output, picture = None, output
    _check_files(output, picture, one_run)
    if picture is not None:
        check_format(picture)
    chosen = _chosen(method, task.value if task else None, one_run)
    results: list[AuditResult | OneRunResult]
    if one_run:
        results = [_run_once(name, kind, epsilon, delta, seed) for name, kind in chosen]
    else:
        many = _audited(
            chosen, lambda n, kind: _run_many(n, kind, epsilon, delta, trials, jobs, seed)
        )
        if picture is not None:
            write_picture(many, picture)
        results = [*many]
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        when = {"date": datetime.now(timezone.utc).date().isoformat(), "dprepro": __version__}
        output.write_text(json.dumps([r.to_json() | when for r in results], indent=1) + "\n")
    Console(highlight=False).print(render(results), soft_wrap=True)
    if any(result.unexplained for result in results):
        raise typer.Exit(1)


def _audited(
    chosen: Sequence[tuple[str, TaskKind | None]],
    run: Callable[[str, TaskKind | None], AuditResult],
) -> list[AuditResult]:
    """Return the results; name methods without a ledger, an error if there are no others."""
    from dprepro.audit.result import UnverifiedError

    results: list[AuditResult] = []
    errors: list[UnverifiedError] = []
    for name, kind in chosen:
        try:
            results.append(run(name, kind))
        except UnverifiedError as error:
            errors.append(error)
    if not results and errors:
        raise errors[0]
    for text in dict.fromkeys(map(str, errors)):
        Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
    return results


def _check_files(output: Path | None, picture: Path | None, one_run: bool) -> None:
    from dprepro.errors import DpreproError

    if output is not None and output.suffix != ".json":
        raise DpreproError(f"--output {output}: allowed are .json for results, .png and .svg")
    if one_run and picture is not None:
        raise DpreproError("one run has no distributions to draw: leave out --one-run or --picture")


def _chosen(
    names: Sequence[str] | None, task: TaskKind | None, one_run: bool
) -> list[tuple[str, TaskKind | None]]:
    """Return the subjects to audit, each task of a method by itself."""
    from dprepro.audit import find_case, find_one_run_case, one_run_names, subjects

    allowed = [(n, kind) for n, kind in subjects() if not (one_run and n not in one_run_names())]
    if not names:
        return [(n, kind) for n, kind in allowed if task in (None, kind)]
    chosen: list[tuple[str, TaskKind | None]] = []
    for name in names:
        # An unknown name or task is refused with what is allowed.
        if one_run:
            find_one_run_case(name, task)
        else:
            find_case(name, task)
        chosen.extend(
            (n, kind)
            for n, kind in allowed
            if (n == name or n.startswith(f"{name}/")) and (task in (None, kind) or not kind)
        )
    # METHOD stands for all its METHOD/CASE, too: if both are given, each runs once.
    return list(dict.fromkeys(chosen))


def _run_many(
    name: str,
    task: TaskKind | None,
    epsilon: float,
    delta: float,
    trials: int | None,
    jobs: int,
    seed: int | None,
) -> AuditResult:
    from dprepro.audit import audit as run
    from dprepro.audit import find_case

    case = find_case(name, task, epsilon=epsilon, delta=delta)
    with Console(stderr=True).status(f"{name} {task or ''}"):
        return run(case, trials or case.trials, jobs=jobs, seed=seed)


def _run_once(
    name: str, task: TaskKind | None, epsilon: float, delta: float, seed: int | None
) -> OneRunResult:
    from dprepro.audit import audit_in_one_run, find_one_run_case

    return audit_in_one_run(find_one_run_case(name, task, epsilon=epsilon, delta=delta), seed=seed)
