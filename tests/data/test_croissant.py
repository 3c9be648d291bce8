"""Cards as Croissant: the reader of the format's own authors accepts them."""

from __future__ import annotations

import json
from pathlib import Path

import mlcroissant
import pytest

from dprepro.data.card import card_names, load_card
from dprepro.data.describe import croissant
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro


def written(name: str) -> bool:
    """Whether a card can be written: it has columns, and a single file with a checksum."""
    card = load_card(name)
    files = [part for source, part in card.parts if part is source and part.sha256]
    return bool(card.features) and any((f.http or f.file) and not f.member for f in files)


def test_the_reader_of_the_authors_accepts_all_that_are_written(tmp_path: Path) -> None:
    names = [name for name in card_names() if written(name)]
    assert {"adult", "telco", "credit", "phishing", "wine-white"} <= set(names)
    for name in names:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(croissant(load_card(name))))
        found = mlcroissant.Dataset(str(path)).metadata  # raises where the metadata is not valid
        card = load_card(name)
        fields = [field.name for field in found.record_sets[0].fields]
        assert fields == [*(card.features or {}), card.target]
        assert found.distribution[0].sha256 in {part.sha256 for _, part in card.parts}


def test_what_is_public_stands_with_its_column() -> None:
    values = json.loads(dprepro("data", "croissant", "adult"))
    described = {field["name"]: field["description"] for field in values["recordSet"][0]["field"]}
    assert described["age"].startswith("A number from 17 to 90")
    assert described["sex"] == "One of: Female, Male"
    assert described["income"] == "The target, one of: <=50K, >50K"
    assert values["conformsTo"] == "http://mlcommons.org/croissant/1.0"


@pytest.mark.parametrize(
    ("name", "message"), [("wine", "no single file"), ("henan", "no `features`")]
)
def test_what_cannot_be_written_is_explained(name: str, message: str) -> None:
    assert not written(name)
    with pytest.raises(DpreproError, match=message):
        croissant(load_card(name))
