"""A table of the user's, read in chunks, is cleaned as the card's own file is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.data.card import Card, load_card
from dprepro.data.dataset import kept_rows, load
from dprepro.rows.card_table import CardTable
from dprepro.rows.readers import TableError
from dprepro.rows.units import UnitBound
from dprepro.runtime.errors import DpreproError

CARD = """
name: shop
task: binary
sources:
  - file: shop.csv
    rename: {Age: age, Sold: sold}
format: {separator: ";"}
target: sold
positive: "yes"
missing: ["", "unknown"]
drop: [comment]
fill: {age: "40", city: Lyon}
features:
  age: {numeric: [0, 100]}
  dose: {numeric: [0, 9], missing: true}
  city: {categories: [Bonn, Lyon]}
"""

ROWS = [
    ("30", "1.5", " Bonn", "yes", "a"),
    ("unknown", "", "unknown", "no", "b"),
    ("", "unknown", "Lyon ", "yes", "c"),
    ("61", "3", "", "no", "d"),
] * 5


def card(folder: Path, text: str = CARD) -> Card:
    (folder / "shop.yaml").write_text(text)
    return load_card(folder / "shop.yaml")


def csv(path: Path, rows: Any = ROWS, header: str = "Age;dose;city;Sold;comment") -> Path:
    path.write_text("\n".join([header, *map(";".join, rows)]) + "\n")
    return path


def parquet(path: Path, **columns: Any) -> Path:
    names = ("Age", "dose", "city", "Sold", "comment")
    frame = pd.DataFrame(ROWS, columns=names).assign(**columns)
    frame.to_parquet(path, row_group_size=3)
    return path


def read(table: CardTable, chunk_rows: int | None = None) -> pd.DataFrame:
    kinds: Any = dict.fromkeys(table.names, "numeric")
    return pd.concat(table.chunks(kinds, chunk_rows), ignore_index=True)


@pytest.mark.parametrize("chunk_rows", [1, 3, 20, None])
@pytest.mark.parametrize("write", [csv, parquet])
def test_rows_are_those_of_the_dataset(tmp_path: Path, write: Any, chunk_rows: int | None) -> None:
    shop = card(tmp_path)
    csv(tmp_path / "shop.csv")
    dataset = load(tmp_path / "shop.yaml")
    suffix = "csv" if write is csv else "parquet"
    table = CardTable(write(tmp_path / f"mine.{suffix}"), shop)
    found = read(table, chunk_rows)
    pd.testing.assert_frame_equal(found[list(dataset.X)], dataset.X)
    np.testing.assert_array_equal(found["sold"], dataset.y)
    assert found["sold"].dtype == dataset.y.dtype == table.label_dtype("sold")
    assert table.domain == dataset.domain
    assert table.names == [*dataset.X, "sold"]


def test_names_can_be_those_of_the_card(tmp_path: Path) -> None:
    shop = card(tmp_path)
    plain = CardTable(csv(tmp_path / "a.csv", header="age;dose;city;sold;more"), shop)
    renamed = CardTable(csv(tmp_path / "b.csv"), shop)
    pd.testing.assert_frame_equal(read(plain), read(renamed))
    with pytest.raises(TableError, match="a column 'Age', which the card renames to 'age', and"):
        CardTable(csv(tmp_path / "c.csv", header="Age;dose;city;sold;age"), shop)


def test_numbers_of_a_parquet_file_can_be_text_or_booleans(tmp_path: Path) -> None:
    shop = card(tmp_path)
    path = parquet(tmp_path / "t.parquet", dose=[True, None] * 10, Sold=["no", "yes"] * 10)
    found = read(CardTable(path, shop), 3)
    np.testing.assert_array_equal(found["dose"], [1, np.nan] * 10)
    path = parquet(tmp_path / "t.parquet", dose="secret")
    with pytest.raises(DpreproError, match="column 'dose' is to hold numbers, but holds text"):
        read(CardTable(path, shop))


def test_codes_that_are_numbers_are_labels(tmp_path: Path) -> None:
    shop = card(tmp_path, CARD.replace('positive: "yes"', 'positive: "1"\nlabels: ["0", "1"]'))
    for labels in (np.arange(20) % 2, np.arange(20) % 2.0):
        found = read(CardTable(parquet(tmp_path / "t.parquet", Sold=labels), shop), 7)
        np.testing.assert_array_equal(found["sold"], np.arange(20) % 2)


@pytest.mark.parametrize("chunk_rows", [2, 100])
def test_a_third_label_is_refused_in_whatever_chunk_it_is(tmp_path: Path, chunk_rows: int) -> None:
    rows = [*ROWS, ("1", "1", "Bonn", "secret", "")]
    table = CardTable(csv(tmp_path / "t.csv", rows), card(tmp_path))
    with pytest.raises(DpreproError, match=r"must hold two labels, one of them .* 'yes'") as caught:
        read(table, chunk_rows)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (CARD[CARD.index("features:") :], "", "gives no public domain"),
        ("  dose:", "  other:", "the table has no column 'other', a feature of the card"),
        ("target: sold", "target: bought", "the table has no column 'bought', a target of"),
        (
            "drop:",
            f"distinct: {{}}\nexpect: {{values_sha256: {64 * '0'}}}\ndrop:",
            "drops repeated rows",
        ),
        ("drop:", "complete: true\ndrop:", "drops rows that lack a value"),
        ("{Age: age,", "{Years: age,", r"no column 'age' \(or 'Years', which the card renames"),
    ],
)
def test_what_a_card_asks_for_in_vain_is_named(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = CARD.replace(old, new).replace("fill: {age", "fill: {}\n#" if not new else "fill: {age")
    with pytest.raises(TableError, match=message):
        CardTable(csv(tmp_path / "t.csv"), card(tmp_path, text))


def test_the_first_line_is_not_quoted_as_it_may_be_a_row(tmp_path: Path) -> None:
    path = csv(tmp_path / "t.csv", header="agee;1;Bonn;no;secret")
    with pytest.raises(TableError, match="nor any other that is expected: the first") as caught:
        CardTable(path, card(tmp_path))
    assert "agee" not in str(caught.value)
    path = csv(tmp_path / "t.csv", header="agee;dose;city;sold;secret")
    with pytest.raises(TableError, match="did you mean 'agee'"):
        CardTable(path, card(tmp_path))


def test_a_csv_is_read_as_the_card_says_only_if_the_card_is_of_a_csv(tmp_path: Path) -> None:
    headless = '{separator: ";", header: false, columns: [Age, dose, city, Sold, comment]}'
    path = csv(tmp_path / "t.csv")
    path.write_text(path.read_text().partition("\n")[2])
    shop = card(tmp_path, CARD.replace('{separator: ";"}', headless))
    assert len(read(CardTable(path, shop))) == len(ROWS)
    path.write_text(csv(path).read_text().replace(";", ","))
    shop = card(tmp_path, CARD.replace('{separator: ";"}', "{kind: arff}"))
    assert len(read(CardTable(path, shop))) == len(ROWS)


def test_identity_is_that_of_table_and_card(tmp_path: Path) -> None:
    path = csv(tmp_path / "t.csv")
    first = CardTable(path, card(tmp_path)).identity()
    assert first == CardTable(path, card(tmp_path)).identity()
    other = card(tmp_path, CARD.replace("[0, 9]", "[0, 8]"))
    assert first != CardTable(path, other).identity()


OWNED = CARD.replace("drop: [comment]", "unit: comment\nrows_per_unit: 2")


def kept(path: Path, owned: Card, most: int, key: bytes, chunk_rows: int | None) -> pd.DataFrame:
    return read(CardTable(path, owned, bound=UnitBound(most, key)), chunk_rows)


@pytest.mark.parametrize("seed", range(3))
def test_a_unit_moves_no_row_of_another_and_has_few_of_its_own(tmp_path: Path, seed: int) -> None:
    """The rows of a table less one unit are those of the table, less at most so many of the unit.

    So a table and its neighbour differ by what the ledger charges for a unit, in any chunks. The
    rows are those that the dataset keeps in memory.
    """
    draw, key = np.random.default_rng(seed), b"key" * 9
    rows = [(*ROWS[draw.integers(4)][:4], f"p{draw.integers(7)}") for _ in range(40)]
    rows = [(f"{draw.integers(100)}", *row[1:]) for row in rows]
    owned, most = card(tmp_path, OWNED), int(draw.integers(1, 4))
    csv(tmp_path / "shop.csv", rows)
    whole = load(tmp_path / "shop.yaml")
    assert whole.units is not None
    expected = kept_rows(whole.X, whole.y, whole.units, most, key)
    for chunk_rows in (1, 7, None):
        found = kept(tmp_path / "shop.csv", owned, most, key, chunk_rows)
        pd.testing.assert_frame_equal(
            found[list(whole.X)], whole.X.iloc[expected].reset_index(drop=True)
        )
        np.testing.assert_array_equal(found["sold"], whole.y[expected])
    for unit in sorted(set(whole.units)):
        others = csv(tmp_path / "less.csv", [row for row in rows if row[4] != unit])
        less = kept(others, owned, most, key, 7)
        of_others = expected[whole.units[expected] != unit]
        assert len(expected) - len(of_others) <= most
        np.testing.assert_array_equal(less["age"], whole.X["age"].to_numpy()[of_others])


def test_a_row_without_an_owner_is_refused_and_a_table_without_the_column(tmp_path: Path) -> None:
    owned, bound = card(tmp_path, OWNED), UnitBound(1)
    path = csv(tmp_path / "t.csv", [*ROWS, (*ROWS[0][:4], "")])
    with pytest.raises(DpreproError, match="nobody knows whose they are"):
        read(CardTable(path, owned, bound=bound), 3)
    path = csv(tmp_path / "t.csv", header="Age;dose;city;Sold;other")
    with pytest.raises(TableError, match="no column 'comment', a unit of the card"):
        CardTable(path, owned, bound=bound)


def test_a_key_of_the_system_is_another_for_each_table_and_goes_into_its_identity(
    tmp_path: Path,
) -> None:
    owned, path = card(tmp_path, OWNED), csv(tmp_path / "t.csv")
    one, two = (CardTable(path, owned, bound=UnitBound(2)).identity() for _ in range(2))
    assert one.pop("units") != two.pop("units")
    assert one == two
