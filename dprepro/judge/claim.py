"""What every claim has, and what is found about one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pydantic import Field

from dprepro.papers.cells import PublishedCell
from dprepro.papers.schema import Selector, Strict


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


class Claim(Strict):
    """A statement with numbers, and its place in the document.

    `states` is the statement in our own words. `note` says how it is understood if it can be read
    in several ways.
    """

    name: str
    section: str
    states: str = Field(min_length=1)
    note: str = ""

    def selectors(self) -> list[Selector]:
        """Return the selectors of the printed cells that it is about; each must match."""
        return []

    def cells(self, printed: Sequence[PublishedCell]) -> list[PublishedCell]:
        """Return the cells of `printed` that it is about, in printed order."""
        selectors = self.selectors()
        return [cell for cell in printed if any(s.matches(cell) for s in selectors)]

    def unprinted(self, paper: str) -> list[PublishedCell]:
        """Return cells that the document does not print and that must be measured for the claim."""
        return []


def half_unit(value: Decimal) -> float:
    """Return half a unit of the last digit of a number as printed."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent
