"""LightGBM: the library's defaults, categories recognised, repeatable."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.dataset import load
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import ENCODINGS
from dprepro.experiment.splits import split_rows
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get


def build(task="binary", seed=0, **params):
    domain = Domain((NumericFeature("x", 0, 1),), ("0", "1"))
    return get("lightgbm").build(Setting(task, np.inf, 0.0, domain, seed), **params)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_it_predicts_what_the_bare_library_predicts(task):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=600), "b": rng.normal(size=600)})
    score = X["a"] * X["b"] + rng.normal(size=600) / 4
    y = score if task == "regression" else np.digitize(score, [0] if task == "binary" else [-1, 1])
    bare = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
    np.testing.assert_allclose(
        build(task).fit(X, y).predict(X), bare(n_jobs=1, verbose=-1).fit(X, y).predict(X)
    )


def test_categories_are_split_as_categories_and_not_as_numbers():
    rng = np.random.default_rng(0)
    feature = CategoricalFeature("c", tuple("abcdefgh"))
    frame = pd.DataFrame({"c": rng.choice(feature.categories, 2000)})
    y = frame["c"].isin(["a", "c", "e", "g"]).to_numpy().astype(int)
    X = ENCODINGS["category"](Domain((feature,), ("0", "1"))).transform(frame)
    # One split tells every second letter from the rest; numbers would need seven.
    model = build(n_estimators=1, num_leaves=2).fit(X, y)
    assert roc_auc_score(y, model.predict_proba(X)[:, 1]) == 1.0


@pytest.mark.parametrize("name", ['a "b"', "a:b", "a,b", "{a}", "ünï cödé"])
def test_any_feature_name_will_do(name):
    domain = Domain((NumericFeature(name, 0, 1),), ("0", "1"))
    frame = pd.DataFrame({name: np.linspace(0, 1, 200)})
    X = ENCODINGS["category"](domain).transform(frame)
    y = (frame[name] > 0.5).to_numpy().astype(int)
    assert (build().fit(X, y).predict(X) == y).mean() > 0.9


def test_parameters_reach_the_library():
    assert build(num_leaves=7, learning_rate=0.3).get_params()["num_leaves"] == 7


@pytest.mark.parametrize(("dataset", "published", "sd"), [("adult", 0.928, 0.003)])
def test_it_reaches_the_published_auc(data_dir, dataset, published, sd):
    table = load(dataset, data_dir)
    domain = Domain.observe(table.X, table.y, "binary")
    X = ENCODINGS["category"](domain).transform(table.X)
    train, test = split_rows(len(table.y), 0.2, 1, dataset, 0)
    scores = build().fit(X.iloc[train], table.y[train]).predict_proba(X.iloc[test])[:, 1]
    assert roc_auc_score(table.y[test], scores) == pytest.approx(published, abs=3 * sd)
