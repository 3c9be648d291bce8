"""What is found about a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What means, cards or configs say about a claim: whether it holds, numbers, and words.

    `is_rounded` says that it holds only because a stated bound counts up to half a unit of its last
    digit.
    """

    holds: bool
    figures: Mapping[str, float]
    text: str
    is_rounded: bool = False
