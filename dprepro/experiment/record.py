"""A task, and the record that a finished task leaves in the journal."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dprepro.config import Evaluation
from dprepro.data import SYNTHETIC_PREFIX, says_private
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.units import ROW
from dprepro.privacy.unverified import is_unverified

Status = Literal["ok", "failed", "skipped"]

_TOKEN = "data_fingerprint and key: equal ones in two journals say that no row changed"
_EXACT: Mapping[str, tuple[str, ...]] = {
    "ok": (
        "metrics: scores on test rows, and what the method says of its own fit",
        "seconds: how long it took",
        _TOKEN,
    ),
    "failed": ("status and message: that and how it failed", _TOKEN),
    "skipped": (_TOKEN,),
}


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

    @property
    def key(self) -> str:
        """A stable identifier of 16 hex digits: equal tasks, and only those, share it."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

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
        fields = dict(vars(self))  # `asdict` copies deeply, which costs most of reading a journal
        fields["params"] = dict(self.params)
        if self.evaluation == "random":
            del fields["evaluation"]  # so that keys from before there was a choice stay valid
        if not self.tuned:
            del fields["tuned"]  # the same
        if (self.unit, self.rows_per_unit) == (ROW, 1):
            del fields["unit"], fields["rows_per_unit"]  # the same
        fields["epsilon"] = None if math.isinf(self.epsilon) else self.epsilon
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Task:
        """Read what `to_json` wrote."""
        epsilon = fields["epsilon"]
        return cls(**{**fields, "epsilon": math.inf if epsilon is None else float(epsilon)})


@dataclass(frozen=True)
class Record:
    """A finished task.

    Attributes
    ----------
    task, status
        What was run, and how it ended.
    metrics
        By name: ``auc``, ``accuracy``, ``log_loss`` or ``rmse``, ``mae``, ``r2``, and what the
        estimator says of itself (its ``figures_``); empty unless ok.
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

    @property
    def is_unverified(self) -> bool:
        """Whether it finished at a privacy level, and nothing says what it spent."""
        return self.status == "ok" and is_unverified(self.task.epsilon, self.ledger)

    @property
    def exact(self) -> tuple[str, ...]:  # noqa: D102 - see the class
        return _EXACT[self.status] if self.task.is_private else ()

    def to_json(self) -> dict[str, Any]:
        """Return one journal line as a dict; ``exact`` is in it where there is something to say."""
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
            **named,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Record:
        """Read what `to_json` wrote."""
        return cls(
            task=Task.from_json(line["task"]),
            status=line["status"],
            metrics=line["metrics"],
            seconds=line["seconds"],
            ledger=line["ledger"],
            message=line["message"],
        )
