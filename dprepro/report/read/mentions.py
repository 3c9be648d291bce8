"""Which journals of a folder hold two methods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

from dprepro.report.read.results import journal_paths


def usual_journals(folder: Path) -> list[Path]:
    """Return the journals of `folder` without those of hypotheses, or those if there are no others.

    Hypotheses (the key `hypotheses` of a config) are for `dprepro forensics`.

    Raises
    ------
    DpreproError
        If the folder has no journals.
    """
    paths = journal_paths(folder)
    return [path for path in paths if not _runs_hypotheses(path)] or paths


def _runs_hypotheses(path: Path) -> bool:
    """Return what a journal's plan says; of an older one, what the built-in config of its name."""
    from dprepro.config import config_names, load_config
    from dprepro.experiment.journal import last_plan

    plan = last_plan(path)
    if plan is not None and plan.hypotheses is not None:
        return plan.hypotheses
    return path.stem in config_names() and load_config(path.stem).hypotheses


def holding_both(
    folder: Path, first: str, second: str, datasets: Collection[str] = ()
) -> list[str]:
    """Return the journals of `folder` that are needed to compare two methods, dataset by dataset.

    On each dataset these are the journals that hold both methods. Where there are none, they are
    those that hold one of the two, if each method is in one of them.

    Journals of hypotheses are left out; see `usual_journals`.

    Parameters
    ----------
    first, second
        Labels or names of methods.
    datasets
        Only these; default all. If one of them is in no journal, all are taken.

    Returns
    -------
    list of str
        Names of journals, sorted. If no dataset has both methods: those that hold either; all of
        them if none does.

    Raises
    ------
    DpreproError
        If the folder has no journals, or one cannot be read.
    """
    paths = usual_journals(folder)
    holders: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for path in paths:
        for dataset, methods in _mentioned(path, (first, second)).items():
            holders[dataset][path.stem] = methods
    wanted = holders.keys() & set(datasets) if holders.keys() >= set(datasets) else set()
    found: set[str] = set()
    for dataset in wanted or holders:
        held = holders[dataset]
        both = {name for name, methods in held.items() if len(methods) == 2}
        if len(set().union(*held.values())) == 2:
            found |= both or held.keys()
    either = {name for held in holders.values() for name in held}
    return sorted(found or either or {path.stem for path in paths})


def is_mentioned(folder: Path, name: str) -> bool:
    """Whether a journal of `folder` holds a label or a method of this name."""
    return any(_mentioned(path, [name]) for path in usual_journals(folder))


def _mentioned(path: Path, names: Sequence[str]) -> dict[str, set[str]]:
    """Return, by dataset, those of `names` that are the label or the method of a task there."""
    from dprepro.experiment.journal import read_tasks

    found: dict[str, set[str]] = defaultdict(set)
    for task in read_tasks(path):
        for name in {task.label, task.method}.intersection(names):
            found[task.dataset].add(name)
    return found
