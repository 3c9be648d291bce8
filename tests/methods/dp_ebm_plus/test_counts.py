"""Counts: residuals from an exponential of the same bits anywhere, rates that are found, files."""

import csv
import io
import math
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from dprepro import load_model, save_model
from dprepro.additive.describe import measure_of, unit_of
from dprepro.additive.editing import set_value, undo
from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.additive.file import model_from_json, model_to_json
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.experiment.metrics import score as scores_of_fit
from dprepro.experiment.metrics import scorer_names
from dprepro.methods import registry
from dprepro.methods.dp_ebm_plus.clipping import EDGES, MAGNITUDES
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import (
    COUNTS,
    UNIT,
    from_units,
    limited_residuals,
    to_units,
)
from dprepro.methods.dp_ebm_plus.losses import POISSON
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    Magnitudes,
    Residuals,
    Start,
    Totals,
)
from dprepro.release.predicting import Wanted, predictions
from dprepro.rows import backends
from dprepro.rows.table import Table
from dprepro.runtime.errors import DpreproError
from tests.methods.dp_ebm_plus.coded_rows import (
    EXTREMES,
    asked,
    random_codes,
    random_rows,
    sums_of,
    vectors,
)

LARGEST = 200.0
FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("z", 0, 1),
    CategoricalFeature("c", ("a", "b", "c")),
)
DOMAIN = Domain(FEATURES, (0.0, LARGEST))


