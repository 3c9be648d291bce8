"""Several classes: what is inferred, fits, files, exports, and what is refused."""

import csv
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from dprepro.additive.editing import level, set_value
from dprepro.additive.export.plain import to_python
from dprepro.additive.file import load_model, model_from_json, model_to_json, save_model
from dprepro.additive.shapes import shapes_of
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.bins import binned, histogram
from dprepro.methods.dp_ebm_plus.booster import Effect, averaging, question
from dprepro.methods.dp_ebm_plus.classes import (
    SOFTMAX,
    ClassBooster,
    ClassFunctions,
    _start,
)
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dp_ebm_plus.losses import Start
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.query import NoisyAnswer
from dprepro.release.predicting import Wanted, predictions
from dprepro.rows import backends
from dprepro.rows.table import Table
from dprepro.runtime.errors import DpreproError

LABELS = ("left", "middle", "right")
FEATURES = (
    NumericFeature("x", 0.0, 1.0, missing=True),
    NumericFeature("z", 0.0, 1.0),
    CategoricalFeature("c", ("a", "b", "d")),
)
DOMAIN = Domain(FEATURES, LABELS)


def drawn(rows=4000, seed=1):
    """Return a table, and the probabilities of three classes, one of them rare."""
    rng = np.random.default_rng(seed)
    x, c = rng.uniform(size=rows), rng.choice(3, rows)
    z = np.clip(x + 0.3 * rng.normal(size=rows), 0, 1)
    scores = np.stack([2 * np.sin(4 * x), np.where(c == 1, 1.5, 0.0), 3 * z - 3.5], axis=1)
    p = softmax(scores, axis=1)
    y = (p.cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1)
    X = pd.DataFrame({"x": x, "z": z, "c": pd.Categorical.from_codes(c, ["a", "b", "d"])})
    return X, np.minimum(y, 2), p


def fitted(epsilon=1.0, rows=4000, domain=DOMAIN, **given):
    X, y, _ = drawn(rows)
    settings = {"n_epochs": 8, "random_state": 2, **given}
    return DPEBMPlusClassifier(epsilon, domain=domain, **settings).fit(X, y)


# --- what is inferred ---------------------------------------------------------------------------


class Counts:
    """A curator that was asked for rows of each class."""

    def __init__(self, counts, scale):
        self.answered = NoisyAnswer(np.array(counts, float), scale)

    def open_totals(self, mu, budget):
        assert 0 < mu < 1

    def answer(self, query):
        return self.answered


def test_rates_follow_from_the_counts_and_noise_keeps_them_off_zero():
    rates, start = _start(Counts([700, 200, 100], 1.0), PrivacyBudget(1.0, 1e-6))
    np.testing.assert_allclose(rates, [0.7, 0.2, 0.1])
    assert start.rows == 1000
    assert start.noise == pytest.approx(3**0.5)
    assert start.slope == pytest.approx((1 / 0.7 + 1 / 0.2 + 1 / 0.1) ** -0.5)
    rates, _ = _start(Counts([700, 320, -20], 50.0), PrivacyBudget(1.0, 1e-6))
    np.testing.assert_allclose(rates, np.array([0.7, 0.32, 0.05]) / 1.07)
    rates, start = _start(Counts([-700, -320, 900], 5e4), PrivacyBudget(1.0, 1e-6))
    np.testing.assert_allclose(rates, 1 / 3)
    assert start.rows == pytest.approx(5e4 * 3**0.5)


def booster(rates, counts, noise=1e-6, epochs=4):
    """Return what learns one feature of these bins."""
    rates, counts = np.array(rates), np.array(counts, float)
    feature = CategoricalFeature("c", tuple("abcdefgh"[: counts.size]))
    asked = histogram(0, feature, 1e-3, counts.sum())
    answer = NoisyAnswer(np.append(counts, 0.0) * asked.code.weights, 1e-3)
    found = binned(feature, asked, answer, counts.sum())
    start = Start(counts.sum(), 1.0, 0.0, 1 / 3, 0.2, 1.1, 0.5**0.5)
    asked = question(0, found, noise, 1.0)
    return ClassBooster(
        SOFTMAX, start, [Effect(0, found.counts)], [asked], noise, averaging(epochs), rates=rates
    )


