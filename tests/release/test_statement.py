"""A statement follows from the model file, and its texts say what its fields say."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import product

import pytest
from pydantic import ValidationError

from dprepro.data.card import load_card
from dprepro.estimators.contract import ledger_of
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.release.planning import planned_ledgers, release_config
from dprepro.release.statement import (
    Statement,
    as_json,
    schema_of_fields,
    shipped_schema,
    state,
)
from dprepro.release.statement_pages import as_html, as_markdown, sections
from dprepro.runtime.errors import DpreproError
from tests.release.ledgers import gaussian_ledger
from tests.release.models import NAME, model, publisher


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("surprise",), 1),
        (("privacy", "epsilon"), float("inf")),
        (("privacy", "relation"), "none"),
        (("model", "sha256"), "abc"),
        (("data", "task"), "ranking"),
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


_METHODS = ("dp-ebm-plus", "dp-ebm-sound", "dp-ebm-gdp")


@pytest.mark.parametrize(
    ("name", "method"),
    [*product(("adult", "cal-housing"), _METHODS), ("car", "dp-ebm-plus")],
)
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
    assert (data.target, data.labels) == ("y", ["no", "yes"])
    assert (age.bounds, age.may_be_missing, age.measured_in) == ((0, 120), True, "years")
    assert (ward.categories, ward.may_be_missing) == (["x", NAME], False)
    assert state(model("regression"), b"", publisher()).data.target_bounds == (0.0, 4.0)


def test_several_classes_are_stated_as_two_are() -> None:
    made, two = model("multiclass"), state(model(), b"the file", publisher())
    found = state(made, b"the file", publisher())
    assert (found.data.task, found.data.labels) == ("multiclass", ["no", "perhaps", "yes"])
    assert found.registry.data_domain == "Patients: 2 features, 3 classes"
    assert found.data.features == two.data.features
    assert (found.privacy.epsilon, found.privacy.holds) == (two.privacy.epsilon, True)
    assert "the number of rows of each class" in [m.releases for m in found.mechanisms]
    assert Statement.model_validate_json(as_json(found)) == found
    for page in as_markdown(found), as_html(found):
        assert "target: y, with the labels no, perhaps and yes" in page
    odds = [section for section in sections(found) if not section.heading]
    assert odds == [section for section in sections(two) if not section.heading]


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


def test_the_json_is_what_the_schema_of_the_package_describes() -> None:
    statement = state(model(), b"the file", publisher())
    assert shipped_schema() == json.loads(json.dumps(schema_of_fields()))
    values = json.loads(as_json(statement))
    assert Statement.model_validate_json(as_json(statement)) == statement
    assert set(values) == set(shipped_schema()["properties"]) - {"measured"}
    assert set(values) == set(shipped_schema()["required"])
