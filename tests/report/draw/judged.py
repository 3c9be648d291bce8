"""Judged cells with a chosen normal score, for the figures that show scores alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def judged(
    score: float, *, is_different: bool, is_final: bool = True, compared: bool = True
) -> Any:
    """Return a cell of pol; figures take its score where `normal_score` is `score_of`."""
    return SimpleNamespace(
        score=score,
        verdict=SimpleNamespace(is_final=is_final, is_deviation=is_different),
        comparison=SimpleNamespace(z=3 * score) if compared else None,
        published=SimpleNamespace(dataset="pol", method=f"m{score:g}"),
    )


def score_of(cell: Any) -> float:
    """Stand in for `omnibus.normal_score`."""
    return float(cell.score)
