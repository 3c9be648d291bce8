"""The page of `dprepro report`: one HTML file that needs nothing beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from markupsafe import Markup, escape

from dprepro.report.layout.formatting import Style, heading, legend, words
from dprepro.report.page.content import Page
from dprepro.report.page.sheets import tone
from dprepro.report.web.html import render_alone
from dprepro.results.metrics import level
from dprepro.runtime.text import legible

_CODE = re.compile(r"`([^`]+)`")


def render_page(page: Page) -> str:
    """Return the page as HTML, figures inside; see `dprepro.report.web.html`."""
    values = {"page": page, "style": Style(compare=True)}
    functions: dict[str, Callable[..., Any]] = {
        "heading": heading,
        "level": level,
        "legend": partial(legend, published="Below ours the published value and"),
        "words": words,
        "identity": id,
    }
    return render_alone(
        "dprepro.report.page",
        values,
        ["page.js", "paper.js", "parts.js"],
        functions,
        {"tone": tone, "code": code},
    )


def code(text: str) -> Markup:
    """Return text as HTML, with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(legible(text)))))
