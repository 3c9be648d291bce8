"""Samples of configs that were run again: for readers, for programs, and as CI services read it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from dprepro.judge.rerun import Mismatch, Repeated, place_of
from dprepro.report.ci_formats import Case, markdown_outcome
from dprepro.report.findings import Finding
from dprepro.report.rows import rerun_json
from dprepro.report.short import Screen, outcome_style
from dprepro.results.margins import level
from dprepro.runtime.terminal import Renderable, below, counted
from dprepro.runtime.text import in_short, markdown

_FEW_METRICS = 3
_MISSING = (
    "the config asks for another task now: its settings, its data or the version of the method "
    "changed. `dprepro run` with the config makes new records"
)


def passes_again(found: Sequence[Repeated]) -> bool:
    """Whether every task of every sample gives what was recorded."""
    return all(one.rerun.passes for one in found)


def outcome_of_rerun(found: Sequence[Repeated]) -> str:
    """Return how the check ended, in a line."""
    total = sum(len(one.sample.tasks) for one in found)
    failed = sum(len(_differing(one)) + len(one.rerun.missing) for one in found)
    ended = "Check passed" if passes_again(found) else "Check failed"
    names = in_short([one.sample.config for one in found])
    (tolerance,) = {one.tolerance for one in found}
    within = f"within {tolerance:g}" if tolerance else "to the last digit"
    return (
        f"{ended}: of {counted(total, 'task')} of {names} that were run again, {total - failed} "
        f"gave the metrics of their records {within}."
    )


def sampled_in_words(found: Repeated) -> str:
    """Return what of a config was run again, and what was not compared."""
    sample = found.sample
    said = (
        f"{sample.config}: splits 0 and 1 of each dataset and method, at its lowest and "
        f"highest epsilon: {len(sample.tasks)} of {counted(sample.finished, 'finished task')}. "
        f"Largest difference {found.rerun.largest:.2g}, allowed {found.tolerance:g}."
    )
    others = [name for name, most in found.rerun.tolerances.items() if most == math.inf]
    if others:
        said += (
            f" Finished, and not compared: {', '.join(others)}, whose solver stops before it "
            "converges, so that the processor decides what it finds."
        )
    return said


def findings_of_rerun(found: Sequence[Repeated]) -> Iterator[Finding]:
    """Yield a finding for each task that differs: the check fails for each."""
    for one in found:
        for mismatches in _differing(one).values():
            task = mismatches[0].record.task
            yield Finding(True, f"differs: {place_of(task)}", _in_words(mismatches))
        for record in one.rerun.missing:
            yield Finding(True, f"not asked for: {place_of(record.task)}", _MISSING)


def advice_of_rerun(found: Sequence[Repeated]) -> str:
    """Return what may be the cause of a difference, and what to do; empty without any."""
    mismatches = [mismatch for one in found for mismatch in one.rerun.mismatches]
    if not mismatches:
        return ""
    versions = list(dict.fromkeys(line for one in found for line in one.versions))
    said = (
        f"Since then changed: {'; '.join(versions)}. Other versions and processors can move the "
        "last digits."
        if versions
        else "No version and no machine that the journal states differs: look for a change of the "
        "code, or of the records."
    )
    if all(math.isnan(mismatch.fresh) for mismatch in mismatches):
        return said
    return f"{said} --tolerance 1e-9 allows differences up to that."


def _differing(found: Repeated) -> dict[str, list[Mismatch]]:
    """Return the metrics that differ, by the key of their task."""
    tasks: dict[str, list[Mismatch]] = {}
    for mismatch in found.rerun.mismatches:
        tasks.setdefault(mismatch.record.task.key, []).append(mismatch)
    return tasks


def _in_words(mismatches: Sequence[Mismatch]) -> str:
    record = mismatches[0].record
    if record.status != "ok":
        return f"{record.status} now: {record.message}"
    said = "; ".join(one.in_words("recorded") for one in mismatches[:_FEW_METRICS])
    more = len(mismatches) - _FEW_METRICS
    return f"{said}; and {counted(more, 'more metric')}" if more > 0 else said


def screen_of_rerun(found: Sequence[Repeated]) -> Renderable:
    """Return the check in one screen."""
    head = Text(outcome_of_rerun(found), outcome_style(passes_again(found)))
    listed = [Text(sampled_in_words(one), "dim") for one in found]
    advice = advice_of_rerun(found)
    foot = [Text(advice, "dim")] if advice else []
    return Screen([head], listed, list(findings_of_rerun(found)), foot)


def details_of_rerun(found: Sequence[Repeated]) -> Renderable:
    """Return the check with every task that differs."""
    advice = advice_of_rerun(found)
    return below(
        *(Text(sampled_in_words(one), "dim") for one in found),
        *(Text(f"{one.title}: {one.text}") for one in findings_of_rerun(found)),
        *([Text(advice, "dim")] if advice else []),
        Text(outcome_of_rerun(found), outcome_style(passes_again(found))),
    )


def markdown_of_rerun(found: Sequence[Repeated]) -> str:
    """Return the check for ``$GITHUB_STEP_SUMMARY``."""
    told = list(findings_of_rerun(found))
    parts = list(markdown_outcome(outcome_of_rerun(found), passes_again(found), told))
    parts += [markdown(sampled_in_words(one)) for one in found]
    return "\n\n".join([*parts, *filter(None, [markdown(advice_of_rerun(found))])])


def cases_of_rerun(found: Sequence[Repeated]) -> Iterator[Case]:
    """Yield a test case for each task, a suite for each config."""
    for one in found:
        config, differing = one.sample.config, _differing(one)
        missing = {record.task.key for record in one.rerun.missing}
        for task in one.sample.tasks:
            words = _in_words(differing[task.key]) if task.key in differing else ""
            yield Case(
                config,
                f"{config}.{task.dataset}",
                f"{task.label}, ε {level(task.epsilon)}, split {task.split}",
                words,
                failure=words or (_MISSING if task.key in missing else ""),
            )


def json_of_rerun(found: Sequence[Repeated]) -> dict[str, Any]:
    """Return the check as what strict JSON can hold."""
    return {
        "passes": passes_again(found),
        "configs": [
            {
                "config": one.sample.config,
                "tolerance": one.tolerance,
                "tasks": len(one.sample.tasks),
                "finished": one.sample.finished,
                "rerun": rerun_json(one.rerun),
                "versions": list(one.versions),
            }
            for one in found
        ],
    }
