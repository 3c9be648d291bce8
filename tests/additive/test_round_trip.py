"""What is fitted to values of any type that is read is saved, and comes back with the same bits."""

from __future__ import annotations

import os
import warnings
from decimal import Decimal
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprepro
from dprepro import (
    CategoricalFeature,
    Domain,
    DpreproError,
    EBMClassifier,
    NumericFeature,
    load_model,
    save_model,
)

ROWS = 24
RNG = np.random.default_rng(0)
NUMBERS = RNG.integers(0, 10, ROWS).astype(float)
TEXTS = np.where(RNG.integers(0, 2, ROWS), "no", "yes")
NAMES = [
    name for name in dprepro.__all__ if name.removesuffix("Classifier").removesuffix("Regressor")
    in ("EBM", "DPEBM", "DPEBMPlus")
]  # fmt: skip

NUMERIC = [
    "float64", "float32", "float16", "int8", "uint16", "Int64", "UInt8", "Float64", "Float32",
    "int64[pyarrow]", "double[pyarrow]", "object", "category",
    "Sparse[float]", "decimals", "longdouble",
]  # fmt: skip
CATEGORIES = ["object", "category", "decimals"]
"""What is read as categories, so that a public domain with bounds refuses it."""

TEXTUAL = ["object", "str", "string", "string[pyarrow]", "category", "category of arrow"]
FLAGS = ["bool", "boolean", "bool[pyarrow]", "object", "uint8", "texts"]
SCALARS = [float, int, np.float64, np.float32, np.int8, np.longdouble, np.array]
LABELS = [
    "int64", "int8", "uint64", "float64", "float16", "longdouble", "bool", "boolean", "Int64",
    "Float32", "bool[pyarrow]", "int16[pyarrow]", "object", "list", "texts",
]  # fmt: skip


def numeric(kind: str, missing: bool) -> pd.Series:
    column = pd.Series(NUMBERS)
    if kind == "decimals":
        column = pd.Series([Decimal(int(number)) for number in NUMBERS], dtype=object)
    elif kind == "longdouble":
        column = pd.Series(NUMBERS.astype(np.longdouble))
    else:
        column = column.astype(kind)
    if missing and kind[0] in "IUF":  # pandas' own nullable types
        column[3] = pd.NA
    return column


def textual(kind: str, missing: bool) -> pd.Series:
    if kind == "category of arrow":
        return pd.Series(TEXTS).astype("string[pyarrow]").astype("category")
    column = pd.Series(TEXTS, dtype=kind)
    if missing:
        column[5] = pd.NA
    return column


def flags(kind: str) -> pd.Series:
    values = pd.Series(NUMBERS > 4)
    return values.map({True: "True", False: "False"}) if kind == "texts" else values.astype(kind)


def labelled(kind: str) -> Any:
    values = (NUMBERS > 4).astype(int)
    if kind == "list":
        return values.tolist()
    if kind == "texts":
        return np.where(values, "1", "0")
    return values.astype(kind) if kind in ("longdouble",) else pd.Series(values).astype(kind)


def estimator(name: str, names: list[Any], scalar: Any, observed: bool) -> Any:
    kind = getattr(dprepro, name)
    change: dict[str, Any] = {"random_state": np.int64(1), "n_jobs": np.int8(1)}
    if name.startswith("EBM"):
        return kind(
            n_epochs=np.int16(3), outer_bags=np.uint8(1), learning_rate=np.float32(0.25), **change
        )
    change |= {"epsilon": np.float32(4), "delta": np.float64(1e-6), "n_epochs": np.int64(3)}
    if name.startswith("DPEBMPlus"):
        change["observed"] = np.bool_(observed)
    else:
        change["sensitivity"] = Enum("Bound", {"SOUND": "sound"}, type=str).SOUND
    if observed:
        return kind(**change)
    target = np.array(["0", "1"]) if name.endswith("Classifier") else pd.Series([0, 9])
    features = [
        NumericFeature(names[0], scalar(0), scalar(9), np.bool_(True)),
        CategoricalFeature(names[1], pd.Index(["no", "yes"]), missing=np.array(True)),
        CategoricalFeature(names[2], np.array(["False", "True", "0", "1"])),
    ]
    return kind(domain=Domain(features, target), **change)


def outputs(model: Any, X: pd.DataFrame) -> list[Any]:
    found = [model.predict(X), model._scores(X), model.contributions(X)]
    if hasattr(model, "classes_"):
        found += [model.predict_proba(X), model.classes_]
    return [(array.dtype.kind, array.dtype.itemsize, array.tolist()) for array in found]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(
    numbers=st.sampled_from(NUMERIC), texts=st.sampled_from(TEXTUAL),
    boolean=st.sampled_from(FLAGS),
    labels=st.sampled_from(LABELS), scalar=st.sampled_from(SCALARS), missing=st.booleans(),
    observed=st.booleans(), as_text=st.booleans(),
    names=st.sampled_from([["a", "b", "c"], [2, 0, 1], [np.int64(7), np.int64(8), 9]]),
)  # fmt: skip
def test_what_fits_is_saved_and_comes_back(
    name, numbers, texts, boolean, labels, scalar, missing, observed, as_text, names
):
    X = pd.concat([numeric(numbers, missing), textual(texts, missing), flags(boolean)], axis=1)
    X.columns = names
    y = labelled(labels) if name.endswith("Classifier") else numeric(numbers, missing=False)
    model = estimator(name, names, scalar, observed)
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        if numbers in CATEGORIES and not (observed or name.startswith("EBM")):
            with pytest.raises(ValueError, match="is numeric in the domain"):
                model.fit(X, y)
            return
        model.fit(X, y)
        place = Path(folder) / "m.json"
        place = str(place) if as_text else place
        save_model(model, place, origin={"rows": np.int64(ROWS), "share": np.float32(0.5)})
        loaded = load_model(place)
    assert outputs(loaded, X) == outputs(model, X)
    assert loaded.origin_ == {"rows": ROWS, "share": 0.5}
    if hasattr(model, "ledger_"):
        assert loaded.ledger_ == model.ledger_
    for fitted in (model, loaded):
        with pytest.raises(ValueError, match="order"):
            fitted.predict(X[names[::-1]])


@pytest.mark.parametrize("labels", [("a", "a\0"), ("\0", "b\0"), ("", "\0")])
@pytest.mark.parametrize("name", ["EBMClassifier", "DPEBMClassifier", "DPEBMPlusClassifier"])
def test_a_nul_at_the_end_of_a_label_is_kept(name, labels, tmp_path):
    X = pd.DataFrame({"a": NUMBERS})
    y = np.array(labels, dtype=object)[(NUMBERS > 4).astype(int)]
    domain = Domain([NumericFeature("a", 0, 9)], labels)
    kind = getattr(dprepro, name)
    model = (kind(n_epochs=3) if name == "EBMClassifier" else kind(domain=domain, n_epochs=3)).fit(
        X, y
    )
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert tuple(loaded.classes_) == tuple(model.classes_) == labels
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


class Unwritable:
    """A JSON encoder meets it at the end."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, "m.json"), "model must be a fitted model .*got 3"),
        ((EBMClassifier(), "m.json"), "not fitted"),
        ((EBMClassifier, "m.json"), "model must be a fitted model"),
        (("fitted", 3), "path must be a path.*got 3"),
        (("fitted", None), "path must be a path.*got None"),
        (("fitted", b"m.json"), "path must be a path"),
        (("fitted", "m.json", [1]), "origin must be a mapping of texts to JSON values"),
        (("fitted", "m.json", {"a": Unwritable()}), "origin must be a mapping of texts to JSON"),
        (("fitted", "m.json", {"a": np.nan}), "origin must be a mapping of texts to JSON values"),
        (("fitted", "m.json", {1: 2}), "origin must be a mapping of texts to JSON values"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_name(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted = EBMClassifier(n_epochs=2, outer_bags=1).fit(pd.DataFrame({"a": NUMBERS}), NUMBERS > 4)
    model, *rest = arguments
    with pytest.raises(ValueError, match=message):
        save_model(fitted if model == "fitted" else model, *rest)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [3, None, b"m.json", ["m.json"], True])
def test_what_is_no_path_is_not_loaded(path):
    with pytest.raises(ValueError, match="path must be a path"):
        load_model(path)


def test_a_path_that_names_nothing_is_told_of(tmp_path):
    with pytest.raises(DpreproError, match="no such model file"):
        load_model(str(tmp_path / "m.json"))
    with pytest.raises(DpreproError, match="it is a folder"):
        load_model(os.fspath(tmp_path))
