"""Gradients are those of the loss, whole numbers, clipped, and of each row by itself."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.bounded_norm_encoding import UNIT
from dprepro.methods.dp_sgd.inputs import LongRows
from dprepro.methods.dp_sgd.network import (
    ERROR_UNIT,
    GRADIENT_UNIT,
    LARGEST_WEIGHT,
    WEIGHT_UNIT,
    Network,
    clipped_sum,
    label_errors,
    number_errors,
)
from dprepro.privacy.query import SensitivityError

DOMAIN = Domain(
    (NumericFeature("x", 0, 1), NumericFeature("z", -1, 3), CategoricalFeature("c", ("a", "b"))),
    ("0", "1"),
)
WIDTH = 3
ROWS = LongRows(DOMAIN, 4)
LOOSE = 1e4


def inputs_of(n=40, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(-0.2, 1.2, n), "z": rng.uniform(-1, 3, n)})
    frame["c"] = rng.choice(["a", "b"], n)
    return ROWS.encode(frame)


def weights_of(outputs, seed=0, size=1.0):
    return np.random.default_rng(seed).normal(0, size, ROWS.columns * WIDTH + (WIDTH + 1) * outputs)


def gradient(weights, inputs, targets, errors_of, clip=LOOSE):
    network = Network.of(weights, ROWS.columns, WIDTH)
    hidden = network.hidden(inputs)
    return clipped_sum(network, inputs, hidden, errors_of(network.scores(hidden), targets), clip)


def loss(weights, inputs, targets, outputs):
    """The loss of all rows, in floating point, written anew."""
    first = weights[: ROWS.columns * WIDTH].reshape(-1, WIDTH)
    last = weights[ROWS.columns * WIDTH :].reshape(WIDTH + 1, -1)
    hidden = np.tanh(inputs.toarray() * UNIT @ first)
    scores = hidden @ last[:-1] + last[-1]
    if outputs == "number":
        return 0.5 * np.sum((scores[:, 0] - targets * ERROR_UNIT) ** 2)
    if outputs == 1:
        return np.sum(np.logaddexp(0, scores[:, 0]) - targets * scores[:, 0])
    return np.sum(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(targets)), targets])


@pytest.mark.parametrize("outputs", [1, 3, "number"])
def test_the_gradient_is_that_of_the_loss_by_finite_differences(outputs):
    inputs, rng = inputs_of(), np.random.default_rng(1)
    columns = 1 if outputs == "number" else outputs
    weights = np.rint(weights_of(columns, 2, 0.4) / WEIGHT_UNIT) * WEIGHT_UNIT
    if outputs == "number":
        targets, errors_of = np.rint(rng.uniform(-0.1, 0.1, 40) / ERROR_UNIT), number_errors
        weights[ROWS.columns * WIDTH :] *= 0.2  # so that no error is clipped
        targets = targets.astype(np.int64)
    else:
        targets, errors_of = rng.integers(0, max(outputs, 2), 40), label_errors
    found = gradient(weights, inputs, targets, errors_of) * GRADIENT_UNIT
    step = 1e-4
    for place in range(weights.size):
        there, back = weights.copy(), weights.copy()
        there[place] += step
        back[place] -= step
        slope = loss(there, inputs, targets, outputs) - loss(back, inputs, targets, outputs)
        assert found[place] == pytest.approx(slope / (2 * step), abs=2e-2 if outputs == 3 else 1e-2)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32), st.floats(-4, 4), st.floats(-3, 1.2), st.sampled_from([1, 4, "number"])
)
def test_no_row_is_longer_than_the_bound_whatever_the_weights(seed, size, clip, outputs):
    size, clip = 10.0**size, 10.0**clip
    inputs, rng = inputs_of(12, seed), np.random.default_rng(seed)
    columns = 1 if outputs == "number" else outputs
    weights = weights_of(columns, seed, size)
    if outputs == "number":
        targets, errors_of = rng.integers(-(2**20), 2**20 + 1, 12), number_errors
    else:
        targets, errors_of = rng.integers(0, max(columns, 2), 12), label_errors
    parts = [
        gradient(weights, inputs[i : i + 1], targets[i : i + 1], errors_of, clip) for i in range(12)
    ]
    squares = [sum(int(v) ** 2 for v in part) for part in parts]  # Python's whole numbers
    assert max(squares) <= int(clip / GRADIENT_UNIT) ** 2
    # What a row adds does not depend on the rows beside it, nor on their order.
    together = gradient(weights, inputs, targets, errors_of, clip)
    np.testing.assert_array_equal(together, np.sum(parts, axis=0))
    np.testing.assert_array_equal(
        together, gradient(weights, inputs[::-1], targets[::-1], errors_of, clip)
    )


def test_a_long_gradient_keeps_its_direction_and_reaches_the_bound():
    inputs, targets = inputs_of(1), np.array([1])
    weights = weights_of(1, 3)
    whole = gradient(weights, inputs, targets, label_errors)
    short = gradient(weights, inputs, targets, label_errors, clip=0.1)
    assert np.linalg.norm(whole) * GRADIENT_UNIT > 0.1
    assert np.linalg.norm(short) * GRADIENT_UNIT == pytest.approx(0.1, rel=1e-3)
    cosine = whole.astype(float) @ short / np.linalg.norm(whole) / np.linalg.norm(short)
    assert cosine == pytest.approx(1, abs=1e-5)


def test_of_no_rows_the_sum_is_zero():
    found = gradient(weights_of(1), inputs_of(3)[:0], np.zeros(0, np.int64), label_errors)
    assert found.dtype == np.int64
    assert not found.any()


def test_the_largest_weights_and_longest_rows_do_not_overflow():
    """Sums are those of Python's whole numbers at the bounds that the docstring derives."""
    columns = 5
    inputs = sparse.csr_matrix(np.full((2, columns), 2**17, np.int64))
    network = Network(
        np.zeros((columns, 1024), np.int64),
        np.where(np.arange(1025)[:, None] % 2, LARGEST_WEIGHT, -LARGEST_WEIGHT).repeat(2, axis=1),
    )
    hidden = network.hidden(inputs)
    errors = np.array([[2**20, -(2**20)], [-(2**20), -(2**20)]])
    found = clipped_sum(network, inputs, hidden, errors, 16.0)
    behind = [[sum(int(e) * int(w) for e, w in zip(row, w, strict=True)) >> 16
               for w in network.last[:-1]] for row in errors]  # fmt: skip
    squares = [sum(b**2 for b in row) * columns * 2**34 for row in behind]
    squares = [
        s + sum(int(h) ** 2 for h in hidden[0]) * sum(int(e) ** 2 for e in row)
        for s, row in zip(squares, errors, strict=True)
    ]
    for row, square in enumerate(squares):
        alone = clipped_sum(
            network, inputs[row], hidden[row : row + 1], errors[row : row + 1], 16.0
        )
        factor = min(1.0, 16.0 / GRADIENT_UNIT / square**0.5)
        wanted = 2**17 * int(behind[row][0] * factor)
        assert alone[0] == pytest.approx(wanted, rel=1e-4, abs=2**17)
        found = found - alone
    assert not found.any()


