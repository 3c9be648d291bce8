"""Judged cells with a chosen normal score, for the figures that show scores alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dprepro.judge.verdicts import Verdict


def judged(
    score: float, *, is_different: bool, is_final: bool = True, compared: bool = True
) -> Any:
    """Return a cell of pol; figures take its score where `normal_score` is `score_of`.

    Cells that are not different are equivalent where their score is positive, else inconclusive.
    """
    verdict = Verdict.EQUIVALENT if score > 0 else Verdict.INCONCLUSIVE
    verdict = Verdict.WORSE if is_different else verdict
    verdict = verdict if is_final else Verdict.INCOMPLETE
    return SimpleNamespace(
        score=score,
        verdict=verdict,
        comparison=SimpleNamespace(z=3 * score) if compared else None,
        published=SimpleNamespace(dataset="pol", method=f"m{score:g}"),
    )


def score_of(cell: Any) -> float:
    """Stand in for `omnibus.normal_score`."""
    return float(cell.score)
