"""What every claim has: its name, its place in the document, and what it states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal

from pydantic import Field

from dprepro.published.published import PublishedCell
from dprepro.published.schema import Selector, Strict


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


class CellClaim(Claim):
    """A claim about results: cells decide it, or measured means at the places that it names."""


class FactClaim(Claim):
    """A claim that no result decides: about datasets, settings, noise, or other printed numbers."""

    @abstractmethod
    def stated(self) -> dict[str, str]:
        """Return the stated numbers by what they are, as printed."""


def half_unit(value: Decimal) -> float:
    """Return half a unit of the last digit of a number as printed."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent
