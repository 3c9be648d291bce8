"""Boolean columns: one of each feature's is true, and only the domain decides which there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dprepro.data.dataset import load
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import BINS, BooleanEncoder

DOMAIN = Domain(
    (NumericFeature("age", 0, 100), CategoricalFeature("job", ("a", "b", "c"))), ("0", "1")
)


def encode(age: list[float], job: list[str | None]) -> pd.DataFrame:
    return BooleanEncoder(DOMAIN).transform(pd.DataFrame({"age": age, "job": job}))


def test_each_value_is_true_in_one_column_of_its_feature() -> None:
    rng = np.random.default_rng(0)
    encoded = encode(list(rng.uniform(0, 100, 200)), list(rng.choice(["a", "b", "c"], 200)))
    assert encoded.to_numpy().dtype == np.uint8
    for name, width in (("age", BINS), ("job", 3)):
        assert encoded[name].shape == (200, width)
        assert (encoded[name].to_numpy().sum(axis=1) == 1).all()


def test_cuts_belong_to_the_part_above_and_the_last_part_is_closed() -> None:
    encoded = encode([0, 9.999, 10, 90, 100, -5, 1e9], ["a"] * 7)
    assert list(np.argmax(encoded["age"].to_numpy(), axis=1)) == [0, 0, 1, 9, 9, 0, 9]
    assert list(encoded["age"].columns)[::9] == ["[0, 10)", "[90, 100]"]


def test_missing_and_unseen_values_are_false_everywhere() -> None:
    encoded = encode([np.nan, 5], [None, "z"])
    assert encoded.to_numpy().sum(axis=1).tolist() == [0, 1]
    assert encoded["job"].to_numpy().sum() == 0


def test_columns_do_not_depend_on_the_rows() -> None:
    assert encode([1], ["a"]).columns.equals(encode([99, np.nan], ["b", None]).columns)


@pytest.mark.parametrize(
    ("name", "public", "observed"),
    [("adult", 162, 162), ("cod-rna", 80, 80), ("mushroom", 126, 117)],
)
def test_the_counts_of_the_paper(data_dir: Path, name: str, public: int, observed: int) -> None:
    dataset = load(name, data_dir, online=False)
    assert dataset.domain is not None
    read = Domain.observe(dataset.X, dataset.y, dataset.task)
    counts = [
        BooleanEncoder(d).transform(dataset.X.head(3)).shape[1] for d in (dataset.domain, read)
    ]
    assert counts == [public, observed]
