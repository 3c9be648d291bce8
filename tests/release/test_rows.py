"""The rows that a release fits are those that Python's `csv` finds in the file of its card."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprepro.data.card import Card, load_card
from dprepro.release.rows import (
    checked_rows,
    compared_facts,
    files_of,
    identity_of,
    known_rows,
    of_rows,
    of_units,
    place_of,
    refuse_exact_facts,
)
from dprepro.runtime.errors import DpreproError
from tests.data.written import Written, column, written
from tests.private_table import Row, rows_of, write_table

SECRET = "-77.125"


def card_with(folder: Path, *more: Row, task: str = "binary", text: str = "") -> Path:
    rows = [*rows_of(task, 30), *more]
    return write_table(folder, task, rows, text).with_name("patients.yaml")


def test_rows_that_keep_to_the_card_are_returned(tmp_path: Path) -> None:
    path = card_with(tmp_path)
    assert len(checked_rows(str(path), load_card(path), None, clips=False).X) == 30


@pytest.mark.parametrize(
    ("row", "task", "said"),
    [
        ((SECRET, "", "a", "yes"), "binary", r"'age' has a value outside .* \[0, 120\]"),
        (("1", SECRET, "a", "yes"), "binary", r"'dose' has a value outside .* \[0, 10\]"),
        (("1", "1", "a", SECRET), "regression", r"target 'y' has a value outside .* \[-2, 4\]"),
    ],
)
def test_a_value_outside_its_bounds_is_refused_and_not_quoted(
    tmp_path: Path, row: Row, task: str, said: str
) -> None:
    path = card_with(tmp_path, row, task=task)
    with pytest.raises(DpreproError, match=said) as caught:
        checked_rows(str(path), load_card(path), None, clips=False)
    assert "77" not in str(caught.value)
    checked_rows(str(path), load_card(path), None, clips=True)


@pytest.mark.parametrize(
    "row", [("", "1", "a", "yes"), ("1", "1", "secret", "yes"), ("1", "1", "a", "")]
)
def test_other_values_that_the_card_rules_out_are_refused_even_if_it_clips(
    tmp_path: Path, row: Row
) -> None:
    path = card_with(tmp_path, row)
    with pytest.raises(DpreproError) as caught:
        checked_rows(str(path), load_card(path), None, clips=True)
    assert "secret" not in str(caught.value)


def test_the_rows_of_a_stand_in_are_refused() -> None:
    with pytest.raises(DpreproError, match="synthetic stand-in"):
        checked_rows("healthcare", load_card("healthcare"), None, clips=False)


def identity(path: Path) -> set[str]:
    card = load_card(path)
    return set(identity_of(card, checked_rows(str(path), card, None, False), None))


def test_the_same_file_is_known_under_another_name(tmp_path: Path) -> None:
    one, other = card_with(tmp_path / "one"), card_with(tmp_path / "other")
    other.write_text(other.read_text(encoding="utf-8").replace("name: patients", "name: clients"))
    assert identity(one) == identity(other)
    assert place_of(load_card(one), str(one)) != place_of(load_card(other), str(other))


def test_the_same_values_are_known_in_a_file_of_another_format(tmp_path: Path) -> None:
    one, other = card_with(tmp_path / "one"), card_with(tmp_path / "other")
    table = pd.read_csv(other.with_name("patients.csv"))
    table[["y", "ward", "dose", "age"]].to_parquet(other.with_name("patients.parquet"))
    other.write_text(other.read_text(encoding="utf-8").replace("patients.csv", "patients.parquet"))
    assert len(identity(one) & identity(other)) == 2  # as earlier books have them, and in chunks
    assert not set(files_of(load_card(one), None)) & set(files_of(load_card(other), None))


def test_other_rows_are_not_taken_for_these(tmp_path: Path) -> None:
    one = card_with(tmp_path / "one")
    other = card_with(tmp_path / "other", ("1", "1", "a", "yes"))
    assert not identity(one) & identity(other)


def with_owners(folder: Path, source: str, text: str = "") -> set[str]:
    """Return the tokens of rows with two columns of owners, of which `source` is the unit."""
    path = card_with(folder, text="unit: who\nrows_per_unit: 2\n" + text)
    other = "stay" if source == "patient" else "patient"
    said = f"sources: [{{file: patients.csv, rename: {{{source}: who}}}}]\ndrop: [{other}]"
    path.write_text(path.read_text(encoding="utf-8").replace("file: patients.csv", said))
    table = path.with_name("patients.csv")
    head, *lines = table.read_text(encoding="utf-8").split()
    owners = [f"{line},{k // 3},{k}" for k, line in enumerate(lines)]
    table.write_text("\n".join([f"{head},patient,stay", *owners, ""]))
    return identity(path)


def test_units_are_known_by_their_values(tmp_path: Path) -> None:
    one, same = with_owners(tmp_path / "one", "patient"), with_owners(tmp_path / "two", "patient")
    other = with_owners(tmp_path / "three", "stay")
    assert one == same
    assert of_rows(one) == of_rows(other)
    for kind in ("values", "column"):
        assert len(of_units(one, kind)) == 1
        assert of_units(one, kind).isdisjoint(of_units(other, kind))
    assert of_units(one, "column") == {'unit column ["patient"]'}


def test_without_the_rows_only_files_are_known(tmp_path: Path) -> None:
    path = card_with(tmp_path)
    card = load_card(path)
    found, _, unknown = known_rows(str(path), card, None)
    assert (set(found), unknown) == (identity(path), "")
    path.with_name("patients.csv").write_text("age\n1\n")
    found, _, unknown = known_rows(str(path), card, None)
    assert found == files_of(card, None)
    assert "no target column" in unknown


def test_tokens_disclose_nothing(tmp_path: Path) -> None:
    assert all(len(token) == 16 for token in identity(card_with(tmp_path)))
    path = card_with(tmp_path)
    digest = hashlib.sha256(path.with_name("patients.csv").read_bytes()).hexdigest()
    assert not any(token in digest for token in identity(path))


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


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=written(), with_unit=st.booleans())
def test_a_release_gets_the_rows_of_the_file(table: Written, with_unit: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        card = table.card(table.write(Path(folder)), with_unit)
        path = Path(folder, "t.yaml")
        fields = card.model_dump(mode="json", exclude_defaults=True, exclude={"sources"})
        path.write_text(yaml.safe_dump(fields, sort_keys=False), encoding="utf-8")
        data = checked_rows(str(path), load_card(path), None, clips=True)
    number, city = (data.X[table.name(key)] for key in ("number", "city"))
    assert list(zip(column(number), column(city), data.y.tolist(), strict=True)) == table.rows
    assert (data.units is not None) == with_unit
