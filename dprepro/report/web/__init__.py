"""One HTML file that needs nothing beside it: its template, styles, script and policy."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dprepro import __version__
from dprepro.runtime.text import legible

_BASE = "dprepro.report.web"


def render_alone(
    package: str,
    values: Mapping[str, Any],
    scripts: Sequence[str],
    functions: Mapping[str, Callable[..., Any]] | None = None,
    filters: Mapping[str, Callable[..., str]] | None = None,
) -> str:
    """Return a page as HTML: styles and scripts inside, no address of anything outside.

    Every text is escaped, and the page's own policy lets no script run but the one it ships, known
    by its hash. The same values give the same text. The folder ``template`` of `package` holds
    ``page.html``, ``page.css`` and the `scripts`, put together in this order. The template gets
    `values`, `css`, `script`, `policy` and `version`, and may call `functions` and `filters`.
    """
    environment = Environment(
        loader=PackageLoader(package, "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_legible,
    )
    environment.globals.update(functions or {})
    environment.filters.update(filters or {})
    script = "".join(_read(package, name) for name in scripts)
    return environment.get_template("page.html").render(
        **values,
        css=Markup(_read(_BASE, "base.css") + _read(package, "page.css")),
        script=Markup(script),
        policy=_policy(script),
        version=__version__,
    )


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _legible(value: Any) -> Any:
    """Replace what no document may hold, such as control characters, in text of other people."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(package: str, name: str) -> str:
    return resources.files(package).joinpath("template", name).read_text(encoding="utf-8")
