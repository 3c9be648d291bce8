"""The page of `dprepro report`: one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dprepro import __version__
from dprepro.report.judge.verdicts import Verdict
from dprepro.report.layout.words import Style, heading, legend, words
from dprepro.report.levels import level
from dprepro.report.page.content import Page
from dprepro.report.page.sheets import tone
from dprepro.report.text import legible

_PACKAGE = "dprepro.report.page"


def render_page(page: Page) -> str:
    """Return the page as HTML: styles, script and figures inside, no address of anything outside.

    Every text is escaped, and the page's own policy lets no script run but the one it ships, known
    by its hash. The same content gives the same text.
    """
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_legible,
    )
    environment.filters["tone"] = tone
    environment.globals.update(heading=heading, level=level, legend=legend, words=words)
    script = _read("page.js")
    return environment.get_template("page.html").render(
        page=page,
        style=Style(compare=True),
        verdicts=list(Verdict),
        css=Markup(_read("page.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
    )


def _legible(value: Any) -> Any:
    """Replace what no document may hold, such as control characters, in text from journals."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("template", name).read_text(encoding="utf-8")
