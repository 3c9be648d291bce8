"""Drawn figures, as a page places them."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class PageFigure:
    """A figure with its caption, and what the filters go by."""

    caption: str
    svg: Markup
    paper: str | None = None
    dataset: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureGroup:
    """Figures of one kind. `text` says how to read them, `notes` what is not among them."""

    title: str
    text: str
    figures: tuple[PageFigure, ...]
    notes: tuple[str, ...] = ()
