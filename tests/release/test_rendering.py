from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from dprepro.release.statement import (
    Statement,
    as_html,
    as_json,
    as_markdown,
    schema_of_fields,
    shipped_schema,
    state,
)
from tests.release.models import NAME, model, publisher
from tests.report.test_names import ODD, line


@pytest.fixture(scope="module")
def statement() -> Statement:
    return state(model(), b"the file", publisher(title=f"Title {NAME}"))


def shown(html: str) -> str:
    """Return the text that a browser shows, with single blanks."""

    class Text(HTMLParser):
        parts: list[str] = []  # noqa: RUF012 - one parser

        def handle_data(self, data: str) -> None:
            self.parts.append(data)

    parser = Text()
    parser.parts = []
    parser.feed(html)
    return " ".join(" ".join(parser.parts).split())


@pytest.mark.parametrize("name", ODD[::3])
def test_both_pages_show_a_name_of_any_content(statement: Statement, name: str) -> None:
    features = [statement.data.features[0].model_copy(update={"name": name})]
    said = statement.model_copy(
        update={
            "publisher": statement.publisher.model_copy(update={"title": name}),
            "data": statement.data.model_copy(update={"target": name, "features": features}),
        }
    )
    html = MarkdownIt("commonmark").enable("table").render(as_markdown(said))
    cells = [shown(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", html, re.DOTALL)]
    assert line(name) in cells, "a cell of its own"
    assert f"target: {line(name)}" in shown(html)
    if name.isprintable():
        assert " ".join(name.split()) in shown(as_html(said))
    assert "<script>alert" not in html + as_html(said)


def test_the_json_is_what_the_schema_of_the_package_describes(statement: Statement) -> None:
    assert shipped_schema() == json.loads(json.dumps(schema_of_fields()))
    values = json.loads(as_json(statement))
    assert Statement.model_validate_json(as_json(statement)) == statement
    assert set(values) == set(shipped_schema()["properties"]) == set(shipped_schema()["required"])


@pytest.mark.parametrize(
    "words",
    [
        "epsilon 1, delta 1e-05", "one row", "add/remove-one (unbounded differential privacy)",
        "machine has 1 earlier release of these rows.",
        "With this one they spend, for each row: epsilon 1.4 at delta 2e-05 (add/remove-one).",
        "limits what all releases spend together: epsilon 1.5, delta 3e-05.",
        "Trust model", "Algorithms and correctness", "Side channels", "NIST SP 800-226",
        "dp_accounting 0.6.0", "dprepro 0.2.0, commit abc", "known from the form", NAME,
        "0 to 120 years", "0.44", "date unknown, version unknown", "Unprotected quantities",
        "Release frequency", "with the labels no and yes",
        "at most 2.72 times (e^epsilon) as often",
        "Noise from ChaCha20",
    ],
)  # fmt: skip
def test_both_pages_show_it(statement: Statement, words: str) -> None:
    assert words in shown(as_html(statement))
    assert words in shown(MarkdownIt().enable("table").render(as_markdown(statement)))


def test_both_pages_say_the_same(statement: Statement) -> None:
    html = re.sub(r"<(title|style)>.*?</\1>", "", as_html(statement), flags=re.DOTALL)
    page = shown(html).replace(" ", "")
    text = shown(MarkdownIt().enable("table").render(as_markdown(statement))).replace(" ", "")
    assert page == text


def test_names_cannot_write_html_or_tables(statement: Statement) -> None:
    html = as_html(statement)
    assert "<i>" not in html
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")
    rows = MarkdownIt().enable("table").render(as_markdown(statement))
    assert "<i>" not in rows
    assert "<em>" not in rows


def test_a_guarantee_that_does_not_hold_is_said_first() -> None:
    broken = state(model(seed=3), b"", publisher())
    for text in (as_markdown(broken), as_html(broken)):
        assert "does not hold" in text.partition("released, mechanism")[0]
        assert "times as likely" not in text
        assert "fixed seed" in text


def test_no_audit_is_said() -> None:
    alone = state(model(), b"", publisher(audits=[]))
    assert "added no record of an audit of the method" in as_markdown(alone)
    assert "added no record of an audit of the method" in as_html(alone)