def drawn(rows=4000, shape=None, seed=1):
    """Return features, counts and their means; gamma-distributed means if `shape` is given."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.uniform(size=rows),
            "z": rng.uniform(size=rows),
            "c": rng.choice(list("abc"), rows, p=[0.6, 0.3, 0.1]),
        }
    )
    effect = X["c"].map({"a": 0.0, "b": -0.7, "c": 1.0}).to_numpy()
    means = 5 * np.exp(1.2 * np.sin(6 * X["x"]) + 0.8 * X["z"] + effect).to_numpy()
    spread = 1.0 if shape is None else rng.gamma(shape, 1 / shape, rows)
    return X, np.minimum(rng.poisson(means * spread), LARGEST).astype(float), means


def fitted(epsilon=1.0, rows=4000, shape=None, **more):
    X, y, _ = drawn(rows, shape)
    given = {"n_epochs": 16, "random_state": 2, "loss": "poisson", "domain": DOMAIN, **more}
    return DPEBMPlusRegressor(epsilon, **given).fit(X, y)


def deviance(y, p):
    return 2 * np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1) / p), 0) - y + p)


# --- what a row adds ----------------------------------------------------------------------------


def test_residuals_are_counts_less_exponentials_of_scores():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(-2, 2, 3000), EXTREMES, -np.geomspace(1e-8, 60, 500)])
    targets = to_units(rng.uniform(0, 1, scores.size))
    whole, found = to_units(scores), np.empty(scores.size, np.int32)
    ones = np.ones(scores.size, np.int32)
    limited_residuals(whole, targets, ones, 2.0**24, COUNTS, found)
    expected = from_units(targets) - np.exp(np.minimum(from_units(whole), 0.0))
    np.testing.assert_allclose(from_units(found), expected, atol=1.02 * UNIT)
    assert np.abs(found).max() <= 2**24
    limited_residuals(whole, targets, ones, 0.1 * 2**24, COUNTS, found)
    np.testing.assert_allclose(from_units(found), np.clip(expected, -0.1, 0.1), atol=1.02 * UNIT)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bound", [0.02, 0.7, 3.0])
def test_sums_are_what_numpy_says_and_no_row_adds_more_than_the_bound(seed, bound):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, features=3)
    rows = random_rows(rng, codes, 60)
    rows.targets[:] = to_units(rng.uniform(0, 1, 60))
    query = asked(codes, bound)
    parts = np.array(
        [sums_of(rows.part(slice(k, k + 1)), query, kind=COUNTS).value for k in range(60)]
    )
    assert np.linalg.norm(parts, axis=1).max() <= bound * (1 + 1e-12)
    np.testing.assert_allclose(
        parts.sum(axis=0), sums_of(rows, query, kind=COUNTS).value, atol=1e-12
    )
    residuals = from_units(rows.targets) - np.exp(np.minimum(from_units(rows.scores), 0.0))
    u = vectors(query, rows.bins)
    limits = bound / np.linalg.norm(u, axis=1)
    expected = np.clip(residuals, -limits, limits)[:, None] * u
    np.testing.assert_allclose(parts, expected, atol=2e-4 * bound + 2e-5)


def exact(y, **weights):
    X, _, _ = drawn(len(y))
    return ExactAnswers.of(Rows(X, np.asarray(y, float), **weights), DOMAIN, POISSON)


def test_totals_count_from_the_middle_of_the_range():
    y = np.array([0.0, 50.0, 200.0, 1e6, -3.0])
    shares = np.clip(y / LARGEST, 0, 1) - 0.5
    found = exact(y).answer(Totals.up_to(2)).value
    np.testing.assert_allclose(found, [5, shares.sum(), 4 * (shares**2).sum()], atol=1e-5)


def test_sizes_and_levels_are_those_of_the_residuals():
    y = drawn(500)[1]
    answers = exact(y)
    answers.follow(Start(int(to_units(math.log(0.05)))))
    residuals = y / LARGEST - 0.05
    counts = answers.answer(Magnitudes(1.0, 1.0)).numbers
    cells = np.minimum(np.searchsorted(-EDGES, -np.abs(residuals), "right"), MAGNITUDES - 1)
    assert counts.sum() == 500
    assert np.abs(counts - np.bincount(cells, minlength=MAGNITUDES)).sum() <= 4  # on an edge
    for bound in (0.01, 1.0):
        found = answers.answer(Residuals(bound, 1.0, INTERCEPT, bound)).value
        assert found[0] == pytest.approx(np.clip(residuals, -bound, bound).sum(), abs=1e-3)


# --- what is made of answers --------------------------------------------------------------------


def test_rates_of_the_bins_add_up_to_the_released_one_and_are_their_slopes():
    start = POISSON.start(1000.0, 1.0, np.array([-450.0, 210.0]), np.array([1.0, 1.0]))
    assert start.rate == pytest.approx(0.05)
    assert start.level == pytest.approx(math.log(0.05))
    shares, values = np.array([0.5, 0.3, 0.2]), np.array([-2.0, 0.0, 3.0])
    rates, slopes = POISSON.response(values, shares, start, 0.0, others=1.5)
    assert (shares * rates).sum() == pytest.approx(0.05)
    np.testing.assert_allclose(rates / rates[1], np.exp(values))
    np.testing.assert_array_equal(rates, slopes)
    assert POISSON.sampling(0.02, start) == pytest.approx(0.4)
    lost = POISSON.start(1000.0, 1.0, np.array([-600.0, 0.0]), np.array([90.0, 90.0]))
    assert lost.rate == pytest.approx(0.09)


@pytest.mark.parametrize("shape", [None, 1.5])
def test_without_noise_a_fit_is_the_minimum_on_its_bins(shape):
    X, y, _ = drawn(6000, shape)
    model = fitted(1e3, 6000, shape, n_epochs=64)

    def design(X):
        columns = [
            np.eye(bins.n_bins)[bins.encode(X[name])][:, 1:]
            for name, bins in zip(X.columns, model.bins_, strict=True)
        ]
        return np.hstack([np.ones((len(X), 1)), *columns])

    seen = design(X)

    def loss(beta):
        rates = np.exp(seen @ beta)
        return np.mean(rates - y * np.log(rates)), seen.T @ (rates - y) / len(y)

    start = np.zeros(seen.shape[1])
    start[0] = math.log(y.mean())
    best = minimize(loss, start, jac=True, method="L-BFGS-B").x
    # Categories are shrunk little; the functions of numbers, of 250 bins each, all the better.
    of_c = model.shape_functions_[2]
    np.testing.assert_allclose(of_c[1:] - of_c[0], best[-2:], atol=0.05)
    X, y, _ = drawn(6000, shape, seed=7)
    assert deviance(y, model.predict(X)) < deviance(y, np.exp(design(X) @ best))
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.03)


@pytest.mark.parametrize(("epsilon", "worse"), [(8.0, 1.03), (1.0, 1.15)])
@pytest.mark.parametrize("shape", [None, 1.5])
def test_rates_are_found_under_noise(shape, epsilon, worse):
    """Skewed counts are clipped more on one side; the mean is found all the same."""
    X, y, means = drawn(8000, shape)
    model = fitted(epsilon, 8000, shape, n_epochs=64)
    own = model.predict(X)
    assert (
        deviance(y, own) < worse * deviance(y, means) < 0.8 * deviance(y, np.full_like(y, y.mean()))
    )
    assert own.mean() == pytest.approx(y.mean(), rel=0.06)
    assert ((own > 0) & (own <= LARGEST)).all()


def test_functions_that_depend_on_each_other_settle():
    """Hours of the night lower the logarithm far; the level must not follow them down."""
    rng = np.random.default_rng(4)
    hour = rng.integers(0, 24, 6000)
    means = 100 * np.where(hour < 6, 0.02, 1.0) * np.exp(0.3 * np.sin(hour))
    X = pd.DataFrame({"x": hour / 24, "z": (hour + rng.normal(0, 0.5, 6000)).clip(0, 24) / 24})
    y = np.minimum(rng.poisson(means), 400).astype(float)
    domain = Domain(FEATURES[:2], (0.0, 400.0))
    for epsilon in (1.0, 1e3):
        model = DPEBMPlusRegressor(epsilon, domain=domain, random_state=0, loss="poisson")
        own = model.fit(X, y).predict(X)
        assert own.mean() == pytest.approx(y.mean(), rel=0.05)
        assert np.sqrt(np.mean((np.log(own) - np.log(means)) ** 2)) < 0.6


def test_rare_large_counts_are_not_clipped_away():
    """A level that follows clipped residuals alone would leave most of the counts out."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x": rng.uniform(size=4000), "z": rng.uniform(size=4000)})
    means = np.where(X["x"] > 0.98, 500.0, 1.0)
    y = np.minimum(rng.poisson(means), 1000).astype(float)
    domain = Domain(FEATURES[:2], (0.0, 1000.0))
    model = DPEBMPlusRegressor(10, domain=domain, random_state=0, loss="poisson").fit(X, y)
    own = model.predict(X)
    assert own.mean() == pytest.approx(y.mean(), rel=0.1)
    assert deviance(y, own) < 0.15 * deviance(y, np.full_like(y, y.mean()))


