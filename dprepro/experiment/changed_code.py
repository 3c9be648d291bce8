"""Methods of one's own whose code has changed since records were made, though not their version.

A record is kept for as long as its method has the same version. Whether its results are still those
of the method, only the author knows: a comment changes the code, too.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dprepro.experiment.record import Task
from dprepro.runtime.errors import DpreproWarning
from dprepro.runtime.terminal import counted

TaskLedger = tuple[Task, Mapping[str, Any] | None]
"""The task of a record, of whichever split, and what the record keeps of its ledger."""


@dataclass(frozen=True)
class ChangedCode:
    """A method of one's own, and of how many records of its version the code was another."""

    method: str
    version: int
    records: int

    @property
    def in_words(self) -> str:
        """What there is to do; the name of the method stands before it."""
        return (
            f"its code differs from that of {counted(self.records, 'kept record')} of version "
            f"{self.version}. If that changes results, raise `version` in its entry, or run with "
            "--fresh"
        )


def changed_code(found: Iterable[TaskLedger]) -> list[ChangedCode]:
    """Return the methods of one's own whose code differs from that of records of the same version.

    Nothing is known of a method that is not in the folder of ``$DPREPRO_METHODS``, and of records
    without a ledger, as those of non-private methods: it names the code.

    Raises DpreproError if a record names a code, and the user's methods cannot be loaded.
    """
    from dprepro.methods.registry import all_methods  # late: what shows results needs no method

    codes = Counter(
        (task.method, task.method_version, str(ledger["code"]))
        for task, ledger in found
        if ledger and ledger.get("code")
    )
    methods = all_methods() if codes else {}
    changed: Counter[tuple[str, int]] = Counter()
    for (name, version, code), count in codes.items():
        method = methods.get(name)
        if method and method.code and method.version == version and method.code != code:
            changed[name, version] += count
    return [ChangedCode(*place, count) for place, count in changed.items()]


def warn_of_changed_code(found: Iterable[TaskLedger]) -> None:
    """Warn of each method that `changed_code` returns. Raises DpreproError as that does."""
    for changed in changed_code(found):
        warnings.warn(f"{changed.method}: {changed.in_words}", DpreproWarning, stacklevel=2)
