"""The cards that ship, against the real data."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.data.card import Card, card_names, load_card
from dprepro.data.card_parts import Source
from dprepro.data.cell_values import Marks, read_numbers
from dprepro.data.cleaning import clean, column_kinds
from dprepro.data.dataset import Dataset, load, values_digest
from dprepro.data.describe import describe
from dprepro.data.formats import read_table
from dprepro.data.sources import _File, _parsed, read_source
from dprepro.runtime.errors import DpreproError

SIZES = {
    "adbench-cover": (286048, 10, 2747),
    "adult": (32561, 14, 7841),
    "adult-45222": (45222, 14, 11208),
    "adult-complete": (30162, 14, 7508),
    "ai4i2020": (10000, 6, 339),
    "cod-rna": (59535, 8, 19845),
    "mushroom": (8124, 22, 3916),
    "mushroom-complete": (5644, 22, 2156),
    "balanced-california": (20634, 8, 10317),
    "balanced-compas-two-years-mixed": (4966, 11, 2483),
    "balanced-credit": (16714, 10, 8357),
    "balanced-default-of-credit-card-clients": (13272, 20, 6636),
    "balanced-default-of-credit-card-clients-mixed": (13272, 21, 6636),
    "balanced-diabetes130us": (71090, 7, 35545),
    "balanced-electricity": (38474, 7, 19237),
    "balanced-electricity-mixed": (38474, 8, 19237),
    "balanced-heloc": (10000, 22, 5000),
    "balanced-house-16h": (13488, 16, 6744),
    "balanced-magictelescope": (13376, 10, 6688),
    "balanced-pol": (10082, 26, 5041),
    "breast-cancer": (569, 30, 212),
    "breast-w": (683, 9, 239),
    "credit": (284807, 30, 492),
    "credit-default": (30000, 23, 6636),
    "diabetes": (101766, 25, 11357),
    "give-me-some-credit": (150000, 10, 10026),
    "give-me-some-credit-complete": (120269, 10, 8357),
    "mammography": (11183, 6, 260),
    "nursery-not-recom": (12960, 8, 4320),
    "phishing": (11055, 30, 6157),
    "pima": (768, 8, 268),
    "telco": (7043, 19, 1869),
    "support2": (9105, 19, 2360),
    "telco-without-total": (7043, 18, 1869),
    "vote-complete": (232, 16, 108),
}
REGRESSION_SIZES = {
    "abalone": (4177, 8),
    "bike-sharing": (17379, 12),
    "cal-housing": (20640, 8),
    "elevators": (16599, 18),
    "parkinson": (5875, 19),
    "parkinson-patients": (5875, 19),
    "pol": (15000, 48),
    "wine": (6497, 11),
    "wine-5297": (5297, 11),
    "wine-distinct": (5318, 11),
    "wine-white": (4898, 11),
}
IMAGES = ["mnist", "fashion-mnist"]
BY_VALUES = (
    "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/",  # publishes no checksums
    "https://archive.ics.uci.edu/static/public/327/",  # the known checksum is that of a copy
)
"""Places whose files the values alone decide."""
NO_DOWNLOAD = [
    *sorted(name for name in SIZES if name.startswith("balanced-")), "dry-bean",
    "give-me-some-credit", "give-me-some-credit-complete", "healthcare", "henan", "optdigits",
    "pendigits", "segment",
]  # fmt: skip
CLASSES = {
    "car": (6, [1210, 384, 69, 65]),
    "dry-bean": (16, [1322, 522, 1630, 3546, 1928, 2027, 2636]),
    "nursery": (8, [4320, 2, 328, 4266, 4044]),
    "optdigits": (64, [554, 571, 557, 572, 568, 558, 558, 566, 554, 562]),
    "pendigits": (16, [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055]),
    "satimage": (36, [1072, 479, 961, 415, 470, 1038]),
    "segment": (19, [330] * 7),
}
"""Of each card of several classes: columns, and rows of each class as the donors say."""
PUBLIC = [*SIZES, *REGRESSION_SIZES, *CLASSES]


@pytest.fixture(scope="module")
def datasets(data_dir: Path) -> dict[str, Dataset]:
    """Every public data set, loaded once."""
    return {name: load(name, data_dir, online=False) for name in PUBLIC}


@pytest.mark.parametrize("name", SIZES)
def test_rows_columns_and_positives(datasets: dict[str, Dataset], name: str) -> None:
    X, y = datasets[name].X, datasets[name].y
    assert (*X.shape, int(y.sum())) == SIZES[name]
    assert set(np.unique(y)) == {0, 1}


@pytest.mark.parametrize("name", REGRESSION_SIZES)
def test_rows_columns_and_targets(datasets: dict[str, Dataset], name: str) -> None:
    dataset = datasets[name]
    assert dataset.X.shape == REGRESSION_SIZES[name]
    assert dataset.y.dtype == np.float64
    assert dataset.domain is not None
    lower, upper = dataset.domain.target
    assert lower <= dataset.y.min() < dataset.y.max() <= upper  # type: ignore[operator]


@pytest.mark.parametrize("name", CLASSES)
def test_columns_and_rows_of_each_class(datasets: dict[str, Dataset], name: str) -> None:
    dataset, (columns, rows) = datasets[name], CLASSES[name]
    assert dataset.X.shape == (sum(rows), columns)
    assert np.bincount(dataset.y).tolist() == rows
    assert dataset.domain is not None
    assert len(dataset.domain.target) == len(rows)


@pytest.mark.parametrize(("name", "units"), [("diabetes", 71518), ("parkinson-patients", 42)])
def test_rows_belong_to_as_many_patients_as_the_donors_say(
    datasets: dict[str, Dataset], name: str, units: int
) -> None:
    owners = datasets[name].units
    assert owners is not None
    assert len(set(owners)) == units
    assert len(owners) == len(datasets[name].y)


def test_patients_have_the_rows_of_the_card_without_them(datasets: dict[str, Dataset]) -> None:
    by_row, by_patient = datasets["parkinson"], datasets["parkinson-patients"]
    assert by_patient.X.equals(by_row.X)
    assert by_patient.domain == by_row.domain
    assert np.array_equal(by_patient.y, by_row.y)


@pytest.mark.parametrize("name", PUBLIC)
def test_columns_have_the_promised_types(datasets: dict[str, Dataset], name: str) -> None:
    X, features = datasets[name].X, load_card(name).features or {}
    for column, feature in features.items():
        if feature.categories is None:
            assert X[column].dtype == np.float64
        else:
            assert list(X[column].cat.categories) == feature.categories
        assert X[column].isna().any() == feature.missing


@pytest.mark.parametrize("name", PUBLIC)
def test_fewer_than_one_value_in_a_hundred_lies_beyond_the_public_bounds(
    datasets: dict[str, Dataset], name: str
) -> None:
    columns = describe(datasets[name], load_card(name), "").columns
    # Of some rows the file has an amount where its dictionary says a ratio: see docs of the card.
    credit = name.startswith("give-me-some-credit") or name == "balanced-credit"
    known = {"DebtRatio"} if credit else set()
    beyond = {c.name: c.outside for c in columns if (c.outside or 0) >= 0.01}
    assert set(beyond) == known
    assert all(c.public for c in columns)


@pytest.mark.parametrize("name", PUBLIC)
def test_bounds_were_not_read_off_the_file(datasets: dict[str, Dataset], name: str) -> None:
    # Fields whose documented range is simply used up; any other agreement would be suspicious.
    documented = {"age", "education-num", "capital-gain", "hours-per-week", "Time"}
    documented |= {"housingMedianAge", "medianIncome", "HouseAge", "MedInc"}
    documented |= {"energy", "time_in_hospital"}
    # Round numbers that a rule gave before the file was looked at, and that it reaches.
    documented |= {"LIMIT_BAL", "NumberOfDependents"}
    documented |= {"SEX", "EDUCATION", "scoma"}  # codes, and a score of 0 to 100
    documented |= {"aspect", "hr", "temp", "atemp", "hum"}  # degrees, hours, shares of a maximum
    documented |= set(load_card("phishing").features or {})  # coded -1, 0, 1 by rule
    documented |= set(load_card("breast-w").features or {})  # graded from 1 to 10
    documented |= set(load_card("balanced-electricity").features or {})  # scaled to 0 to 1
    # Shares, percentages, angles, bytes, months that a bureau keeps: their ends are reached.
    documented |= {"PercentTradesNeverDelq", "PercentInstallTrades", "PercentTradesWBalance"}
    documented |= {"MaxDelq2PublicRecLast12M", "MSinceMostRecentInqexcl7days"}
    documented |= {"fAlpha:", "saturation-mean"}
    documented |= set(load_card("balanced-house-16h").features or {}) - {"P1"}
    for digits in ("optdigits", "pendigits"):
        documented |= set(load_card(digits).features or {})
    X, domain = datasets[name].X, datasets[name].domain
    assert domain is not None
    for feature in domain.features:
        if feature.name not in documented and X[feature.name].dtype == np.float64:
            assert X[feature.name].max() != feature.upper, feature.name  # type: ignore[union-attr]


@pytest.mark.parametrize("name", card_names())
def test_every_card_is_complete(name: str) -> None:
    card = load_card(name)
    for key in ("title", "licence", "citation", "url", "cleaning_note"):
        assert getattr(card, key).strip(), f"{name}: {key} is empty"
    assert card.expect.rows
    assert card.expect.columns


@pytest.mark.parametrize("name", [*PUBLIC, *IMAGES])
def test_public_data_are_known_to_the_last_value(name: str) -> None:
    card = load_card(name)
    assert card.domain_note.strip()
    assert card.expect.columns == len(card.features or {})
    assert card.expect.values_sha256
    for source in card.sources:
        for part in source.files:
            known = part.sha256 or part.kind in ("openml", "sklearn")
            assert known or str(part.http).startswith(BY_VALUES), part.label


@pytest.mark.parametrize("name", card_names())
def test_every_download_has_a_format_that_is_known_before_it_comes(name: str) -> None:
    card = load_card(name)
    for source in card.sources:
        for part in source.files:
            if part.http is not None:
                kind = (part.format or card.format).kind
                assert kind or re.search(r"\.(csv|data|arff|gz|parquet)$", part.member or part.http)


def test_cards_without_a_download_are_known_and_say_why() -> None:
    def is_offline(name: str) -> bool:
        parts = [part for source in load_card(name).sources for part in source.files]
        return all(part.kind in ("file", "synthetic") for part in parts)

    assert [name for name in card_names() if is_offline(name)] == NO_DOWNLOAD
    for name in NO_DOWNLOAD:
        text = Path("datasets", f"{name}.yaml").read_text()
        assert re.search("No download|never released|any longer", text), name


@pytest.mark.parametrize("name", IMAGES)
def test_images_are_bytes_with_ten_equal_classes(data_dir: Path, name: str) -> None:
    dataset = load(name, data_dir, online=False, with_test=True)
    assert dataset.test is not None
    for part, rows in ((dataset, 60_000), (dataset.test, 10_000)):
        assert part.X.shape == (rows, 784)
        assert set(part.X.dtypes) == {np.dtype(np.uint8)}
        assert set(np.unique(part.y)) == set(range(10))
    assert dataset.domain is not None
    assert dataset.domain.target == tuple("0123456789")
    assert {(f.lower, f.upper) for f in dataset.domain.features} == {(0, 255)}  # type: ignore[union-attr]
    counts = np.bincount(dataset.y)
    assert counts.tolist() == ([6000] * 10 if name == "fashion-mnist" else MNIST_DIGITS)


MNIST_DIGITS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def test_mnist_as_openml_has_it_has_the_same_values(data_dir: Path) -> None:
    # In the manner of OpenML: one ARFF file, of which a part of the rows is taken.
    card = load_card("mnist")
    openml = card.sources[-1].model_copy(update={"rows": (2, 5)})
    dataset = load("mnist", data_dir, online=False)
    head = [f"@attribute pixel{k + 1} INTEGER" for k in range(784)]
    head.append("@attribute class {0,1,2,3,4,5,6,7,8,9}")
    rows = [
        ",".join(map(str, [*pixels, label]))
        for pixels, label in zip(dataset.X.to_numpy()[:7], dataset.y, strict=False)
    ]
    text = "\n".join(["@relation mnist_784", *head, "@data", *rows]).encode()
    table = _parsed(_File.of(text, openml, card), openml, card, "OpenML").table
    X, y, _ = clean(table, card, openml)
    assert values_digest(X, y) == values_digest(dataset.X.iloc[2:5], dataset.y[2:5])


def test_only_the_private_data_have_a_stand_in() -> None:
    with_stand_in = [
        name
        for name in card_names()
        if any(source.kind == "synthetic" for source in load_card(name).sources)
    ]
    assert with_stand_in == ["healthcare"]
    assert sorted([*PUBLIC, *IMAGES, "healthcare", "henan"]) == card_names()


def test_the_stand_in_has_the_shape_of_the_private_data(tmp_path: Path) -> None:
    dataset = load("healthcare", tmp_path, online=False)
    assert dataset.X.shape == (14199, 46)
    assert round(100 * dataset.y.mean(), 1) == 10.9
    assert "SYNTHETIC" in dataset.source
    assert dataset.domain is None


def test_a_users_own_healthcare_file_is_taken_and_checked(tmp_path: Path) -> None:
    place = tmp_path / "healthcare" / "healthcare.csv"
    place.parent.mkdir()
    stand_in = load("healthcare", tmp_path, online=False)
    table = stand_in.X.rename(columns={"x1": "age"}).assign(died=stand_in.y)
    table.to_csv(place, index=False)
    own = load("healthcare", tmp_path, online=False)
    assert own.source == str(place)
    assert own.X.columns[0] == "age"
    assert not load_card("healthcare").fingerprint(tmp_path).startswith(SYNTHETIC_PREFIX)
    table.iloc[:-1].to_csv(place, index=False)
    with pytest.raises(DpreproError, match=r"rows: expected 14,199, found another\)"):
        load("healthcare", tmp_path, online=False)


def test_targets_are_distributed_as_their_documentation_says(
    datasets: dict[str, Dataset],
) -> None:
    scores, counts = np.unique(datasets["wine"].y, return_counts=True)
    assert scores.tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert counts.tolist() == [30, 216, 2138, 2836, 1079, 193, 5]
    assert (datasets["cal-housing"].y == 500_001).sum() == 965
    assert [(datasets["pol"].y == share).sum() for share in (0, 100)] == [9342, 3005]


def test_pol_has_22_constant_features(datasets: dict[str, Dataset]) -> None:
    assert (datasets["pol"].X.nunique() == 1).sum() == 22


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
    table = read_table(data, card.format_of(source), column_kinds(card, source))
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
    )
    age = read_numbers(table["age"], "age", Marks(card.missing))
    assert age.shape == (16281,)
    assert ((age >= 17) & (age <= 90)).all()


def test_california_as_its_arff_names_it_has_the_same_values(data_dir: Path) -> None:
    card = load_card("cal-housing")
    data = (data_dir / "california_housing/cal_housing.arff").read_bytes()
    X, y = read(card, next(s for s in card.sources if s.openml), data)
    assert values_digest(X, y) == card.expect.values_sha256


def test_wine_as_openml_names_it_has_the_same_values(data_dir: Path) -> None:
    # In the manner of OpenML: one ARFF file, dots for blanks in the names.
    card = load_card("wine")
    pool, openml = card.sources[0], card.sources[-1]
    texts = [(data_dir / str(part.file)).read_text().splitlines() for part in pool.files]
    names = texts[0][0].replace('"', "").replace(" ", ".").split(";")
    head = ["@relation wine_quality", *(f"@attribute {name} NUMERIC" for name in names), "@data"]
    rows = [line.replace(";", ",") for text in texts for line in text[1:]]
    X, y = read(card, openml, "\n".join([*head, *rows]).encode())
    assert values_digest(X, y) == card.expect.values_sha256


@pytest.mark.parametrize("name", ["telco", "wine-white", "phishing", "abalone"])
def test_real_tables_are_known_by_their_values_when_written_anew(
    data_dir: Path, tmp_path: Path, name: str
) -> None:
    card = load_card(name)
    source = card.sources[0]
    table = read_source(source, card, data_dir, online=False).table
    frame = table.to_pandas()  # with pandas' own types, as those who publish Parquet have them
    for column in frame.columns[[dtype.kind == "O" for dtype in frame.dtypes]]:
        frame[column] = frame[column].astype("category")
    path = tmp_path / str(source.file)
    path.parent.mkdir()
    frame.to_parquet(path, index=False)
    dataset = load(name, tmp_path, online=False)
    assert dataset.verified.startswith("values_sha256 alone")
    assert values_digest(dataset.X, dataset.y) == card.expect.values_sha256
    frame.iloc[::-1].to_parquet(path, index=False)
    with pytest.raises(DpreproError, match=r"wrong checksum.*these are not the values"):
        load(name, tmp_path, online=False)