def test_copies_of_a_feature_do_not_go_too_far_together():
    rng = np.random.default_rng(6)
    z = rng.normal(size=3000)
    names = [f"f{k}" for k in range(12)]
    X = pd.DataFrame({name: np.clip(z + 0.05 * rng.normal(size=3000), -4, 4) for name in names})
    y = np.minimum(rng.poisson(np.exp(1 + 0.8 * z)), 300).astype(float)
    domain = Domain(tuple(NumericFeature(name, -4, 4) for name in names), (0.0, 300.0))
    for epsilon in (1.0, 1e4):
        model = DPEBMPlusRegressor(epsilon, domain=domain, random_state=0, loss="poisson")
        own = model.fit(X, y).predict(X)
        assert own.mean() == pytest.approx(y.mean(), rel=0.05)
        assert deviance(y, own) < 1.5 * deviance(y, np.exp(1 + 0.8 * z))


def test_where_all_is_noise_predictions_stay_near_the_mean():
    X = drawn(300)[0]
    own = fitted(0.01, 300).predict(X)
    assert np.isfinite(own).all()
    assert ((own > 0) & (own <= LARGEST)).all()


def test_the_ledger_spends_what_it_says_and_names_counts():
    ledger = fitted(n_epochs=8).ledger_
    assert [entry.uses for entry in ledger.entries] == [1, 3, 8]
    assert 0.99 < ledger.spent_epsilon() < 1 + 1e-5
    assert "as part of the largest target" in ledger.entries[-1].releases


