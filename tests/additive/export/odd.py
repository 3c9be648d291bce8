"""Rows that nobody expects, and what `dprepro predict` makes of them, as exports should."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dprepro import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.additive.model import AdditiveModel
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.release.predicting import NewRows, Wanted, predict_table
from dprepro.runtime.errors import DpreproError

NUMBERS = [
    "", "  ", "?", "NA", "NaN", "nan", "NAN", "-nan", "+NaN", "null",
    "1e3", " 5", "5\u2003", "\u00a05", "5.", "5.e1", ".5", "+.5", "+5", "007", "1e+01", "1E-2",
    "-0", "-0.0", "0.1", "0.30000000000000004", "1e-400", "-1e-99999", "1e00000000000000000001",
    "0" * 50 + "7", "0." + "0" * 400 + "1", "1" + "0" * 200, "-7", "17.999999999999996", "90",
    "90.00000000000001", "1e308", "-1e308", "1.7976931348623157e308", "5e-324",
    "0e9999999999", "-.0E-99999", "2e-0000000000000001",
]  # fmt: skip
"""Texts that a column of numbers may hold."""

REFUSED = [
    "abc", "5,0", "1,000", "inf", "-inf", "Infinity", "+INF", "0x10", "1_000", "1 2", "--5", "+-1",
    "1e", "e5", ".", "-", "+", "1.2.3", "1d5", "5f", "12abc", "true", "False", "2020-01-01", "NULL",
    "None", "N/A", "\u0661", "\uff11\uff12", "\u22125", "\ufeff5", "nan(1)", "1e999", "-1e999",
    "1" + "0" * 400, "1e99999", "-1e+9999999999", "%", "5%", "$5", "1e5.0", "é",
]  # fmt: skip
"""Texts that a column of numbers may not hold."""

TOWNS = ("Bonn", "O'Hare", "é", "two words", "1", "1e2", "NA", "Yes", "%", "select", "İzmir")

TEXTS = [
    *TOWNS, "", " ", "?", "nan", "NAN", "null", " Bonn", "Bonn\t", "\u00a0Bonn\u2003", "bonn",
    "BONN", "e\u0301", "É", "1.0", "01", "100", "yes", "True", "inf", "2020-01-01", "two  words",
    "twowords", "Bonn\u200b", "B\u00f6nn", "a" * 300, "'", '"', "--", "i\u0307zmir", "ß", "-0",
]  # fmt: skip
"""Texts that a column of categories may hold."""


QUOTED = "quo\"te's"
"""The name of a feature; one of its categories begins with a blank, so that blanks count."""

LETTERS = ["a", "b", " c", "c", "", " a", " ?", "NA "]


def _domain(task: str, quoted: str) -> Domain:
    features = (
        NumericFeature("age", 18, 90, missing=True),
        NumericFeature("select", -5, 5),
        CategoricalFeature("town", TOWNS, missing=True),
        CategoricalFeature(quoted, ("a", "b", " c")),
    )
    return Domain(features, ("no", "yes") if task == "binary" else (0.0, 10.0))


def fitted(task: str, quoted: str = QUOTED, pairs: int = 3) -> AdditiveModel:
    """Return a model of DP-EBM+ of random rows, with functions of pairs."""
    domain, rng, n = _domain(task, quoted), np.random.default_rng(0), 2_000
    age, step = rng.uniform(18, 90, n), rng.uniform(-5, 5, n)
    town, letter = rng.integers(0, len(TOWNS), n), rng.integers(0, 3, n)
    columns = {
        "age": np.where(rng.random(n) < 0.1, np.nan, age),
        "select": step,
        "town": np.array(TOWNS, dtype=object)[town],
        quoted: np.array(("a", "b", " c"), dtype=object)[letter],
    }
    X = pd.DataFrame(columns)
    score = age / 20 + step * (letter - 1) + (town - 5) * (age - 50) / 40
    settings = {"epsilon": 8.0, "delta": 1e-6, "domain": domain, "random_state": 0}
    settings["pairs"] = pairs
    if task == "regression":
        return DPEBMPlusRegressor(**settings).fit(X, np.clip(score, 0, 10))
    return DPEBMPlusClassifier(**settings).fit(X, np.where(score > np.median(score), "yes", "no"))


@dataclass(frozen=True)
class Said:
    """What `dprepro predict` says of rows: columns, and counts by feature and what is unknown."""

    columns: dict[str, list[str]]
    counts: dict[str, int]

    def numbers(self, name: str) -> np.ndarray:
        return np.array([float(value) for value in self.columns[name]])


def predicted(model: AdditiveModel, rows: Mapping[str, Sequence[str]], folder: Path) -> Said | None:
    """Return what `dprepro predict --explain` says of texts in a CSV; None if it refuses them."""
    path, out = folder / "rows.csv", folder / "out.csv"
    write(path, rows)
    try:
        unknown = predict_table(model, path, out, Wanted(explain=True))
    except DpreproError:
        return None
    columns = read(out.read_text(encoding="utf-8"))
    counts: dict[str, int] = {}
    # The very attributes that the lines on standard error are made of.
    for of in unknown._features:
        found = {"missing": of._missing, "unknown category": of._unknown}
        found |= {"below its bounds": of._below, "above its bounds": of._above}
        counts |= {f"{of.name}: {what}": count for what, count in found.items() if count}
    return Said(columns, counts)


def write(path: Path, rows: Mapping[str, Sequence[str]]) -> None:
    """Write texts as a CSV, each as it stands."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))


def read(text: str) -> dict[str, list[str]]:
    """Return the columns of a CSV, as texts."""
    names, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns = [*zip(*rows, strict=True)] or [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def as_read(model: AdditiveModel, path: Path) -> pd.DataFrame:
    """Return rows of a CSV as an ONNX graph takes them: numbers, and texts without blanks."""
    ((X, _),) = NewRows(path, model).chunks()
    columns = {}
    texts = read(path.read_text(encoding="utf-8"))
    for bins in model.bins_:
        name = str(bins.feature.name)
        columns[name] = X[name].to_numpy()
        if isinstance(bins.feature, CategoricalFeature):
            is_kept = any(each != each.strip() for each in bins.feature.categories)
            columns[name] = [
                text if is_kept and text.strip() not in MISSING_TEXTS else text.strip()
                for text in texts[name]
            ]
    return pd.DataFrame(columns)


def random_rows(seed: int, n: int = 300, quoted: str = QUOTED) -> dict[str, list[str]]:
    """Return rows of the models of `fitted` that none of them refuses."""
    rng = np.random.default_rng(seed)

    def numbers(low: float, high: float) -> list[str]:
        odd = rng.choice(np.array(NUMBERS, dtype=object), n)
        plain = rng.uniform(low, high, n)
        return [
            str(text) if pick else repr(float(x))
            for text, x, pick in zip(odd, plain, rng.random(n) < 0.6, strict=True)
        ]

    return {
        quoted: [str(text) for text in rng.choice(np.array(LETTERS), n)],
        "extra": ["x"] * n,
        "town": [str(text) for text in rng.choice(np.array(TEXTS, dtype=object), n)],
        "select": numbers(-6, 6),
        "age": numbers(10, 100),
    }


def counted(notes: Sequence[str]) -> dict[str, int]:
    """Return how often each part of the notes is there."""
    counts: dict[str, int] = {}
    for note in notes:
        for part in filter(None, re.split("; ", note)):
            counts[part] = counts.get(part, 0) + 1
    return counts