def test_a_margin_is_the_log_odds_of_a_class_against_the_others():
    learner = booster([0.5, 0.3, 0.2], [400, 300, 300])
    values = np.array([[1.0, -2.0, 0.0], [0.5, 0.0, 3.0], [-1.5, 0.25, 0.0]])
    for effect, each in zip(learner.functions[0], values, strict=True):
        effect.move(each)
    learner._set_margins()
    levels = np.log([0.5, 0.3, 0.2])
    p = softmax(levels[:, None] + values, axis=0)
    for s, effect in enumerate(learner.functions[0]):
        level = np.log(learner._rates[s] / (1 - learner._rates[s]))
        np.testing.assert_allclose(level + effect.margin, np.log(p[s] / (1 - p[s])), atol=1e-6)


def exact_answer(learner, joint):
    """Return what rows, joint (B, S), add where nothing is clipped, without noise."""
    values = np.stack([effect.values for effect in learner.functions[0]], axis=1)
    p = softmax(learner.class_levels + values, axis=1)
    sums = joint - joint.sum(axis=1, keepdims=True) * p
    level, code = learner.class_residuals().codes
    vectors = code.mix - code.centre[:, None]
    numbers = [level.weights[:, None] * sums.sum(axis=0)]
    numbers.append(code.weights[:, None] * (vectors @ sums) / 256)
    return NoisyAnswer(np.concatenate(numbers), 1e-6)


@pytest.mark.parametrize("classes", [3, 6])
def test_without_noise_functions_become_the_log_odds_of_the_bins(classes):
    rng = np.random.default_rng(classes)
    joint = rng.dirichlet(np.ones(classes), 4) * np.array([4e4, 3e4, 2e4, 1e4])[:, None] + 400
    learner = booster(joint.sum(axis=0) / joint.sum(), joint.sum(axis=1), epochs=60)
    for number in range(60):
        learner.learn(exact_answer(learner, joint), number)
    found = ClassFunctions.of(learner.functions[0]).values
    expected = np.log(joint)
    shares = joint.sum(axis=1) / joint.sum()
    for each in (found, expected):
        each -= each.mean(axis=1, keepdims=True)
        each -= shares @ each
    np.testing.assert_allclose(found, expected, atol=0.06)
    levels = learner.class_levels + np.stack([e.values for e in learner.functions[0]], axis=1)
    p = shares @ softmax(levels, axis=1)
    np.testing.assert_allclose(p, joint.sum(axis=0) / joint.sum(), atol=2e-3)


def test_what_all_classes_share_in_an_answer_is_noise_and_moves_nothing():
    joint = np.array([[300.0, 50, 50], [100, 250, 250]])
    moved = []
    for shift in (0.0, 1e5):
        learner = booster([0.4, 0.3, 0.3], [400, 600])
        answer = exact_answer(learner, joint)
        moves = learner.learn(NoisyAnswer(answer.value + shift, answer.scale), 0)
        moved.append([move.change for move in moves])
    for one, other in zip(*moved, strict=True):
        np.testing.assert_allclose(one, other, atol=2)
        assert one.shape[1] == 3
        assert one.dtype == np.int32
    assert np.abs(moved[0][1]).max() > 2**20


def test_functions_add_up_to_zero_over_the_classes_and_so_does_their_variance():
    effects = [Effect(0, np.array([5.0, 5.0])) for _ in range(3)]
    for k, effect in enumerate(effects):
        effect.move(np.array([k, k * k], float))
        effect.band = np.array([1.0, k])
    found = ClassFunctions.of(effects)
    np.testing.assert_allclose(found.values.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(found.values[1], [-5 / 3, -2 / 3, 7 / 3])
    # Of independent values: (1 - 1/3)^2 v_s and 1/9 of the others.
    np.testing.assert_allclose(found.band[0], np.sqrt(2 / 3))
    squares = np.array([0.0, 1.0, 4.0])
    expected = 4 / 9 * squares + (squares.sum() - squares) / 9
    np.testing.assert_allclose(found.band[1] ** 2, expected)


# --- fits ---------------------------------------------------------------------------------------


def test_a_fit_learns_what_is_there_and_spends_what_it_says():
    X, y, p = drawn()
    model = fitted()
    assert model.classes_.tolist() == [0, 1, 2]
    assert [entry.uses for entry in model.ledger_.entries] == [1, 3, 8]
    assert 0.99 < model.ledger_.spent_epsilon() < 1 + 1e-5
    scores = model.decision_function(X)
    assert scores.shape == (4000, 3)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found, softmax(scores, axis=1))
    np.testing.assert_array_equal(model.predict(X), found.argmax(axis=1))
    rates = np.bincount(y) / y.size
    constant = log_loss(y, np.tile(rates, (y.size, 1)))
    assert log_loss(y, found) < constant - 0.6 * (constant - log_loss(y, p))
    assert [shape.shape[1] for shape in model.shape_functions_] == [3, 3, 3]
    for shape, noise, bins in zip(
        model.shape_functions_, model.shape_noise_, model.bins_, strict=True
    ):
        assert len(shape) == bins.n_bins
        assert noise.shape == shape.shape
        np.testing.assert_allclose(shape.sum(axis=1), 0, atol=1e-6)
    assert model.intercept_.shape == (3,)
    parts = model.contributions(X)
    assert parts.shape == (4000, 3, 3)
    np.testing.assert_allclose(model.intercept_ + parts.sum(axis=1), scores)


def test_without_noise_it_is_as_good_as_a_multinomial_regression_on_the_bins():
    X, y, _ = drawn(40_000)
    model = DPEBMPlusClassifier(1000.0, domain=DOMAIN, random_state=0).fit(X, y)
    new, answers, truth = drawn(40_000, seed=5)
    codes = [
        [bins.encode(rows[name]) for name, bins in zip(rows, model.bins_, strict=True)]
        for rows in (X, new)
    ]
    one_hot = [
        np.hstack([np.eye(b.n_bins)[c] for b, c in zip(model.bins_, each, strict=True)])
        for each in codes
    ]
    other = LogisticRegression(C=0.3, max_iter=500).fit(one_hot[0], y)
    of_other = log_loss(answers, other.predict_proba(one_hot[1]))
    assert log_loss(answers, model.predict_proba(new)) < of_other + 0.002
    assert log_loss(answers, model.predict_proba(new)) < log_loss(answers, truth) + 0.006


def test_where_all_is_noise_probabilities_are_about_even():
    X, y, _ = drawn(200)
    largest = []
    for seed in range(5):
        model = DPEBMPlusClassifier(0.01, domain=DOMAIN, random_state=seed).fit(X, y)
        found = model.predict_proba(X)
        assert np.isfinite(found).all()
        assert any(np.abs(shape).max() > 0 for shape in model.shape_functions_)
        largest.append(np.abs(np.log(found)).max())
    # Noise alone may look like a large effect, or like a rare class, but seldom.
    assert np.median(largest) < 6


def test_labels_as_text_are_sorted_and_give_the_same_functions():
    X, y, _ = drawn()
    domain = Domain(FEATURES, ("right", "left", "middle"))
    texts = np.array(domain.target)[y]
    model = DPEBMPlusClassifier(1.0, domain=domain, n_epochs=3, random_state=0).fit(X, texts)
    assert model.classes_.tolist() == ["left", "middle", "right"]
    assert set(model.predict(X)) <= set(model.classes_)
    assert model.score(X, texts) > 0.5
    # A class that no row has is a class.
    none = y < 2
    model = DPEBMPlusClassifier(1.0, domain=DOMAIN, n_epochs=3).fit(X[none], y[none])
    assert model.predict_proba(X).shape[1] == 3


def test_classes_may_be_read_from_the_rows_of_experiments():
    X, y, _ = drawn()
    with pytest.warns(UserWarning, match="Epsilon does not cover"):
        model = DPEBMPlusClassifier(observed=True, n_epochs=3).fit(X, np.array(LABELS)[y])
    assert model.classes_.tolist() == sorted(LABELS)
    assert not model.ledger_.holds


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (lambda y: y + 1, "'left' and 'middle' and 'right' as text, or their codes 0 to 2"),
        (lambda y: np.array(["left", "right", "up"])[y], "it holds something else"),
        (lambda y: np.where(y > 1, np.nan, y), "contains NaN"),
    ],
)
def test_other_labels_are_refused(y, message):
    X, given, _ = drawn(50)
    with pytest.raises(ValueError, match=message):
        DPEBMPlusClassifier(domain=DOMAIN).fit(X, y(given))


def test_what_is_for_two_labels_is_refused_before_the_fit():
    X, y, _ = drawn(50)
    with pytest.raises(ValueError, match="monotone is for two labels"):
        DPEBMPlusClassifier(domain=DOMAIN, monotone={"x": "increasing"}).fit(X, y)
    with pytest.raises(ValueError, match="has no pairs of features"):
        DPEBMPlusClassifier(domain=DOMAIN, pairs=1).fit(X, y)


# --- the same bits wherever rows lie ------------------------------------------------------------