# --- the estimator ------------------------------------------------------------------------------


def test_counts_begin_at_zero():
    X, y, _ = drawn(50)
    domain = Domain(FEATURES, (1.0, 9.0))
    with pytest.raises(ValueError, match=r"counts, which begin at 0, but .* from 1 to 9: state"):
        DPEBMPlusRegressor(domain=domain, loss="poisson").fit(X, y)


def test_another_loss_is_refused_and_a_classifier_has_none():
    X, y, _ = drawn(50)
    with pytest.raises(ValueError, match="loss must be one of 'squared_error', 'poisson'"):
        DPEBMPlusRegressor(domain=DOMAIN, loss="gamma").fit(X, y)
    with pytest.raises(ValueError, match="no pairs of features: give pairs=0, or loss='squared"):
        DPEBMPlusRegressor(domain=DOMAIN, loss="poisson", pairs=2).fit(X, y)
    with pytest.raises(TypeError):
        DPEBMPlusClassifier(loss="poisson")


def test_a_config_can_ask_for_counts_where_targets_are_numbers():
    method = registry.get("dp-ebm-plus")
    method.check_values("regression", 1.0, {"loss": "poisson"})
    with pytest.raises(ValueError, match="loss: not for a binary task, leave it out"):
        method.check_values("binary", 1.0, {"loss": "poisson"})


def test_a_fit_of_numbers_after_one_of_counts_has_no_link():
    X, y, _ = drawn(500)
    model = DPEBMPlusRegressor(8, domain=DOMAIN, n_epochs=2, loss="poisson").fit(X, y)
    assert model.has_log_link
    assert not model.set_params(loss="squared_error").fit(X, y).has_log_link


def test_functions_can_be_made_monotone():
    model = fitted(n_epochs=4, monotone={"z": "increasing"})
    assert (np.diff(model.shape_functions_[1]) >= 0).all()


def test_metrics_of_a_run_can_be_deviances():
    assert "mean_poisson_deviance" in scorer_names("regression")
    X, y, _ = drawn()
    model = fitted()
    found = scores_of_fit(model, X, y, "regression", 0, ["mean_poisson_deviance"])
    assert found.values["mean_poisson_deviance"] == pytest.approx(deviance(y, model.predict(X)))
    assert not found.absent


def same(one, other):
    assert one.intercept_ == other.intercept_
    for name in ("shape_functions_", "shape_noise_", "bin_counts_"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    one = fitted(n_epochs=4)
    monkeypatch.setattr(backends, "LEAST_ROWS", 500)
    same(one, fitted(n_epochs=4, n_jobs=3))


@pytest.mark.parametrize("encrypted", [False, True])
def test_rows_in_chunks_give_the_same_bits(tmp_path, encrypted):
    X, y, _ = drawn()
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    made = DPEBMPlusRegressor(1.0, domain=DOMAIN, n_epochs=4, random_state=2, loss="poisson")
    table = Table.open(tmp_path / "rows.csv", store=tmp_path / "kept", encrypted=encrypted)
    chunks = Table.chunks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "chunks", lambda self, kinds, _=None: chunks(self, kinds, 700))
        found = made.fit(table, "y")
    rows = pd.read_csv(tmp_path / "rows.csv")
    rows["c"] = rows["c"].astype("category")
    same(found, made.fit(rows.drop(columns="y"), rows["y"]))


# --- files, predictions, exports ----------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return fitted()


def rows_to_predict():
    return drawn(60, seed=3)[0]


def test_a_prediction_is_the_exponential_of_the_sum(model):
    X = rows_to_predict()
    sums = model.scores_of(model.contributions(X))
    np.testing.assert_allclose(model.predict(X), np.minimum(np.exp(sums), LARGEST))
    assert model.targets_of(np.array([1e6, -1e6])).tolist() == [LARGEST, 0.0]
    assert measure_of(model) == unit_of(model) == "logarithm of the target"


def test_a_file_has_the_model(model, tmp_path):
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    X = rows_to_predict()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.has_log_link
    edit = set_value(loaded, "c", "b", 0.5)
    assert edit is not None
    save_model(loaded, tmp_path / "edited.json")
    again = load_model(tmp_path / "edited.json")
    np.testing.assert_array_equal(again.predict(X), loaded.predict(X))
    undo(again)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(version=2), "a link is for version 5, which needs it"),
        (lambda v: v.pop("link"), "a link is for version 5, which needs it"),
        (lambda v: v.update(link="identity"), "link"),
        (lambda v: v.update(range=None), "a range of numbers that are not negative"),
        (lambda v: v.update(range=[-1, 5]), "a range of numbers that are not negative"),
        (lambda v: v.update(task="binary", classes=[0, 1]), "range"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(model, change, message):
    values = model_to_json(model)
    change(values)
    with pytest.raises(DpreproError, match=message):
        model_from_json(values)


def test_predictions_explain_the_sum(model):
    X = rows_to_predict()
    found = predictions(model, X, Wanted(explain=True))
    np.testing.assert_array_equal(found["prediction"], model.predict(X))
    parts = sum(found[f"contribution of {name}"] for name in "xzc")
    np.testing.assert_allclose(found["intercept"] + parts, found["sum"])
    np.testing.assert_allclose(np.exp(found["sum"]), found["prediction"])


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
    for name, column in expected.items():
        np.testing.assert_allclose(
            [float(row[name]) for row in said], column, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_the_sql_export_says_what_the_model_says(model, dialect):
    X = rows_to_predict()
    query = to_sql(model, "X", dialect)
    if dialect == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        found = duckdb.sql(query).df()
    else:
        with sqlite3.connect(":memory:") as connection:
            X.to_sql("X", connection, index=False)
            found = pd.read_sql(query, connection)
    np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-12)
    assert (found["notes"].fillna("") == "").all()


def test_sums_beyond_the_range_are_clipped_in_sql(model):
    high = model_from_json(model_to_json(model))
    high.intercept_ = 900.0
    X = rows_to_predict()
    with sqlite3.connect(":memory:") as connection:
        X.to_sql("X", connection, index=False)
        for level, expected in ((900.0, LARGEST), (-2000.0, 0.0)):
            high.intercept_ = level
            found = pd.read_sql(to_sql(high, "X", "sqlite"), connection)
            np.testing.assert_allclose(found["prediction"], expected, atol=1e-300, rtol=1e-12)


def test_the_onnx_export_says_what_the_model_says(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    from dprepro.additive.export.onnx import save_onnx

    save_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    X = rows_to_predict()
    given = {
        each.name: X[[each.name]].to_numpy(object if each.name == "c" else None)
        for each in session.get_inputs()
    }
    (found,) = session.run(["prediction"], given)
    np.testing.assert_allclose(found.ravel(), model.predict(X), rtol=1e-12)


def test_interpret_predicts_what_the_model_predicts(model):
    pytest.importorskip("interpret")
    X = rows_to_predict()
    np.testing.assert_allclose(model.to_interpret().predict(X), model.predict(X), rtol=1e-12)


def test_there_are_no_intervals_of_counts(model):
    with pytest.raises(DpreproError, match="a model of counts, which has no prediction intervals"):
        model.predict_interval(rows_to_predict())
