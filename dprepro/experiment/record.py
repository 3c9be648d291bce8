"""A task, and the record that a finished task leaves in the journal."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, get_args

from dprepro.data import SYNTHETIC_PREFIX, says_private
from dprepro.experiment.config import Evaluation
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.guarantee_status import is_unverified
from dprepro.privacy.units import ROW

Status = Literal["ok", "failed", "skipped"]

_TOKEN = "data_fingerprint and key: equal ones in two journals say that no row changed"
_REASONS = ("absent: why a metric cannot be had of these rows",)
_EXACT: Mapping[str, tuple[str, ...]] = {
    "ok": (
        "metrics: scores on test rows, and what the method says of its own fit",
        "seconds: how long it took",
        _TOKEN,
    ),
    "failed": ("status and message: that and how it failed", _TOKEN),
    "skipped": (_TOKEN,),
}


_STATUSES = get_args(Status)
_EVALUATIONS = get_args(Evaluation)
_NUMBER = (float, int)
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(
        ("dataset", "method", "label", "domain", "data_fingerprint", "evaluation", "unit"), (str,)
    ),
    **dict.fromkeys(("split", "method_version", "rows_per_unit"), (int,)),
    **dict.fromkeys(("delta", "test_share"), _NUMBER),
    "params": (dict,),
    "epsilon": (*_NUMBER, type(None)),
    "seed": (int, type(None)),
    "tuned": (bool,),
}
_FIELDS = frozenset(
    ("kind", "key", "task", "status", "metrics", "seconds", "ledger", "message", "absent", "exact")
)
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_SPLIT = '"split":'
_MOST_KNOWN = 10_000
_known: dict[str, tuple[str, str]] = {}
"""By all fields of a task but the split, its canonical JSON before and after the split.

