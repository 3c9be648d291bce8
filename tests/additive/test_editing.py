"""Edits: what they change, what they leave, that they cost nothing, and that they can be undone."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from dprepro.additive.editing import interpolate, level, make_monotone, set_value, undo
from dprepro.additive.shapes import shapes_of
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.runtime.errors import DpreproError

DOMAIN = Domain(
    (NumericFeature("age", 0, 80, missing=True), CategoricalFeature("c", ("a", "b", "z"))),
    ("0", "1"),
)


def table(rows=3000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(0, 80, rows), "c": rng.choice(["a", "b", "z"], rows)})
    X.loc[rng.random(rows) < 0.1, "age"] = np.nan
    y = (rng.random(rows) < X["age"].fillna(20) / 80).astype(int).to_numpy()
    return X, y


def fitted(**params):
    settings = {"epsilon": 1.0, "domain": DOMAIN, "random_state": 0, "n_epochs": 50} | params
    return DPEBMClassifier(**settings).fit(*table())


def ordered(model):
    """The values of age without the bin of missing ones, and their counts."""
    return model.shape_functions_[0][:-1], model.bin_counts_[0][:-1]


def test_setting_a_bin_changes_what_lies_in_it_and_nothing_else():
    model, original = fitted(), fitted()
    edit = set_value(model, "age", 41.0, 2.5)
    b = model.bins_[0].encode(pd.Series([41.0]))[0]
    X, _ = table()
    inside = model.bins_[0].encode(X["age"]) == b
    difference = model.decision_function(X) - original.decision_function(X)
    assert 0 < inside.sum() < len(X)
    np.testing.assert_allclose(difference[inside], 2.5 - original.shape_functions_[0][b])
    assert not difference[~inside].any()
    assert edit.feature == "age"
    assert edit.after[b] == 2.5


def test_categories_and_missing_values_have_bins_to_set():
    model = fitted()
    set_value(model, "c", "b", -1.0)
    set_value(model, "age", "(missing)", 0.25)
    rows = pd.DataFrame({"age": [np.nan, 3.0], "c": ["b", "b"]})
    parts = model.contributions(rows)
    assert parts[:, 1].tolist() == [-1.0, -1.0]
    assert parts[0, 0] == 0.25
    assert parts[1, 0] == fitted().contributions(rows)[1, 0]


def test_a_level_range_keeps_its_mean_over_the_rows():
    model, original = fitted(), fitted()
    edit = level(model, "age", 30.0, 50.0)
    edges = shapes_of(model)[0].edges
    touched = np.append((edges[:-1] < 50) & (edges[1:] > 30), False)
    values, counts = model.shape_functions_[0], model.bin_counts_[0]
    before = original.shape_functions_[0]
    assert touched.sum() > 2
    assert np.ptp(values[touched]) == 0 < np.ptp(before[touched])
    mean = (before * counts)[touched].sum() / counts[touched].sum()
    assert abs(values[touched][0] - mean) <= 2.0**model.powers_.functions
    np.testing.assert_array_equal(values[~touched], before[~touched])
    assert str(edit) == "age: level from 30 to 50"
    assert model.ledger_.post_processing == [str(edit)]
    assert level(model, "age", 30.0, 50.0) is None


def test_a_level_range_without_counts_has_its_plain_mean():
    model = fitted()
    model.bin_counts_[0][:] = 0
    before, _ = ordered(fitted())
    level(model, "age", 0.0, 80.0)
    values, _ = ordered(model)
    np.testing.assert_allclose(values, before.mean(), atol=2.0**model.powers_.functions)


@pytest.mark.parametrize("changed", [interpolate, level])
@pytest.mark.parametrize(("start", "stop"), [(50.0, 30.0), (90.0, 95.0), (-2.0, 0.0)])
def test_a_range_outside_the_bounds_is_refused(changed, start, stop):
    with pytest.raises(DpreproError, match="a range needs start < stop within its bounds"):
        changed(fitted(), "age", start, stop)


def test_categories_have_no_range_to_level():
    with pytest.raises(DpreproError, match="cannot be levelled; set its bins one by one"):
        level(fitted(), "c", 0.0, 1.0)


def test_interpolation_draws_a_line_between_the_neighbours():
    model, original = fitted(), fitted()
    interpolate(model, "age", 30.0, 50.0)
    shape = shapes_of(model)[0]
    middles = (shape.edges[:-1] + shape.edges[1:]) / 2
    touched = (shape.edges[:-1] < 50) & (shape.edges[1:] > 30)
    first, last = np.flatnonzero(touched)[[0, -1]]
    ends = [first - 1, last + 1]
    values, _ = ordered(model)
    np.testing.assert_allclose(
        values[touched], np.interp(middles[touched], middles[ends], values[ends])
    )
    before, _ = ordered(original)
    np.testing.assert_array_equal(values[~touched], before[~touched])
    assert model.shape_functions_[0][-1] == original.shape_functions_[0][-1], "missing stays"


def test_interpolation_to_an_end_is_level():
    model = fitted()
    interpolate(model, "age", 70.0, 80.0)
    values, _ = ordered(model)
    touched = shapes_of(model)[0].edges[1:] > 70
    assert len(set(values[touched])) == 1


@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
def test_monotone_is_the_nearest_monotone_function(direction):
    model, original = fitted(epsilon=0.1), fitted(epsilon=0.1)
    make_monotone(model, "age", direction)
    sign = 1 if direction == "increasing" else -1
    values, counts = ordered(model)
    before, _ = ordered(original)
    assert (np.diff(sign * values) >= 0).all()
    assert (np.diff(sign * before) < 0).any()
    assert np.average(values, weights=counts) == pytest.approx(np.average(before, weights=counts))
    distance = counts @ (values - before) ** 2
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = sign * np.sort(sign * (values + rng.normal(0, 0.1, values.size)))
        assert counts @ (other - before) ** 2 >= distance


def test_what_is_monotone_already_stays_as_it_is():
    model = fitted()
    assert make_monotone(model, "age", "increasing") is not None
    assert make_monotone(model, "age", "increasing") is None
    assert len(model.edits_) == 1


def test_edits_are_named_in_the_ledger_and_cost_nothing():
    model = fitted(random_state=None)
    spent = model.ledger_.spent_epsilon()
    set_value(model, "age", 0.0, 9.0)  # noise may have left a function that rises
    make_monotone(model, "age", "increasing")
    set_value(model, "c", "a", 0.0)
    assert [line.split()[:2] for line in model.ledger_.post_processing] == [
        ["age:", "set"],
        ["age:", "monotone"],
        ["c:", "set"],
    ]
    assert model.ledger_.spent_epsilon() == spent
    assert model.ledger_.holds


MODEL = fitted()
RELEASED = MODEL.shape_functions_[0].copy()


@given(st.lists(st.tuples(st.floats(0, 80), st.floats(0, 80), st.sampled_from("sim")), max_size=6))
def test_undo_brings_every_bit_back(steps):
    for x, other, kind in steps:
        with suppress(DpreproError):  # a range may be empty or cover everything
            if kind == "s":
                set_value(MODEL, "age", x, other)
            elif kind == "i":
                interpolate(MODEL, "age", x, other)
            else:
                make_monotone(MODEL, "age", "decreasing" if x > 40 else "increasing")
    np.testing.assert_array_equal(shapes_of(MODEL)[0].released, RELEASED)
    assert len(MODEL.ledger_.post_processing) == len(MODEL.edits_) <= len(steps)
    while MODEL.edits_:
        undo(MODEL)
    np.testing.assert_array_equal(MODEL.shape_functions_[0], RELEASED)
    assert MODEL.ledger_.post_processing == []
    assert not shapes_of(MODEL)[0].is_edited


def test_a_model_without_privacy_can_be_edited_and_a_new_fit_starts_anew():
    X, y = table()
    model = EBMClassifier(outer_bags=1, n_epochs=20, random_state=0).fit(X, y)
    make_monotone(model, "age", "decreasing")
    assert model.edits_
    model.fit(X, y)
    assert model.edits_ == []


@pytest.mark.parametrize("estimator", [DPEBMClassifier, DPEBMRegressor])
def test_monotone_as_a_parameter_is_the_same_edit(estimator):
    X, y = table()
    domain = DOMAIN if estimator is DPEBMClassifier else Domain(DOMAIN.features, (0.0, 1.0))
    plain = estimator(0.1, domain=domain, random_state=0, n_epochs=50)
    by_parameter = clone(plain).set_params(monotone={"age": "decreasing"}).fit(X, y)
    by_hand = plain.fit(X, y)
    make_monotone(by_hand, "age", "decreasing")
    assert by_parameter.edits_ == by_hand.edits_
    np.testing.assert_array_equal(by_parameter.predict(X), by_hand.predict(X))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda m: set_value(m, "agee", 3.0, 1.0), "did you mean 'age'"),
        (lambda m: set_value(m, "age", 3.0, float("nan")), "finite number"),
        (lambda m: set_value(m, "age", 81.0, 1.0), r"bounds \[0, 80\]"),
        (lambda m: set_value(m, "age", "old", 1.0), "one of its bins"),
        (lambda m: set_value(m, "c", "q", 1.0), "no category 'q'"),
        (lambda m: interpolate(m, "c", 1.0, 2.0), "no order"),
        (lambda m: interpolate(m, "age", 9.0, 9.0), "start < stop"),
        (lambda m: interpolate(m, "age", 90.0, 99.0), "within its bounds"),
        (lambda m: interpolate(m, "age", -1.0, 99.0), "nothing is left"),
        (lambda m: make_monotone(m, "c", "increasing"), "no order"),
        (lambda m: make_monotone(m, "age", "rising"), "increasing or decreasing"),
        (undo, "no edit to undo"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(action, message):
    model = fitted()
    with pytest.raises(DpreproError, match=message):
        action(model)
    assert model.edits_ == []