def same(one, other):
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    for name in ("shape_functions_", "shape_noise_", "bin_counts_"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    one = fitted()
    monkeypatch.setattr(backends, "LEAST_ROWS", 100)
    for number in (2, 5):
        same(one, fitted(n_jobs=number))


@pytest.mark.parametrize("encrypted", [False, True])
def test_rows_in_chunks_give_the_same_bits(tmp_path, encrypted):
    X, y, _ = drawn()
    X.assign(y=np.array(LABELS)[y]).to_csv(tmp_path / "rows.csv", index=False)
    made = DPEBMPlusClassifier(1.0, domain=DOMAIN, n_epochs=8, random_state=2)
    table = Table.open(tmp_path / "rows.csv", store=tmp_path / "kept", encrypted=encrypted)
    rows = pd.read_csv(tmp_path / "rows.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "chunks", _in_chunks(Table.chunks, 700))
        found = made.fit(table, "y")
    assert found.classes_.tolist() == sorted(LABELS)
    rows["c"] = rows["c"].astype("category")
    same(found, made.fit(rows.drop(columns="y"), rows["y"]))


def _in_chunks(chunks, size):
    return lambda self, kinds, _=None: chunks(self, kinds, size)


# --- files, predictions, exports ----------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    found = fitted()
    found.labels_ = LABELS
    return found


def rows_to_predict():
    X = drawn(60, seed=3)[0]
    X.loc[:3, "x"] = np.nan
    return X


def test_a_file_has_the_model(model, tmp_path):
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    X = rows_to_predict()
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.class_names == LABELS
    assert loaded.ledger_.spent_epsilon() == model.ledger_.spent_epsilon()
    save_model(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(version=2), "several classes are for version 4"),
        (lambda v: v.update(task="binary"), "a binary model has two classes"),
        (lambda v: v.update(classes=[0, 2, 1]), "classes must ascend"),
        (lambda v: v.update(labels=["a", "b"]), "names of the classes, one for each"),
        (lambda v: v.update(intercept=3), "of several classes one for each class"),
        (lambda v: v["features"][0]["values"][0].append(1), "one for each class"),
        (lambda v: v["features"][0]["noise"][0].pop(), "at least 3 items"),
        (lambda v: v["features"][1].update(values=[1] * 9), "bins"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(model, change, message):
    values = model_to_json(model)
    change(values)
    with pytest.raises(DpreproError, match=message):
        model_from_json(values)


def test_predictions_have_a_probability_of_each_class_and_explain_the_likeliest(model):
    X = rows_to_predict()
    found = predictions(model, X, Wanted(explain=True))
    p = model.predict_proba(X)
    for name, column in zip(LABELS, p.T, strict=True):
        np.testing.assert_array_equal(found[f"probability of {name}"], column)
    np.testing.assert_array_equal(found["prediction"], np.array(LABELS)[p.argmax(axis=1)])
    parts = sum(found[f"contribution of {name}"] for name in "xzc")
    np.testing.assert_allclose(found["intercept"] + parts, found["log_odds"])
    np.testing.assert_allclose(found["log_odds"], model.decision_function(X).max(axis=1))


def test_the_python_export_says_what_the_model_says(model, tmp_path):
    X = rows_to_predict()
    X.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "model.py").write_text(to_python(model), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "model.py"), str(tmp_path / "new.csv")],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    said = list(csv.DictReader(io.StringIO(done.stdout)))
    expected = predictions(model, X, Wanted(explain=True))
    assert [*said[0]] == [*expected, "notes"]
    assert [row["prediction"] for row in said] == expected.pop("prediction").tolist()
    for name, column in expected.items():
        np.testing.assert_allclose([float(row[name]) for row in said], column, atol=1e-12)


def test_functions_are_shown_class_by_class(model):
    shapes = shapes_of(model)
    for k, shape in enumerate(shapes):
        assert shape.classes == LABELS
        for s in range(len(LABELS)):
            one = shape.of_class(s)
            np.testing.assert_array_equal(one.values, model.shape_functions_[k][:, s])
            np.testing.assert_array_equal(one.noise, model.shape_noise_[k][:, s])
            assert (one.classes, one.counts is shape.counts) == ((), True)


def test_what_is_not_made_of_several_classes_is_refused(model):
    refused = {
        "an edit": lambda: level(model, "x", 0.1, 0.5),
        "an edit takes": lambda: set_value(model, "x", 0.5, 1.0),
    }
    for what, ask in refused.items():
        with pytest.raises(DpreproError, match=f"{what}.* and this one has 3 classes"):
            ask()