The tasks of a cell share it: making it anew for each would be a fifth of reading a journal.
"""


@dataclass(frozen=True)
class Task:
    """One method on one split of one dataset at one privacy level.

    `epsilon` is ``inf`` and `delta` 0.0 for non-private methods. `seed` is the config's seed
    (None: the operating system's entropy); the task's own seed derives from it. `evaluation` is
    how test rows are chosen (see `dprepro.experiment.splits`); `test_share` is then 1 / number of
    folds, or 0 for the donors' own test set, the same in every split. `tuned`: the config's
    parameters were chosen by `dprepro tune`, as its `tuned_on` says. `unit` is whose epsilon it is:
    "row", or the card's column; then at most `rows_per_unit` rows of each unit train.
    """

    dataset: str
    method: str
    label: str
    params: Mapping[str, Any]
    epsilon: float
    delta: float
    split: int
    seed: int | None
    domain: Literal["public", "observed"]
    test_share: float
    method_version: int
    data_fingerprint: str
    evaluation: Evaluation = "random"
    tuned: bool = False
    unit: str = ROW
    rows_per_unit: int = 1

    @property
    def budget(self) -> PrivacyBudget:
        """The stated epsilon and delta."""
        return PrivacyBudget(self.epsilon, self.delta)

    @cached_property
    def key(self) -> str:
        """A stable identifier of 16 hex digits: equal tasks, and only those, share it.

        It is kept: commands ask for the keys of all records of all journals several times.
        """
        before, after = self._around_split()
        return hashlib.sha256(f"{before}{self.split}{after}".encode()).hexdigest()[:16]

    @property
    def cell(self) -> str:
        """All fields but the split, as a string: tasks of one cell share it, and no others."""
        return "".join(self._around_split())

    def _around_split(self) -> tuple[str, str]:
        """Return the canonical JSON of `to_json` before and after the number of the split."""
        said = repr([vars(self)[name] for name in _BUT_THE_SPLIT])
        found = _known.get(said)
        if found is None:
            # Behind the split stand numbers and one string, whose quotes are escaped.
            text, _, rest = _canonical(self.to_json()).rpartition(_SPLIT)
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            found = _known[said] = f"{text}{_SPLIT}", rest.removeprefix(str(self.split))
        return found

    @property
    def is_synthetic(self) -> bool:
        """Whether it ran on a stand-in for data that nobody released."""
        return self.data_fingerprint.startswith(SYNTHETIC_PREFIX)

    @property
    def is_private(self) -> bool:
        """Whether it ran on private rows, the donors' own test rows included."""
        return says_private(self.data_fingerprint)

    def to_json(self) -> dict[str, Any]:
        """Return a dict that strict JSON can hold: an infinite epsilon becomes None."""
        values = dict(vars(self))  # `asdict` copies deeply, which costs most of reading a journal
        values.pop("key", None)  # no field: `key` is kept there
        values["params"] = dict(self.params)
        if self.evaluation == "random":
            del values["evaluation"]  # so that keys from before there was a choice stay valid
        if not self.tuned:
            del values["tuned"]  # the same
        if (self.unit, self.rows_per_unit) == (ROW, 1):
            del values["unit"], values["rows_per_unit"]  # the same
        values["epsilon"] = None if math.isinf(self.epsilon) else self.epsilon
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Task:
        """Read what `to_json` wrote.

        Raises
        ------
        KeyError, TypeError, ValueError
            If a field is missing, unknown, of another type, or beyond what a task can say.
        """
        for name, value in values.items():
            if type(value) not in _TYPES[name]:
                raise TypeError(f"{name} is {value!r}")
        epsilon = values["epsilon"]
        task = cls(**{**values, "epsilon": math.inf if epsilon is None else float(epsilon)})
        if not (
            task.epsilon > 0
            and 0 <= task.delta < 1
            and 0 <= task.test_share < 1
            and task.split >= 0
            and task.rows_per_unit >= 1
            and task.domain in ("public", "observed")
            and task.evaluation in _EVALUATIONS
        ):
            raise ValueError("a value of the task is beyond what tasks can say")
        return task


_BUT_THE_SPLIT = tuple(each.name for each in fields(Task) if each.name != "split")


@dataclass(frozen=True)
class Record:
    """A finished task.

    Attributes
    ----------
    task, status
        What was run, and how it ended.
    metrics
        By name: those of `dprepro.experiment.metrics.METRICS`, those that the config asks for, and
        what the estimator says of itself (its ``figures_``); empty unless ok. Records of earlier
        versions have fewer.
    absent
        By name of a metric that the config asks for and that cannot be had, the reason.
    seconds
        Wall time by phase (``fit``, ``predict``); the only part that differs between two runs.
    ledger
        `Ledger.summary()` of the fitted estimator; None for non-private methods.
    message
        The error (failed) or the reason (skipped), else empty.
    exact
        In words, what of it is an exact function of private rows, which no epsilon covers; empty
        for public data.
    """

    task: Task
    status: Status
    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    ledger: Mapping[str, Any] | None = None
    message: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)

    def lacks(self, metrics: Collection[str]) -> list[str]:
        """Return which of `metrics` a finished record says nothing of, not even why."""
        if self.status != "ok":
            return []
        return [name for name in metrics if name not in self.metrics and name not in self.absent]

    @property
    def is_unverified(self) -> bool:
        """Whether it finished at a privacy level, and nothing says what it spent."""
        return self.status == "ok" and is_unverified(self.task.epsilon, self.ledger)

    @property
    def exact(self) -> tuple[str, ...]:  # noqa: D102 - see the class
        if not self.task.is_private:
            return ()
        return (*_EXACT[self.status], *(_REASONS if self.absent else ()))

    def to_json(self) -> dict[str, Any]:
        """Return one journal line as a dict; ``exact`` is in it where there is something to say."""
        absent = {"absent": dict(self.absent)} if self.absent else {}
        named = {"exact": list(self.exact)} if self.exact else {}
        return {
            "kind": "record",
            "key": self.task.key,
            "task": self.task.to_json(),
            "status": self.status,
            "metrics": dict(self.metrics),
            "seconds": {k: round(v, 4) for k, v in self.seconds.items()},
            "ledger": self.ledger,
            "message": self.message,
            **absent,
            **named,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Record:
        """Read what `to_json` wrote.

        Raises
        ------
        KeyError, TypeError, ValueError
            If a field is missing, unknown, of another type or value, or if the key is not the
            task's.
        """
        if unknown := line.keys() - _FIELDS:
            raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
        record = cls(
            task=Task.from_json(line["task"]),
            status=line["status"],
            metrics=line["metrics"],
            seconds=line["seconds"],
            ledger=line["ledger"],
            message=line["message"],
            absent=line.get("absent", {}),
        )
        if record.status not in _STATUSES:
            raise ValueError(f"status is {record.status!r}")
        for figures in (record.metrics, record.seconds):
            for name, value in figures.items():
                if type(value) not in _NUMBER or not math.isfinite(value):
                    raise ValueError(f"{name} is {value!r}")
        if record.ledger is not None and type(record.ledger) is not dict:
            raise TypeError("ledger is no object")
        if type(record.message) is not str or type(record.absent) is not dict:
            raise TypeError("message is no text, or absent no object")
        if line["key"] != record.task.key:
            raise ValueError(f"its key is {line['key']!r}, and that of its task {record.task.key}")
        return record
