"""The page of `dprepro report`: one HTML file that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.report.layout.words import Style, heading, legend, words
from dprepro.report.levels import level
from dprepro.report.page.content import Page
from dprepro.report.page.sheets import tone
from dprepro.report.web.html import render_alone


def render_page(page: Page) -> str:
    """Return the page as HTML, figures inside; see `dprepro.report.web.html`."""
    values = {"page": page, "style": Style(compare=True)}
    functions: dict[str, Callable[..., Any]] = {
        "heading": heading,
        "level": level,
        "legend": legend,
        "words": words,
        "identity": id,
    }
    return render_alone("dprepro.report.page", values, ["page.js"], functions, {"tone": tone})
