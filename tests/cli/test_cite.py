"""`dprepro cite`, and the file of its entries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from dprepro.cli.cite import FILE, entry, references
from dprepro.data.card import card_names, load_card
from dprepro.methods.registry import all_methods
from dprepro.papers.document import load_documents
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro


def test_entries_stand_once_in_the_order_of_the_names() -> None:
    said = dprepro("cite", "adult", "dp-ebm-gdp", "dp-ebm-2021", "healthcare")
    assert said == f"{references()['becker1996']}\n\n{references()['nori2021']}\n"


def test_without_a_name_it_is_dprepro() -> None:
    assert dprepro("cite").startswith("@software{dprepro,")
    assert dprepro("cite", "dp-ebm-plus") == dprepro("cite")


def test_a_card_of_ones_own_is_cited_as_it_says(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(
        "name: shop\ntitle: Customers\ntask: binary\nfile: shop.csv\ntarget: y\n"
        "positive: yes\ncitation: A shop (2026)\n"
    )
    said = dprepro("cite", path)
    assert said == "@misc{shop,\n  title = {Customers},\n  note = {A shop (2026)}\n}\n"
    path.write_text(path.read_text(encoding="utf-8") + "cite: [nobody]\n")
    with pytest.raises(DpreproError, match="`cite` names 'nobody', not an entry"):
        dprepro("cite", path)


def test_an_unknown_name_is_explained() -> None:
    with pytest.raises(DpreproError, match="is called 'aduld'; did you mean 'adult'"):
        dprepro("cite", "aduld")


FIELDS = {
    "author", "title", "booktitle", "series", "journal", "volume", "number", "pages", "year", "doi",
    "url", "eprint", "archivePrefix", "publisher", "howpublished", "institution",
}  # fmt: skip


def named() -> list[tuple[str, ...]]:
    cards = [tuple(load_card(name).cite) for name in card_names()]
    methods = [method.cite for method in all_methods().values()]
    return [*cards, *methods, *(tuple(d.cite) for d in load_documents().values())]


def test_everything_built_in_names_entries_and_every_entry_is_named() -> None:
    assert all(named())
    assert {key for keys in named() for key in keys} == references().keys()


@pytest.mark.parametrize("key", references())
def test_an_entry_is_well_formed(key: str) -> None:
    text = references()[key]
    assert text.count("{") == text.count("}")
    fields = re.findall(r"^  (\w+) = \{.+\},?$", text, re.MULTILINE)
    assert len(fields) == text.count("\n") - 1, "one field a line"
    assert "title" in fields
    assert set(fields) <= FIELDS
    year = re.search(r"\d{4}", key)
    assert year is None or f"year = {{{year.group()}}}" in text


def test_dprepro_is_cited_as_its_citation_file_says() -> None:
    said = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8"))
    assert f"title = {{{said['title']}}}" in references()["dprepro"]
    assert f"author = {{{{{said['authors'][0]['name']}}}}}" in references()["dprepro"]


def test_no_entry_is_lost_in_reading() -> None:
    assert len(references()) == FILE.read_text(encoding="utf-8").count("\n@")


@pytest.mark.parametrize("name", card_names())
def test_an_entry_of_a_dataset_says_what_its_card_says(name: str) -> None:
    card = load_card(name)
    text = " ".join(references()[key] for key in card.cite)
    said = set(re.findall(r"\b(?:19|20)\d\d\b|10\.\d{4,}/[\w./-]+\w", card.citation))
    assert said <= set(re.findall(r"[\w./-]+\w", text)), "years and DOIs"
    family = re.match(r"[A-Z][\w ]+", card.citation)
    assert family
    assert family.group().split(" (")[0].strip() in text


def test_an_entry_of_plain_text_is_escaped() -> None:
    said = entry("misc", "shop", [("title", "50 % of R&D {x}"), ("note", ""), ("url", "h://a_b")])
    title = r"50 \% of R\&D \textbraceleft{}x\textbraceright{}"
    assert said == f"@misc{{shop,\n  title = {{{title}}},\n  url = {{h://a_b}}\n}}"
