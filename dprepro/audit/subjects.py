"""Which pair is audited: that of the method, or a general pair for all others.

The registry names the modules of all methods' cases (`registry.audit_modules`). Each has ``CASES``,
builders by the name of what they audit ("METHOD/CASE" for those beyond a method's first), and where
one run can hold many canaries ``ONE_RUN_CASES`` likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dprepro.audit.case import AuditSetting, Case, OneRunCase
from dprepro.audit.mechanisms import MECHANISMS, ONE_RUN_MECHANISMS
from dprepro.audit.pairs import KINDS, general_case
from dprepro.data.domain import TaskKind
from dprepro.methods import registry
from dprepro.runtime.errors import DpreproError, nearest

CANARIES = "canaries"
"""What METHOD/canaries is called; see `stands_for`."""


def subjects() -> list[tuple[str, TaskKind | None]]:
    """Return every private method with each of its tasks, then the mechanisms (task None).

    A method's further cases, "METHOD/CASE", follow it.
    """
    further = [name for name in _builders("CASES") if "/" in name]
    methods: list[tuple[str, TaskKind | None]] = [
        (name, task)
        for method in registry.all_methods().values()
        if method.takes_epsilon
        for name in (method.name, *(n for n in further if _method_of(n) == method.name))
        for task in sorted(method.tasks)
    ]
    return methods + [(name, None) for name in MECHANISMS]


def stands_for(name: str, subject: str) -> bool:
    """Whether a name that a user gives means this subject, too.

    METHOD means its METHOD/CASE, but for the dozens of `canaries`: METHOD/canaries means those.
    """
    method, _, case = subject.partition("/")
    if case in KINDS:
        return name in (subject, f"{method}/{CANARIES}")
    return name in (subject, method)


def one_run_names() -> list[str]:
    """Return the names that `find_one_run_case` knows."""
    return [*sorted(_builders("ONE_RUN_CASES")), *ONE_RUN_MECHANISMS]


def one_run_subjects() -> list[tuple[str, TaskKind | None]]:
    """Return each of `one_run_names` with each of its tasks; the mechanisms have task None."""
    methods: list[tuple[str, TaskKind | None]] = [
        (name, task)
        for name in sorted(_builders("ONE_RUN_CASES"))
        for task in sorted(registry.get(_method_of(name)).tasks)
    ]
    return methods + [(name, None) for name in ONE_RUN_MECHANISMS]


def find_case(
    name: str, task: TaskKind | None = None, *, epsilon: float = 1.0, delta: float = 1e-6
) -> Case:
    """Return the case of a subject, by default on the first of its tasks.

    Raises DpreproError if there is nothing private of that name, or it does not support the task.
    """
    _check_name(name, [subject for subject, _ in subjects()])
    if name in MECHANISMS and not (task and name in registry.all_methods()):
        return MECHANISMS[name](epsilon, delta)
    setting = AuditSetting(_method_of(name), _check_task(name, task), epsilon, delta)
    return _builders("CASES").get(name, general_case)(setting)


def find_one_run_case(
    name: str, task: TaskKind | None = None, *, epsilon: float = 1.0, delta: float = 1e-6
) -> OneRunCase:
    """Return the case with many canaries of a method or mechanism.

    Raises DpreproError as `find_case`, and if it has none.
    """
    _check_name(name, [*one_run_names(), *(subject for subject, _ in subjects())])
    if name in ONE_RUN_MECHANISMS:
        return ONE_RUN_MECHANISMS[name](epsilon, delta)
    builders = _builders("ONE_RUN_CASES")
    if name not in builders:
        raise DpreproError(
            f"{name} has no audit in one run; available for: {', '.join(one_run_names())}. "
            "Leave out --one-run"
        )
    return builders[name](AuditSetting(_method_of(name), _check_task(name, task), epsilon, delta))


def _check_name(name: str, known: Iterable[str]) -> None:
    allowed = list(dict.fromkeys(known))
    registry.refuse_shared(name, allowed)
    if name not in allowed:
        raise DpreproError(
            f"no private method or mechanism is called {name!r}{nearest(name, allowed) or '.'} "
            f"Allowed: {', '.join(allowed)}"
        )


def _check_task(name: str, task: TaskKind | None) -> TaskKind:
    tasks = sorted(registry.get(_method_of(name)).tasks)
    if task is not None and task not in tasks:
        raise DpreproError(f"{name} does not support {task}; it supports {', '.join(tasks)}")
    return task or tasks[0]


def _method_of(subject: str) -> str:
    return subject.partition("/")[0]


def _builders(attribute: str) -> dict[str, Callable[[AuditSetting], Any]]:
    return {
        name: build
        for module in registry.audit_modules()
        for name, build in getattr(module, attribute, {}).items()
    }
