from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dprepro.data.card_parts import Synthetic
from dprepro.data.sources import stand_in

SHAPE = Synthetic(rows=3000, numeric=5, binary=4, positives=327, seed=3)


def test_it_has_the_shape_asked_for() -> None:
    table = stand_in(SHAPE, "died", ["no", "yes"])
    assert list(table.columns) == [*(f"x{k}" for k in range(1, 10)), "died"]
    assert len(table) == 3000
    assert (table["died"] == "yes").sum() == 327
    assert set(table["died"]) == {"no", "yes"}
    for k in range(6, 10):
        assert set(table[f"x{k}"]) == {0.0, 1.0}
        assert 0.03 < table[f"x{k}"].mean() < 0.53
    numeric = table[[f"x{k}" for k in range(1, 6)]]
    np.testing.assert_array_equal(numeric, numeric.round(2))
    assert (numeric.nunique() > 100).all()


def test_the_seed_decides_every_value() -> None:
    table = stand_in(SHAPE, "y", ["0", "1"])
    assert table.equals(stand_in(SHAPE, "y", ["0", "1"]))
    other = stand_in(SHAPE.model_copy(update={"seed": 4}), "y", ["0", "1"])
    assert not table["x1"].equals(other["x1"])


def test_the_features_tell_something_of_the_label_but_not_all() -> None:
    table = stand_in(SHAPE, "y", ["0", "1"])
    X, y = table.drop(columns="y").to_numpy(), (table["y"] == "1").to_numpy()
    scores = LogisticRegression(max_iter=2000).fit(X, y).decision_function(X)
    better = scores[y][:, None] > scores[~y][None, :]
    assert 0.6 < better.mean() < 0.99


@pytest.mark.parametrize(("numeric", "binary"), [(3, 0), (0, 3)])
def test_one_kind_of_feature_is_enough(numeric: int, binary: int) -> None:
    shape = Synthetic(rows=20, numeric=numeric, binary=binary, positives=5)
    assert stand_in(shape, "y", ["0", "1"]).shape == (20, 4)
