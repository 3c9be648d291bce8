"""What an audit looks at: a pair of neighbouring datasets, what runs on them, what is observed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dprepro.audit.distinguishers import Ceiling, Rule
from dprepro.data.domain import Domain, NumericFeature, TaskKind
from dprepro.data.encode import ENCODINGS
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.privacy.ledger import Ledger

Table = tuple[pd.DataFrame, np.ndarray]
"""X and y."""
Encoded = tuple[Any, np.ndarray]
"""X in the encoding that a method wants, and y."""


@dataclass(frozen=True)
class Case:
    """An audit by many runs on either of two neighbouring datasets.

    Attributes
    ----------
    subject, task
        What is audited: a method's or a mechanism's name, and the kind of task (None for a
        mechanism).
    neighbours
        The pair, in words.
    fit
        (present, seed) -> the outcome of one run, with the canary or without it. The outcome has
        the run's `ledger_`, whose guarantee is what the audit tests.
    observe
        Outcome -> float64 (d,), finite: what the distinguisher sees of it. Only what is released.
    trials
        How many runs make a fair audit where nobody asks for another number: many where worlds
        differ little, few where they cannot be mistaken or runs are slow.
    rule
        The distinguisher, where what is observed says by itself how to guess. None lets the audit
        learn one.
    ceiling
        One run's outcome -> the most that any distinguisher could show on this pair. None lets the
        audit estimate it where all answers are Gaussian.
    runs
        Whose runs it looks at. Cases of the same `runs` and task have the same `fit`, `observe` and
        `trials`, so that the runs are made once. Empty: they are called by the subject.
    columns
        Which of the observed numbers it looks at; None for all.
    entry
        Whose spending is audited: that of this entry of the ledger alone; None for all of it.
    """

    subject: str
    task: TaskKind | None
    neighbours: str
    fit: Callable[[bool, int | None], Any]
    observe: Callable[[Any], np.ndarray]
    trials: int = 4000
    rule: Rule | None = None
    ceiling: Callable[[Any], Ceiling] | None = None
    runs: str = ""
    columns: tuple[int, ...] | None = None
    entry: int | None = None

    @property
    def runs_of(self) -> str:
        """The name of its runs: `runs`, or the subject."""
        return self.runs or self.subject

    def audited_part(self, ledger: Ledger) -> Ledger:
        """Return the ledger of a run, or that of one entry, which states what that entry spends."""
        if self.entry is None:
            return ledger
        part = replace(ledger, entries=[ledger.entries[self.entry]])
        return replace(part, epsilon=part.spent_epsilon())


@dataclass(frozen=True)
class OneRunCase:
    """An audit by one run with many canaries, each put in by its own coin.

    Attributes
    ----------
    canaries
        How many.
    run
        (coins, bool (canaries,), seed) -> scores, float64 (canaries,), and the run's ledger. The
        larger a score, the likelier its canary is in; 0 is the middle, known beforehand. The noise
        of different scores is independent.
    """

    subject: str
    task: TaskKind | None
    neighbours: str
    canaries: int
    run: Callable[[np.ndarray, int | None], tuple[np.ndarray, Ledger]]


@dataclass(frozen=True)
class AuditSetting:
    """What a case is asked to audit: a method by name, on a kind of task, at a budget."""

    method: str
    task: TaskKind
    epsilon: float
    delta: float


@dataclass(frozen=True)
class MethodPair:
    """Two tables that are neighbours, and the method that is fitted to one of them.

    Attributes
    ----------
    domain
        Public; covers both tables.
    present, absent
        The tables with the canary and without it.
    params
        Parameters of the method.
    """

    setting: AuditSetting
    domain: Domain
    present: Table
    absent: Table
    params: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, present: bool, seed: int | None) -> Any:
        """Return the method, fitted to one of the tables as the runner would."""
        encoded = self.encoded[0 if present else 1]
        return _fit_encoded(self.setting, self.domain, encoded, seed, self.params)

    def case(
        self, neighbours: str, observe: Callable[[Any], np.ndarray], *, name: str = "", **more: Any
    ) -> Case:
        """Return its case, "METHOD" or "METHOD/NAME"; `more` are further fields of `Case`."""
        subject = f"{self.setting.method}/{name}" if name else self.setting.method
        return Case(subject, self.setting.task, neighbours, self.fit, observe, **more)

    @cached_property
    def encoded(self) -> tuple[Encoded, Encoded]:
        """Both tables as the method wants them: encoding takes as long as many a fit."""
        present, absent = (
            _encode(self.setting, self.domain, table) for table in (self.present, self.absent)
        )
        return present, absent


def fit_method(
    setting: AuditSetting, domain: Domain, table: Table, seed: int | None, params: Mapping[str, Any]
) -> Any:
    """Return a method of the registry, fitted to a table in the encoding it wants."""
    return _fit_encoded(setting, domain, _encode(setting, domain, table), seed, params)


def _encode(setting: AuditSetting, domain: Domain, table: Table) -> Encoded:
    X, y = table
    return ENCODINGS[registry.get(setting.method).encoding](domain).transform(X), y


def _fit_encoded(
    setting: AuditSetting,
    domain: Domain,
    rows: Encoded,
    seed: int | None,
    params: Mapping[str, Any],
) -> Any:
    method = registry.get(setting.method)
    X, y = rows
    model = method.build(
        Setting(setting.task, setting.epsilon, setting.delta, domain, seed), **params
    )
    with warnings.catch_warnings():
        # Tiny, extreme tables make solvers complain; what the model then is, is what is audited.
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def categories(
    codes: Sequence[int] | np.ndarray, names: Sequence[str]
) -> pd.api.extensions.ExtensionArray:
    """Return a categorical column from codes."""
    return pd.Categorical.from_codes(np.asarray(codes, dtype=np.int64), pd.Index(list(names)))


def line(task: TaskKind) -> Domain:
    """Return a domain of one feature "x" from 0 to 1, and two labels, three, or such a target."""
    labels = {"binary": ("0", "1"), "multiclass": ("0", "1", "2")}
    return Domain((NumericFeature("x", 0.0, 1.0),), labels.get(task, (0.0, 1.0)))


def table(x: np.ndarray, y: np.ndarray, canary: tuple[float, int] | None) -> Table:
    """Return a table of one feature "x" with the canary's (x, y), if any, as last row."""
    if canary is not None:
        x, y = np.append(x, canary[0]), np.append(y, canary[1])
    return pd.DataFrame({"x": x}), y
