"""`dprepro run --until-decided`: more splits of the cells whose verdicts these can decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from rich.console import Console

    from dprepro.experiment.config import ExperimentConfig
    from dprepro.experiment.run import Options
    from dprepro.judge.verdicts import CellVerdict, Stage
    from dprepro.papers.cells import PublishedCell

MOST = 400
"""How many splits a cell gets at most where nobody says."""
ENDING = "-until-decided"
"""Of the journal of the splits that are added, behind the name of the config."""


def run_until_decided(
    config: ExperimentConfig,
    options: Options,
    console: Console,
    most: int,
    run_one: Callable[[ExperimentConfig, Options], int],
) -> int:
    """Run a config, then more splits of its undecided cells in stages.

    Parameters
    ----------
    most
        How many splits a cell gets at most.
    run_one
        Runs one config, and returns the number of failed and unfinished tasks.

    Returns
    -------
    The number of failed and unfinished tasks of all stages.

    Raises
    ------
    DpreproError
        If the config answers to no printed cell, or cannot be given more splits.
    """
    from dprepro.cli.journals import read
    from dprepro.experiment.display import duration
    from dprepro.experiment.plan import narrow, plan
    from dprepro.judge.verdicts import doubled, judge_cells, seconds_of_a_split, stage_of
    from dprepro.papers.document import select_documents
    from dprepro.results.metrics import margins

    _refuse_unfit(config, options, most)
    assert config.published is not None
    (document,) = select_documents(config.published.paper)
    planned = narrow(plan(config, options.data_dir), None, options.methods, options.epsilons)
    asked = {(p.task.label, p.task.epsilon): config.splits for p in planned if not p.skip}
    dataset = planned[0].task.dataset
    cells = [c for c in document.cells() if (c.method, c.epsilon) in asked and c.dataset == dataset]
    if not cells:
        raise DpreproError(
            f"{config.name}: {document.paper} prints none of its cells, so that no number of "
            f"splits decides anything. `dprepro check --paper {document.paper}` shows what it has"
        )
    needed = max(document.protocol_of(c.table, c.dataset).needed for c in cells)
    if config.splits < needed:
        raise DpreproError(
            f"{config.where('splits')}: a verdict on {document.paper} takes {needed} splits, and "
            f"the config has {config.splits}. Give it {needed}; --until-decided adds more"
        )
    asked = {(c.method, c.epsilon): config.splits for c in cells}
    looks = doubled(config.splits, most)
    more = _with_more_splits(config, looks)
    failed = run_one(config, options)
    known: set[PublishedCell] = set()
    for look, following in zip(looks, (*looks[1:], None), strict=True):
        failed += run_one(more, replace(options, cells=dict(asked), methods=(), epsilons=()))
        results = read(options.results, [config.name, more.name])
        now = stage_of(judge_cells(document, results, margins(), cells), document, looks)
        for cell in (c for c in now.decided if c.published not in known):
            console.print(f"{config.name}: {_said(cell)}", soft_wrap=True)
        known |= {cell.published for cell in now.decided}
        console.print(f"{config.name}: {_in_words(now, look, most)}", soft_wrap=True)
        if following is None or not now.open:
            break
        seconds = seconds_of_a_split(results)
        left = sum(seconds[place] * (most - look) for place in now.places)
        console.print(
            f"{config.name}: on to {following} splits of what is open. All {most} would take "
            f"{duration(left)} of one processor",
            soft_wrap=True,
        )
        asked |= dict.fromkeys(now.places, following)
    return failed


def _refuse_unfit(config: ExperimentConfig, options: Options, most: int) -> None:
    if config.published is None:
        raise DpreproError(
            f"{config.where()}: --until-decided compares with a printed table, and the config "
            "names none. Add `published: {paper: PAPER, table: TABLE}`; `dprepro documents` lists "
            "the papers"
        )
    if config.published.looks:
        raise DpreproError(
            f"{config.where('published', 'looks')}: the config adds splits to those of another, "
            "after a plan of its own. Give --until-decided the config with the printed number"
        )
    if config.seed is None:
        raise DpreproError(
            f"{config.where('seed')}: --until-decided adds splits to those that have run, and "
            "without a seed these are not the first of more. Give the config a seed"
        )
    if options.splits is not None or options.fresh:
        given = "--splits" if options.splits is not None else "--fresh"
        raise DpreproError(
            f"{given} does not go with --until-decided, which goes on from the config's splits. "
            f"Leave {given} out; --most-splits says where to stop"
        )
    if most <= config.splits:
        raise DpreproError(
            f"--most-splits {most}: the config has {config.splits} splits already; give a larger "
            "number, as 400"
        )


def _with_more_splits(config: ExperimentConfig, looks: tuple[int, ...]) -> ExperimentConfig:
    """Return the config of the added splits, which stands under a name of its own."""
    assert config.published is not None
    added = config.model_copy(
        update={
            "splits": looks[-1],
            "published": config.published.model_copy(update={"looks": looks}),
            # One partition has as many folds as the config had splits.
            "folds": config.folds or (config.splits if config.evaluation == "folds" else None),
        }
    )
    return added.renamed(f"{config.name}{ENDING}")


def _said(cell: CellVerdict) -> str:
    from dprepro.results.metrics import with_level

    printed = cell.published
    splits = cell.result.splits(printed.metric) if cell.result else 0
    return (
        f"Table {printed.table}, {with_level(printed.method, printed.epsilon)}, {printed.metric}: "
        f"{cell.verdict.value} ({splits} splits)"
    )


def _in_words(now: Stage, look: int, most: int) -> str:
    total = sum(map(len, (now.decided, now.open, now.limited)))
    parts = [f"after {look} splits {len(now.decided)} of {total} printed cells are decided"]
    if now.open:
        parts.append(f"{len(now.open)} open")
    if now.limited:
        parts.append(f"{len(now.limited)} that {most} splits cannot decide")
    return ", ".join(parts)
