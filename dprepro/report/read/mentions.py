"""Which journals of a folder hold two methods, found without reading their lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from dprepro.errors import DpreproError
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


def holding_both(folder: Path, first: str, second: str) -> list[str]:
    """Return the journals of `folder` that hold both methods; if none does, those that hold one.

    Journals of hypotheses are left out; see `usual_journals`.

    Parameters
    ----------
    first, second
        Labels or names of methods.

    Returns
    -------
    list of str
        Names of journals; all of them if none holds either method.

    Raises
    ------
    DpreproError
        If the folder has no journals, or one cannot be read.
    """
    found = {path.stem: _mentioned(path, (first, second)) for path in usual_journals(folder)}
    both = [name for name, methods in found.items() if len(methods) == 2]
    return both or [name for name, methods in found.items() if methods] or list(found)


def _mentioned(path: Path, names: Sequence[str]) -> set[str]:
    """Return those of `names` that stand in a journal as the label or the method of a task."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error}") from error
    return {name for name in names if any(pattern in text for pattern in _patterns(name))}


def _patterns(name: str) -> list[bytes]:
    quoted = json.dumps(name)
    return [f'"{key}":{gap}{quoted}'.encode() for key in ("label", "method") for gap in ("", " ")]
