"""A statement follows from the model file, and its texts say what its fields say."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from typing import get_args

import pytest
from markdown_it import MarkdownIt
from pydantic import ValidationError

from dprepro.data.card import load_card
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.ledger_entry import Mechanism
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency
from dprepro.release.planning import planned_ledgers, release_config
from dprepro.release.statement import (
    Statement,
    as_html,
    as_json,
    as_markdown,
    factor,
    is_bounded,
    mechanism_in_words,
    mixed_in_words,
    neighbours_in_words,
    number,
    releases_in_words,
    schema_of_fields,
    shipped_schema,
    spent_in_words,
    state,
    unit_in_words,
)
from dprepro.runtime.errors import DpreproError
from tests.release.ledgers import gaussian_ledger
from tests.release.models import NAME, model, publisher
from tests.report.test_names import ODD, line


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("surprise",), 1),
        (("privacy", "epsilon"), float("inf")),
        (("privacy", "relation"), "none"),
        (("model", "sha256"), "abc"),
        (("data", "task"), "multiclass"),
    ],
)
def test_only_statements_are_read(place: tuple[str, ...], value: object) -> None:
    values = json.loads(as_json(state(model(), b"", publisher())))
    Statement.model_validate(values)
    part = values
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with pytest.raises(ValidationError, match=place[-1]):
        Statement.model_validate(values)


def test_a_statement_says_what_the_ledger_says() -> None:
    made, ledger = model(), ledger_of(model())
    assert ledger is not None
    found = state(made, b"the file", publisher())
    assert found.model.sha256 == hashlib.sha256(b"the file").hexdigest()
    privacy = found.privacy
    assert (privacy.epsilon, privacy.delta, privacy.relation) == (1.0, 1e-5, "add/remove-one")
    assert (privacy.unit, privacy.rows_per_unit, privacy.bounded) == ("row", 1, "unbounded")
    assert privacy.holds
    assert privacy.spent.of_unit is not None
    assert privacy.spent.of_unit >= ledger.spent_epsilon()  # rounded up, never down
    assert privacy.spent.of_unit == pytest.approx(ledger.spent_epsilon(), abs=1e-5)
    assert privacy.spent.of_row == privacy.spent.of_unit
    assert (privacy.spent.under_replace_one or 0) > privacy.spent.of_unit
    assert [m.releases for m in found.mechanisms] == [e.releases for e in ledger.entries]
    assert [m.scale for m in found.mechanisms] == [e.scale for e in ledger.entries]
    assert found.assumed_public == ledger.assumed_public


@pytest.mark.parametrize("name", ["adult", "cal-housing"])
@pytest.mark.parametrize("method", ["dp-ebm-plus", "dp-ebm-sound", "dp-ebm-gdp"])
def test_what_is_released_is_said_in_words_of_no_program(name: str, method: str) -> None:
    experiment = release_config(load_card(name), name, method, 1.0, 1e-6)
    (planned,) = planned_ledgers(experiment, all_rows=True)
    assert planned.ledger is not None
    texts = [entry.releases for entry in planned.ledger.entries]
    assert len(texts) > 1
    jargon = r"\b(residual|curvature|histogram|bin|cell|clip|centred|epoch|lea(f|ve)|sqrt)|\bx\b"
    for text in texts:
        assert not re.search(jargon, text), text
        assert re.search("the (sum|number) ", text), text


def test_a_statement_says_what_is_public_of_the_data() -> None:
    data = state(model(), b"", publisher()).data
    age, ward = data.features
    assert (data.target, data.labels) == ("y", ("no", "yes"))
    assert (age.bounds, age.may_be_missing, age.measured_in) == ((0, 120), True, "years")
    assert (ward.categories, ward.may_be_missing) == (["x", NAME], False)
    assert state(model("regression"), b"", publisher()).data.target_bounds == (0.0, 4.0)


def test_what_is_not_covered_is_named() -> None:
    found = state(model(seed=3), b"", publisher()).not_covered
    assert found.reads == ["fixed seed: repeatable, never for release"]
    assert not state(model(seed=3), b"", publisher()).privacy.holds
    refuses = state(model(), b"", publisher(clips=False)).not_covered.always
    clips = state(model(), b"", publisher(clips=True)).not_covered.always
    assert [a for a in refuses if a not in clips] == [
        "That the release exists. It says that the rows have no value that the card rules out: "
        "otherwise it would have been refused."
    ]


def test_a_unit_of_several_rows_has_an_epsilon_of_its_own() -> None:
    made = model("regression")
    kept = made.ledger_
    try:
        made.ledger_ = gaussian_ledger(1.0, 1e-5, unit="patient", rows=4)
        privacy = state(made, b"", publisher()).privacy
    finally:
        made.ledger_ = kept
    assert (privacy.unit, privacy.rows_per_unit) == ("patient", 4)
    assert privacy.spent.of_unit == pytest.approx(1.0, abs=1e-3)
    # One row of a patient who has more rows than are used is exchanged if it goes.
    assert privacy.spent.of_row == pytest.approx(epsilon_of(mu_of(1.0, 1e-5) / 2, 1e-5), abs=1e-3)


def test_infinite_spending_is_none() -> None:
    made = model("regression")
    kept = made.ledger_
    try:
        made.ledger_ = Ledger(1.0, 0.0, "zero-out", gaussian_ledger().entries)
        privacy = state(made, b"", publisher()).privacy
    finally:
        made.ledger_ = kept
    assert privacy.spent.of_unit is None
    assert (privacy.definition, privacy.holds) == ("pure differential privacy", False)


def test_a_model_without_a_ledger_has_no_statement() -> None:
    made = model("regression")
    kept = made.ledger_
    try:
        del made.ledger_
        with pytest.raises(DpreproError, match="has no ledger"):
            state(made, b"", publisher())
    finally:
        made.ledger_ = kept


def test_a_unit_is_named_with_its_rows() -> None:
    assert unit_in_words("row", 1) == "one row"
    assert unit_in_words("patient", 3) == "one patient, of which up to 3 rows are used"


@pytest.mark.parametrize("adjacency", Adjacency)
def test_bounded_is_where_the_number_of_rows_is_public(adjacency: Adjacency) -> None:
    said = neighbours_in_words(adjacency, "row")
    assert ("number of rows is public" in said) == is_bounded(adjacency)
    assert {ADD_REMOVE: "without", ZERO_OUT: "in their place", REPLACE_ONE: "differ"}[
        adjacency
    ] in said


@pytest.mark.parametrize("adjacency", [ZERO_OUT, REPLACE_ONE])
def test_of_units_the_number_of_rows_that_are_used_is_public(adjacency: Adjacency) -> None:
    said = neighbours_in_words(adjacency, "patient")
    assert said.endswith("(the number of rows that are used is public)")


def test_neighbours_differ_in_a_row_or_in_all_rows_of_a_unit() -> None:
    assert neighbours_in_words(ADD_REMOVE, "row") == "one with and one without a certain row"
    said = "one with and one without all rows of a certain patient"
    assert neighbours_in_words(ADD_REMOVE, "patient") == said


def test_a_release_is_the_first_or_has_earlier_ones() -> None:
    book = "the budget book of the publisher's machine"
    assert releases_in_words(0) == f"the first release of these rows in {book}"
    assert releases_in_words(1) == f"{book} has 1 earlier release of these rows"
    assert releases_in_words(2) == f"{book} has 2 earlier releases of these rows"


def test_only_relations_that_differ_are_told() -> None:
    assert mixed_in_words([], ADD_REMOVE) == mixed_in_words([ADD_REMOVE] * 2, ADD_REMOVE) == ""
    said = mixed_in_words([ZERO_OUT, ADD_REMOVE], ADD_REMOVE)
    assert said.startswith("earlier releases have add/remove-one and zero-out neighbours and this")


def test_every_mechanism_has_words() -> None:
    for mechanism in get_args(Mechanism):
        assert mechanism.split("-")[0] in mechanism_in_words(mechanism).lower().replace(
            "as the cited", "cited"
        )


def test_factors_are_rounded_up() -> None:
    assert [factor(e) for e in (0.0, 1.0, 2.0, 10.0, 10.5, 50.0)] == [
        "1.00", "2.72", "7.39", "22,026.47", "e^10.5", "e^50"
    ]  # fmt: skip
    assert float(factor(0.5)) >= 1.6487
    assert [number(0.98765), number(None)] == ["0.9877", "unbounded"]


def test_epsilons_that_alarm_are_explained() -> None:
    """Of a row and under replace-one, epsilon is larger than what stands beside it."""
    row, exchanged = spent_in_words("patient", ADD_REMOVE, 1e-6)
    assert "another of the same patient may train in its place" in row
    assert "not the stated guarantee" in exchanged
    assert spent_in_words("row", ADD_REMOVE, 1e-6) == [exchanged.replace("patient", "row")]
    assert spent_in_words("row", REPLACE_ONE, 1e-6) == []
    (large,) = spent_in_words("row", REPLACE_ONE, 1e-3)
    assert "publish each row as it is with the probability 0.001" in large


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
