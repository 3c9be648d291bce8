"""What a card says of a release goes into the registry's record and into the model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dprepro.data.card_parts import Deployment
from dprepro.release.registry import MODEL_CARD, RECORD, registry_record, texts_for_others
from dprepro.release.statement import Statement, as_json, state
from dprepro.release.statement_pages import as_html, as_markdown
from tests.release.models import model, publisher
from tests.report.test_names import ODD

SAID: dict[str, Any] = {
    "curators": ["Clinic of Exampleton"],
    "intended_use": "Planning of beds",
    "region": "Exampleland",
    "sector": "Healthcare",
}
MORE = {"actors": "The clinic is trusted.", "justification": "Chosen by the board."}


def stated(task: str = "binary", **said: Any) -> Statement:
    of = publisher().model_copy(update={"deployment": Deployment(**{**SAID, **said})})
    return state(model(task), b"", of)


@pytest.fixture(scope="module")
def schema(data_dir: Path) -> dict[str, Any]:
    """Return the registry's own schema, of commit 3e9c812."""
    path = data_dir / "registry" / "deployments-schema.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    ("said", "tier"),
    [({}, 2), (MORE, 3), ({"sector": None}, 2), ({**MORE, "sources": "https://example.org"}, 3)],
)
def test_a_record_is_one_of_the_registrys_schema(
    schema: dict[str, Any], said: dict[str, Any], tier: int
) -> None:
    record = yaml.safe_load(texts_for_others(stated(**said))[RECORD])
    jsonschema.validate(record, schema)
    assert record["tier"] == tier
    deployment = record["deployment"]
    assert deployment["basic"]["data_curators"] == SAID["curators"]
    statement = stated(**said)
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == statement.privacy.epsilon
    assert parameters.get("delta", 0.0) == statement.privacy.delta


def test_several_classes_have_a_record_and_a_model_card(schema: dict[str, Any]) -> None:
    found = texts_for_others(stated("multiclass"))
    record = yaml.safe_load(found[RECORD])
    jsonschema.validate(record, schema)
    assert "2 features, 3 classes" in record["deployment"]["basic"]["description"]
    assert "of y: of each class it adds up one function of each feature" in found[MODEL_CARD]
    two = texts_for_others(stated())[MODEL_CARD]
    assert "of y: its prediction is a sum of one function of each feature" in two
    assert "pipeline_tag: tabular-classification" in found[MODEL_CARD]


def test_the_schema_refuses_what_is_wrong(schema: dict[str, Any]) -> None:
    record = registry_record(stated())
    for place, value in (("publication_date", 2026), ("data_product_sector", "Sport")):
        basic = {**record["deployment"]["basic"], place: value}
        wrong = {**record, "deployment": {**record["deployment"], "basic": basic}}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.parametrize("name", ODD)
def test_odd_names_break_neither_the_record_nor_the_card(schema: dict[str, Any], name: str) -> None:
    if not name.strip():
        return
    texts = texts_for_others(stated(curators=[name], intended_use=name, description=name))
    record = yaml.safe_load(texts[RECORD])
    jsonschema.validate(record, schema)
    assert record["deployment"]["basic"]["intended_use"] == name.strip()
    _, head, body = texts[MODEL_CARD].split("---\n", 2)
    assert yaml.safe_load(head)["library_name"] == "dprepro"
    assert body.lstrip().startswith("# ")


def test_the_statement_says_who_and_what_for() -> None:
    statement = stated()
    for text in (as_markdown(statement), as_html(statement), as_json(statement)):
        assert all(words in text for words in ("Clinic of Exampleton", "Planning of beds"))
    assert texts_for_others(state(model(), b"", publisher())) == {}
    assert "deployment" not in as_json(state(model(), b"", publisher()))
    assert Statement.model_validate_json(as_json(statement)) == statement


def test_the_model_card_claims_no_accuracy() -> None:
    card = texts_for_others(stated())[MODEL_CARD]
    assert "How well it predicts: nothing was measured: that would have spent privacy" in card
    assert "at most" in card


def test_a_guarantee_that_does_not_hold_is_not_claimed() -> None:
    statement = stated()
    broken = statement.model_copy(
        update={"privacy": statement.privacy.model_copy(update={"holds": False})}
    )
    assert "does not hold" in texts_for_others(broken)[MODEL_CARD]
