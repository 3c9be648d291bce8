"""What a picture is printed on: its size, the size of its letters, and how fine its dots are."""

from __future__ import annotations

from dataclasses import dataclass

DPI = 200
"""Dots per inch of pictures in pixels."""
FONT = 8.0
"""Points of labels of axes."""
COLUMN, PAGE = 3.3, 7.0
"""Inches: the width of a column of a paper in two columns, and of its page."""


@dataclass(frozen=True)
class Sheet:
    """Width and height in inches, points of the labels of axes, and dots per inch.

    What is None follows from what is drawn.
    """

    width: float | None = None
    height: float | None = None
    font: float | None = None
    dpi: int = DPI

    @property
    def points(self) -> float:
        """The points of labels, by default `FONT`."""
        return self.font or FONT
