"""Encodings: made from the domain alone, and within the norm they promise."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import ENCODINGS, one_hot_bounds

DOMAIN = Domain(
    (
        NumericFeature("age", 0, 100),
        CategoricalFeature("job", ("a", "b", "c")),
        NumericFeature("fixed", 5, 5),
    ),
    ("0", "1"),
)
FRAME = pd.DataFrame({"age": [50.0, 250.0, -3.0], "job": ["c", "a", "z"], "fixed": [5.0, 5.0, 5.0]})


def test_frame_is_the_identity():
    assert ENCODINGS["frame"](DOMAIN).transform(FRAME) is FRAME


def test_one_hot_keeps_numbers_and_spreads_categories():
    np.testing.assert_array_equal(
        ENCODINGS["one-hot"](DOMAIN).transform(FRAME),
        [[50, 0, 0, 1, 5], [250, 1, 0, 0, 5], [-3, 0, 0, 0, 5]],
    )


def test_indicators_are_features_of_their_own_and_the_domain_describes_them():
    encoder = ENCODINGS["indicators"](DOMAIN)
    made = encoder.transform(FRAME)
    assert list(made) == ["age", "job = a", "job = b", "job = c", "fixed"]
    assert [feature.name for feature in encoder.domain.features] == list(made)
    assert made["job = c"].tolist() == ["1", "0", "0"]
    assert made.loc[2, ["job = a", "job = b", "job = c"]].tolist() == ["0", "0", "0"]
    assert encoder.domain.features[1] == CategoricalFeature("job = a", ("0", "1"))
    one_hot = ENCODINGS["one-hot"](DOMAIN).transform(FRAME)
    np.testing.assert_array_equal(made.astype(float), one_hot)


def test_one_hot_bounds_hold_each_column():
    lower, upper = one_hot_bounds(DOMAIN)
    encoded = ENCODINGS["one-hot"](DOMAIN).transform(FRAME.assign(age=[0.0, 50.0, 100.0]))
    assert lower.tolist() == [0, 0, 0, 0, 5]
    assert upper.tolist() == [100, 1, 1, 1, 5]
    assert ((lower <= encoded) & (encoded <= upper)).all()


def test_unit_norm_scales_by_the_bounds_and_appends_the_constant():
    np.testing.assert_allclose(
        2 * ENCODINGS["unit-norm"](DOMAIN).transform(FRAME),
        [[0.5, 0, 0, 1, 0, 1], [1, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1]],
    )


def test_unit_norm_holds_for_any_values():
    rng = np.random.default_rng(0)
    wild = pd.DataFrame(
        {
            "age": np.r_[rng.normal(0, 1e6, 500), np.nan],
            "job": rng.choice(["a", "b", "c", "?"], 501),
            "fixed": rng.normal(0, 1e6, 501),
        }
    )
    encoded = ENCODINGS["unit-norm"](DOMAIN).transform(wild)
    norms = np.linalg.norm(encoded, axis=1)
    assert norms.max() <= 1 + 1e-12
    assert np.isfinite(encoded).all()


def test_the_norm_bound_is_reached():
    extreme = pd.DataFrame({"age": [100.0], "job": ["a"]})
    domain = Domain(DOMAIN.features[:2], ("0", "1"))
    encoded = ENCODINGS["unit-norm"](domain).transform(extreme)
    assert np.linalg.norm(encoded) == pytest.approx(1.0)


def test_a_row_is_encoded_the_same_in_any_company():
    together = ENCODINGS["unit-norm"](DOMAIN).transform(FRAME)
    alone = ENCODINGS["unit-norm"](DOMAIN).transform(FRAME.iloc[[1]])
    np.testing.assert_array_equal(together[[1]], alone)


def test_missing_numbers_are_refused_where_no_bounds_fill_them():
    frame = FRAME.assign(age=[np.nan, 1, 2])
    with pytest.raises(ValueError, match="'age' has missing values"):
        ENCODINGS["one-hot"](DOMAIN).transform(frame)
    assert ENCODINGS["unit-norm"](DOMAIN).transform(frame)[0, 0] == pytest.approx(0.25)


def test_symmetric_maps_bounds_to_minus_one_and_one_and_appends_the_constant():
    np.testing.assert_allclose(
        ENCODINGS["symmetric"](DOMAIN).transform(FRAME),
        [[0, -1, -1, 1, 0, 1], [1, 1, -1, -1, 0, 1], [-1, -1, -1, -1, 0, 1]],
    )


def test_symmetric_holds_its_bounds_for_any_values_and_fills_in_the_midpoint():
    rng = np.random.default_rng(0)
    wild = pd.DataFrame({"age": np.r_[rng.normal(0, 1e6, 500), np.nan], "job": "b", "fixed": 7.0})
    encoded = ENCODINGS["symmetric"](DOMAIN).transform(wild)
    assert np.abs(encoded).max() == 1
    assert encoded[-1, 0] == 0


def test_category_has_the_domains_categories_whatever_occurs():
    for frame in (FRAME, FRAME.assign(job=FRAME["job"].astype("category")), FRAME.iloc[:1]):
        encoded = ENCODINGS["category"](DOMAIN).transform(frame)
        assert list(encoded["x1"].cat.categories) == ["a", "b", "c"]
        assert encoded["x1"].cat.codes.tolist() == [2, 0, -1][: len(frame)]
        np.testing.assert_array_equal(encoded["x0"], frame["age"])


def test_unit_interval_scales_by_the_bounds_and_fills_in_the_midpoint():
    frame = FRAME.assign(age=[50.0, np.nan, -3.0])
    encoded = ENCODINGS["unit-interval"](DOMAIN).transform(frame)
    assert encoded.dtype == np.float32
    expected = [[0.5, 0, 0, 1, 0], [0.5, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_allclose(encoded, expected)


def test_unit_interval_gives_the_same_for_bytes_and_numbers_block_by_block():
    features = (NumericFeature("pixel1", 0, 255), NumericFeature("pixel2", 0, 0),
                NumericFeature("pixel3", 51, 102))  # fmt: skip
    encoder = ENCODINGS["unit-interval"](Domain(features, ("0", "1")))
    values = np.random.default_rng(0).integers(0, 256, (5000, 3), dtype=np.uint8)
    frame = pd.DataFrame(values, columns=[f.name for f in features])
    encoded = encoder.transform(frame)
    np.testing.assert_array_equal(encoded, encoder.transform(frame.astype(float)))
    np.testing.assert_allclose(encoded[:, 0], values[:, 0] / 255, rtol=1e-6)
    assert (encoded[:, 1] == 0).all()
    np.testing.assert_allclose(encoded[:, 2], np.clip((values[:, 2] - 51.0) / 51, 0, 1), rtol=1e-6)