@pytest.mark.parametrize("wrong", [np.zeros((4, 2)), np.full((4, 2), LARGEST_WEIGHT + 1)])
def test_weights_that_could_overflow_are_refused(wrong):
    with pytest.raises(SensitivityError, match="round and clip them"):
        Network(wrong, np.zeros((3, 1), np.int64))


def test_labels_of_three_classes_have_the_softmax():
    scores = np.array([[0.0, 1.0, -2.0], [700.0, 0.0, -700.0]])
    found = label_errors(scores, np.array([1, 2])) * ERROR_UNIT
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, chances - np.eye(3)[[1, 2]], atol=2e-6)


def test_errors_of_numbers_are_clipped():
    found = number_errors(np.array([[1e9], [-1e9], [0.5]]), np.array([0, 0, 2**19]))
    np.testing.assert_array_equal(found.ravel(), [2**20, -(2**20), 0])


def test_inputs_are_about_one_and_missing_values_add_nothing():
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, 1e9], "z": [-1.0, np.nan, -1e9], "c": ["a", None, "x"]}
    )
    rows = ROWS.encode(frame).toarray()
    assert rows[0].max() * UNIT == pytest.approx(1, abs=1e-3)
    assert (rows[1][:-1] == 0).all()
    assert (rows[2][:8] == rows[0][:8]).all()  # beyond the bounds, and clipped
    assert (rows[2][8:-1] == 0).all()  # of no known category
