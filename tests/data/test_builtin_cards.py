"""The cards that ship, against the real data."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.data import load
from dprepro.data.card import Card, Source, card_names, load_card
from dprepro.data.cleaning import clean, column_kinds
from dprepro.data.dataset import Dataset
from dprepro.data.describe import describe
from dprepro.data.formats import read_table
from dprepro.data.verify import values_digest

SIZES = {
    "adult": (32561, 14, 7841),
    "breast-cancer": (569, 30, 212),
    "credit": (284807, 30, 492),
    "telco": (7043, 19, 1869),
}


@pytest.fixture(scope="module")
def datasets(data_dir: Path) -> dict[str, Dataset]:
    """Every data set of `SIZES`, loaded once."""
    return {name: load(name, data_dir, online=False) for name in SIZES}


@pytest.mark.parametrize("name", SIZES)
def test_rows_columns_and_positives(datasets: dict[str, Dataset], name: str) -> None:
    X, y = datasets[name].X, datasets[name].y
    assert (*X.shape, int(y.sum())) == SIZES[name]
    assert set(np.unique(y)) == {0, 1}


@pytest.mark.parametrize("name", SIZES)
def test_columns_have_the_promised_types(datasets: dict[str, Dataset], name: str) -> None:
    X, features = datasets[name].X, load_card(name).features or {}
    for column, feature in features.items():
        if feature.categories is None:
            assert X[column].dtype == np.float64
        else:
            assert list(X[column].cat.categories) == feature.categories
    assert not X.isna().any(axis=None)


@pytest.mark.parametrize("name", SIZES)
def test_fewer_than_one_value_in_a_hundred_lies_beyond_the_public_bounds(
    datasets: dict[str, Dataset], name: str
) -> None:
    columns = describe(datasets[name], load_card(name), "").columns
    beyond = {c.name: c.outside for c in columns if (c.outside or 0) >= 0.01}
    assert beyond == {}
    assert all(c.public for c in columns)


@pytest.mark.parametrize("name", SIZES)
def test_bounds_were_not_read_off_the_file(datasets: dict[str, Dataset], name: str) -> None:
    # Fields whose documented range is simply used up; any other agreement would be suspicious.
    documented = {"age", "education-num", "capital-gain", "hours-per-week", "Time"}
    X, domain = datasets[name].X, datasets[name].domain
    assert domain is not None
    for feature in domain.features:
        if feature.name not in documented and X[feature.name].dtype == np.float64:
            assert X[feature.name].max() != feature.upper, feature.name  # type: ignore[union-attr]


@pytest.mark.parametrize("name", card_names())
def test_every_card_is_complete(name: str) -> None:
    card = load_card(name)
    for key in ("title", "licence", "citation", "url", "domain_note", "cleaning_note"):
        assert getattr(card, key).strip(), f"{name}: {key} is empty"
    assert card.expect.rows
    assert card.expect.columns == len(card.features or {})
    assert card.expect.values_sha256
    for source in card.sources:
        assert source.sha256 or source.kind in ("openml", "sklearn"), source.label


def test_adult_keeps_unknown_as_a_category(datasets: dict[str, Dataset]) -> None:
    X = datasets["adult"].X
    unknown = {name: int((X[name] == "?").sum()) for name in X.columns}
    expected = {"workclass": 1836, "occupation": 1843, "native-country": 583}
    assert {name: count for name, count in unknown.items() if count} == expected


def test_telco_has_no_charges_where_there_is_no_tenure(datasets: dict[str, Dataset]) -> None:
    X = datasets["telco"].X
    assert "customerID" not in X.columns
    assert (X["TotalCharges"] == 0).sum() == 11
    pd.testing.assert_series_equal(X["TotalCharges"] == 0, X["tenure"] == 0, check_names=False)


def read(card: Card, source: Source, data: bytes) -> tuple[pd.DataFrame, np.ndarray]:
    table = read_table(data, card.format_of(source), column_kinds(card, source), card.missing)
    X, y, _ = clean(table, card, source)
    return X, y


def test_ibms_copy_of_telco_has_the_same_values(data_dir: Path) -> None:
    card = load_card("telco")
    kaggle, ibm, _ = card.sources
    data = (data_dir / str(kaggle.file)).read_bytes().replace(b"\r\n", b"\n")
    assert hashlib.sha256(data).hexdigest() == ibm.sha256
    assert values_digest(*read(card, ibm, data)) == card.expect.values_sha256


def test_telco_as_arff_has_the_same_values(data_dir: Path) -> None:
    # In the manner of OpenML: no customerID, texts in quotes, the blanks quoted too.
    card = load_card("telco")
    raw = pd.read_csv(data_dir / str(card.sources[0].file), dtype=str, keep_default_na=False)
    raw = raw.drop(columns="customerID")
    numbers = {"tenure", "MonthlyCharges", "SeniorCitizen"}
    head = [f"@attribute {c} {'NUMERIC' if c in numbers else 'STRING'}" for c in raw.columns]
    for name in set(raw.columns) - numbers:
        raw[name] = "'" + raw[name] + "'"
    lines = ["@relation telco", *head, "@data", *(",".join(row) for row in raw.to_numpy())]
    X, y = read(card, card.sources[2], "\n".join(lines).encode())
    assert values_digest(X, y) == card.expect.values_sha256


def test_the_csv_of_credit_parses_to_the_values_of_the_parquet_file(
    datasets: dict[str, Dataset],
) -> None:
    # The published csv prints 15 significant digits, as R does; a part stands for the whole.
    credit = datasets["credit"]
    card = load_card("credit")
    X = credit.X.iloc[:2000]
    head = ",".join(f'"{name}"' for name in (*X.columns, "Class"))
    rows = (
        ",".join(f"{value:.15g}" for value in row) + f',"{label}"'
        for row, label in zip(X.to_numpy(), credit.y, strict=False)
    )
    parsed, y = read(card, card.sources[1], "\n".join([head, *rows]).encode())
    assert values_digest(parsed, y) == values_digest(X, credit.y[:2000])


def test_adults_test_half_reads_with_the_same_format(data_dir: Path) -> None:
    card = load_card("adult")
    table = read_table(
        (data_dir / "adult/adult.test").read_bytes(),
        card.format_of(card.sources[0]),
        column_kinds(card, card.sources[0]),
        card.missing,
    )
    assert len(table) == 16281
    assert table["age"].between(17, 90).all()
