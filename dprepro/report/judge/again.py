"""What `dprepro check --fast` finds: tasks run again, recorded cells, stale explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dprepro.report.judge.rerun import RerunReport


@dataclass(frozen=True)
class Again:
    """The three comparisons.

    Attributes
    ----------
    rerun
        Of a few tasks that were run again with the journals.
    changed
        What differs from the recorded cells and verdicts, a line a cell; None where none are
        recorded.
    stale
        How many entries of the deviations file no longer apply.
    """

    rerun: RerunReport
    changed: Sequence[str] | None
    stale: int

    @property
    def passes(self) -> bool:
        """Whether nothing differs and no entry is stale."""
        return self.rerun.passes and not self.changed and not self.stale
