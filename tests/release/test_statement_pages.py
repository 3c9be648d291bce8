"""Both pages of a statement say what its fields say, and say the same."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from dprepro.privacy.gdp import epsilon_of
from dprepro.release.statement import Statement, state
from dprepro.release.statement_pages import as_html, as_markdown, gaussian_mu, sections
from tests.release.ledgers import gaussian_ledger
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


@pytest.mark.parametrize(
    "words",
    [
        "epsilon 1, delta 1e-05", "one row", "one with and one without a certain row",
        "machine has 1 earlier release of these rows.", "released on 2026-11-22",
        "With this one they spend, for each row: epsilon 1.4 at delta 2e-05 (add/remove-one).",
        "limits what all releases spend together: epsilon 1.5, delta 3e-05.",
        "Trust model", "whole numbers, so no rounding", "Side channels", "NIST SP 800-226",
        "Data security and access", "nothing was measured", "unbounded differential privacy",
        "dp_accounting 0.6.0", "dprepro 0.2.0, commit abc", "known from the form", NAME,
        "0 to 120 years", "0.44", "date unknown, version unknown",
        "with the labels no and yes", "at most 2.72 times (e^epsilon) what it would be",
        "Noise from ChaCha20", "the card does not say",
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
        assert "does not hold" in text.partition("What it does not guarantee")[0]
        assert "e^epsilon" not in text
        assert "shows only a limited amount" not in text
        assert "fixed seed" in text


def test_what_is_on_record_of_audits_is_said() -> None:
    alone = state(model(), b"", publisher(audits=[]))
    assert "No audit of dp-ebm-plus, version 10 is on record" in " ".join(as_html(alone).split())
    (unknown,) = publisher().audits
    of_part = unknown.model_copy(update={"subject": "dp-ebm-plus/epochs", "epsilon": 0.5})
    said = as_markdown(state(model(), b"", publisher(audits=[unknown, of_part])))
    assert "dp-ebm-plus/epochs showed most of what is stated: epsilon 0.44 at least, of 0.5" in said
    assert "It is not on record which version was audited" in said
    known = unknown.model_copy(update={"method_version": 10})
    said = as_markdown(state(model(), b"", publisher(audits=[of_part, known])))
    assert "dp-ebm-plus showed most of what is stated: epsilon 0.44 at least, of 1" in said
    assert "not on record which" not in said


def test_an_assessment_of_anonymity_gets_evidence_and_no_conclusion() -> None:
    kept, broken = (state(model(seed=seed), b"", publisher()) for seed in (None, 3))
    for text in (as_markdown(kept), as_html(kept)):
        for risk in ("Singling out:", "Linkability:", "Inference:", "No legal conclusion:"):
            assert risk in text
        assert "by epsilon 1 and delta 1e-05 at most" in re.sub("<[^>]*>", "", text)
    assert "nothing follows from it for anonymity" in as_markdown(broken)
    assert "Singling out" not in as_markdown(broken)


def test_the_first_page_has_one_epsilon() -> None:
    found = state(model(), b"", publisher(earlier_releases=3))
    first, *others = sections(found)
    assert first.heading == ""
    (table, responsible) = (block for block in first.blocks if block.kind == "table")
    assert table.rows[0] == ("Epsilon", "1")
    assert [row[0] for row in table.rows].count("Epsilon") == 1
    assert dict(responsible.rows)["To be used until"].startswith("the card does not say")
    assert sum(len(part.blocks) for part in others) > len(first.blocks)


def test_the_guarantee_leaves_out_a_number_of_rows_that_is_public() -> None:
    said = "somebody who knows all other rows could count them"
    assert said in as_markdown(state(model(), b"", publisher(rows=500)))
    assert said not in as_markdown(state(model(), b"", publisher(rows=None)))


def test_what_the_card_says_stands_on_the_first_page() -> None:
    told = {
        "curators": ["A clinic"], "intended_use": "beds", "region": "USA", "contact": "c@d.example",
        "until": "2027", "withdrawal": "fitted anew", "description": "A model of stays",
        "justification": "by the board",
    }  # fmt: skip
    first = sections(state(model(), b"", publisher(deployment=told)))[0]
    said = [
        cell
        for block in first.blocks
        if block.kind == "table"
        for row in block.rows
        for cell in row
    ]
    assert {str(*value) if isinstance(value, list) else value for value in told.values()} <= {*said}
    assert not [cell for cell in said if "the card does not say" in cell]


def units(title: str = "", rows: int = 4) -> Statement:
    made = model("regression")
    kept = made.ledger_
    try:
        made.ledger_ = gaussian_ledger(1.0, 1e-5, unit="nr_of_patient", rows=rows)
        return state(made, b"", publisher(unit_title=title))
    finally:
        made.ledger_ = kept


def test_a_unit_has_the_name_that_people_give_it() -> None:
    """The column of a key named the people: "a certain patient_nbr"."""
    page = as_markdown(units("patient"))
    assert "nr\\_of\\_patient" not in page
    assert "If one patient withdraws" in page
    assert "at most 4 rows of each patient" in page
    assert "one nr\\_of\\_patient, of whose rows up to 4 are used" in as_markdown(units())


def test_a_row_with_an_owner_is_the_word_of_the_card() -> None:
    found = state(model(), b"", publisher(unit_title="person"))
    assert found.not_covered.always[0].startswith("Whether each row belongs to another person.")
    assert "one person, to whom one row belongs" in as_markdown(found)


def test_mu_is_that_of_the_epsilon() -> None:
    for found in (units(), units(rows=1), state(model(), b"", publisher())):
        mu, spent = gaussian_mu(found), found.privacy.spent.of_unit
        assert mu is not None
        assert epsilon_of(mu, found.privacy.delta) == pytest.approx(spent, abs=1e-4)
    other = found.mechanisms[0].model_copy(update={"mechanism": "laplace"})
    assert gaussian_mu(found.model_copy(update={"mechanisms": [other]})) is None
    sampled = found.mechanisms[0].model_copy(update={"sampling": 0.1})
    assert gaussian_mu(found.model_copy(update={"mechanisms": [sampled]})) is None


def test_epsilons_that_alarm_are_explained() -> None:
    """Of a row and under replace-one, epsilon is larger than what stands beside it."""
    page = as_markdown(units("patient"))
    assert "another of the same patient may train in its place" in page
    assert "not the stated guarantee" in page
    assert "may train in its place" not in as_markdown(state(model(), b"", publisher()))
