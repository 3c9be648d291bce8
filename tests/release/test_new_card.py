from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data import load
from dprepro.data.card import load_card
from dprepro.errors import DpreproError
from dprepro.release.codebook import Entry
from dprepro.release.columns import Columns, read_columns
from dprepro.release.new_card import card_name, new_card, scalar

ROWS = "age;ward;back;id\n41.5;a;yes;1001\n77.25;b;no;1002\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "my rows.csv"
    path.write_text(ROWS)
    return path


def card_of(data: Path, codebook: dict[str, Entry]) -> Path:
    card = data.with_name("card.yaml")
    card.write_text(new_card(data, read_columns(data), card, codebook))
    return card


def test_nothing_of_the_rows_is_in_a_new_card(data: Path) -> None:
    text = card_of(data, {}).read_text()
    for value in ("41.5", "77.25", "1001", "1002", "[a", "yes]"):
        assert value not in text
    data.write_text(ROWS.replace("41.5", "12.5").replace("a;", "zz;"))
    assert card_of(data, {}).read_text() == text


def test_a_card_is_refused_until_every_place_is_filled_in(data: Path) -> None:
    with pytest.raises(DpreproError) as caught:
        load_card(card_of(data, {}))
    said = str(caught.value)
    for place in ("task", "target", "domain_note", *(f"features.{n}" for n in ["age", "ward"])):
        assert f", {place}" in said
    assert "lowest and highest possible value" in said


def test_a_codebook_fills_in_all_of_it(data: Path) -> None:
    codebook = {
        "age": Entry(
            "numeric", 0, 120, missing=True, measured_in="years", description="At # entry"
        ),
        "ward": Entry("categorical", categories=("a", "no", "3")),
        "back": Entry("target", categories=("no", "yes")),
        "id": Entry("drop"),
    }
    card = load_card(card_of(data, codebook))
    assert (card.task, card.target, card.positive) == ("binary", "back", "yes")
    assert card.public_target == ("no", "yes")
    assert (card.features or {})["age"].numeric == (0, 120)
    assert (card.features or {})["age"].missing
    assert card.measured_in == {"age": "years"}
    assert (card.features or {})["ward"].categories == ["a", "no", "3"]
    assert card.drop == ["id"]
    assert not card.is_public
    assert card.format.separator == ";"


def test_several_texts_can_be_one_class(data: Path) -> None:
    data.write_text(ROWS.replace("no", "<30"))
    target = Entry("target", categories=("late", "<30"), relabel={"yes": "late"})
    drop = {name: Entry("drop") for name in ("ward", "id")}
    path = card_of(data, {"back": target, "age": Entry("numeric", 0, 120), **drop})
    assert load_card(path).labels == ["late", "<30"]
    assert list(load(path).y) == [0, 1]


def test_all_other_columns_can_be_dropped(data: Path) -> None:
    codebook = {"*": Entry("drop"), "back": Entry("target", categories=("no", "yes")),
                "age": Entry("numeric", 0, 120)}  # fmt: skip
    card = load_card(card_of(data, codebook))
    assert (list(card.features or {}), card.drop) == (["age"], ["ward", "id"])


def test_numbers_can_be_the_target(data: Path) -> None:
    codebook = {"age": Entry("target", 0, 120), "ward": Entry("drop"), "back": Entry("drop"),
                "id": Entry("numeric", 0, 9999)}  # fmt: skip
    card = load_card(card_of(data, codebook))
    assert (card.task, card.target_bounds) == ("regression", (0, 120))


@pytest.mark.parametrize(
    ("codebook", "said"),
    [
        ({"agee": Entry("drop")}, "'agee', which is not a column of the file; did you mean 'age'"),
        ({"ward": Entry("numeric", 0, 1)}, "'ward' is numeric, but the file holds text"),
        ({"age": Entry("target"), "back": Entry("target")}, "more than one target: age, back"),
    ],
)
def test_a_codebook_of_another_file_is_refused(
    data: Path, codebook: dict[str, Entry], said: str
) -> None:
    with pytest.raises(DpreproError) as caught:
        card_of(data, codebook)
    assert said in str(caught.value)


def test_numbers_with_decimal_commas_are_refused_and_not_quoted(data: Path) -> None:
    data.write_text(ROWS.replace(".", ","))
    for codebook in ({}, {"age": Entry("numeric", 0, 120)}, {"age": Entry("target", 0, 120)}):
        with pytest.raises(DpreproError, match="numbers with a comma in age: ") as caught:
            card_of(data, codebook)
        said = str(caught.value)
        assert "sep=';', decimal=','" in said
        assert "A number has a decimal point" in said
        assert "41,5" not in said
    for codes in (Entry("categorical", categories=("41,5", "77,25")), Entry("drop")):
        assert "age" in card_of(data, {"age": codes}).read_text()


def test_a_unit_needs_the_number_of_its_rows() -> None:
    columns = Columns({"patient": "numeric", "x": "numeric"})
    path = Path("rows.csv")
    text = new_card(path, columns, Path("card.yaml"), {"patient": Entry("unit")})
    assert "unit: patient\nrows_per_unit: FILL_IN" in text
    text = new_card(path, columns, Path("card.yaml"), {"patient": Entry("unit", upper=3)})
    assert "rows_per_unit: 3\n" in text


def test_texts_are_quoted_where_yaml_reads_something_else() -> None:
    assert [scalar(t) for t in ("age", "no", "3", "a: b", "")] == [
        "age", '"no"', '"3"', '"a: b"', '""',
    ]  # fmt: skip
    assert card_name(Path("my rows (2).csv")) == "my-rows-2"


def test_a_new_card_says_how_a_column_is_left_out(data: Path) -> None:
    text = card_of(data, {}).read_text()
    assert "# drop: [COLUMN]               # columns that are not used" in text
    assert "the unit is no feature" in text
    dropped = card_of(data, {"id": Entry("drop")}).read_text()
    assert "drop: [id]" in dropped
    assert "[COLUMN]" not in dropped
