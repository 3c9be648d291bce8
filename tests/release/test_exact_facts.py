from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data.card import Card, load_card
from dprepro.release.rows import compared_facts, refuse_exact_facts
from dprepro.runtime.errors import DpreproError
from tests.private_table import rows_of, write_table

DIGEST = "a" * 64


def card(folder: Path, text: str) -> Card:
    table = write_table(folder, "binary", rows_of("binary", 20), text)
    return load_card(table.with_name("patients.yaml"))


def test_what_was_compared_is_said(tmp_path: Path) -> None:
    assert compared_facts(card(tmp_path, "")) == []
    assert compared_facts(card(tmp_path, "expect: {rows: 20, columns: 3}\n")) == [
        "the number of rows in the file, which the card states and which was compared",
        "the number of features, which the card states and which was compared",
    ]


@pytest.mark.parametrize(
    "fact", ["positives: 5", "positive_share: [0.1, 0.4]", f"values_sha256: {DIGEST}"]
)
def test_of_private_rows_only_the_size_of_the_table_may_be_compared(
    tmp_path: Path, fact: str
) -> None:
    refuse_exact_facts(card(tmp_path, "expect: {rows: 20, columns: 3}\n"))
    name = fact.partition(":")[0]
    with pytest.raises(DpreproError, match=f"`expect: {name}` of private rows.*Take it out"):
        refuse_exact_facts(card(tmp_path, f"private: true\nexpect: {{{fact}}}\n"))
    public = f"expect: {{values_sha256: {DIGEST}, positives: 5, positive_share: [0.1, 0.4]}}\n"
    refuse_exact_facts(card(tmp_path, public))


def test_a_checksum_of_the_file_is_one_of_its_values(tmp_path: Path) -> None:
    found = card(tmp_path, "private: true\n")
    source = found.sources[0].model_copy(update={"sha256": DIGEST})
    found = found.model_copy(update={"sources": [source]})
    assert any("checksum of a file" in text for text in compared_facts(found))
    with pytest.raises(DpreproError, match="states `sha256` of private rows"):
        refuse_exact_facts(found)


def test_repeated_rows_are_not_dropped_in_a_release(tmp_path: Path) -> None:
    found = card(tmp_path, f"expect: {{values_sha256: {DIGEST}}}\ndistinct: {{}}\n")
    with pytest.raises(DpreproError, match="has `distinct`: a row would decide"):
        refuse_exact_facts(found)
