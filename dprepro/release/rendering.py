"""A statement as text: Markdown, HTML and JSON. The same statement gives the same bytes."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dprepro.privacy.sensitivity import Adjacency
from dprepro.release.statement import (
    Statement,
    factor,
    mechanism_in_words,
    neighbours_in_words,
    number,
    releases_in_words,
    spent_in_words,
    unit_in_words,
)
from dprepro.runtime.text import markdown

_PACKAGE = "dprepro.release"
SCHEMA = "statement.schema.json"


def as_json(statement: Statement) -> str:
    """Return the statement as JSON; `schema` describes it."""
    values = statement.model_dump(mode="json")
    if not statement.privacy.is_authors_word:
        del values["privacy"]["is_authors_word"]
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def as_markdown(statement: Statement) -> str:
    """Return the statement as a page of Markdown. Names and notes of a card are escaped."""
    return _environment(False).get_template("statement.md").render(_context(statement))


def as_html(statement: Statement) -> str:
    """Return the statement as one HTML file, with no script and no address of anything outside."""
    return _environment(True).get_template("statement.html").render(_context(statement))


def schema() -> dict[str, Any]:
    """Return the JSON schema of statements, as the package ships it."""
    found: dict[str, Any] = json.loads((resources.files(_PACKAGE) / SCHEMA).read_text("utf-8"))
    return found


def schema_of_fields() -> dict[str, Any]:
    """Return the JSON schema that follows from the fields of `Statement`."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return draft | Statement.model_json_schema(mode="serialization")


def _environment(is_html: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "template"),
        autoescape=is_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=None if is_html else _shown,
    )
    environment.filters |= {
        "number": number,
        "factor": factor,
        "domain": _domain,
        "g": _short,
        "mechanism": mechanism_in_words,
        "sentence": _sentence,
    }
    return environment


def _context(statement: Statement) -> dict[str, Any]:
    privacy = statement.privacy
    return {
        "s": statement,
        "p": privacy,
        "unit": unit_in_words(privacy.unit, privacy.rows_per_unit),
        "certain": f"a certain {privacy.unit}",
        "neighbours": neighbours_in_words(Adjacency(privacy.relation), privacy.unit),
        "spent": spent_in_words(privacy.unit, Adjacency(privacy.relation), privacy.delta),
        "of": statement.publisher,
        "t": statement.publisher.together,
        "releases": releases_in_words(
            statement.publisher.earlier_releases, statement.publisher.other_people
        ),
        "registry": [
            (name.replace("_", " ").capitalize(), value) for name, value in statement.registry
        ],
    }


def _shown(value: Any) -> Any:
    return markdown(value) if isinstance(value, str) else value


def _domain(feature: Any) -> str:
    if feature.bounds is not None:
        lower, upper = feature.bounds
        return f"{lower:g} to {upper:g} {feature.measured_in or ''}".strip()
    return ", ".join(f'"{category}"' for category in feature.categories or ())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(value: float) -> str:
    return f"{value:.4g}"
