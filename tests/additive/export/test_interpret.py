"""interpret's machine says what the model says, and explains it."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from dprepro.additive.editing import set_value
from dprepro.runtime.errors import DpreproError
from tests.additive import small

glassbox = pytest.importorskip("interpret.glassbox")


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
def test_the_classifier_predicts_as_the_model(more: dict) -> None:
    model, X = small.model(**more), small.rows()
    ebm = model.to_interpret()
    assert isinstance(ebm, glassbox.ExplainableBoostingClassifier)
    scores = model.decision_function(X)
    np.testing.assert_allclose(ebm.decision_function(X), scores, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ebm.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12)
    assert ebm.predict(X).tolist() == np.array(model.labels_)[model.predict(X)].tolist()
    np.testing.assert_allclose(ebm.eval_terms(X), model.contributions(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("more", [{}, small.PAIRS], ids=["features", "pairs"])
@pytest.mark.parametrize("limits", [[-1.0, 2.0], None])
def test_the_regressor_predicts_as_the_model(limits: list | None, more: dict) -> None:
    model, X = small.model("regression", range=limits, **more), small.rows()
    ebm = pickle.loads(pickle.dumps(model.to_interpret()))
    assert isinstance(ebm, glassbox.ExplainableBoostingRegressor)
    np.testing.assert_allclose(ebm.predict(X), model.predict(X), rtol=0, atol=1e-12)
    assert (np.ptp(ebm.predict(X)) > 3.0) == (limits is None)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_dashboard_has_what_it_shows(task: str) -> None:
    model = small.model(task)
    ebm = model.to_interpret()
    whole = ebm.explain_global()
    age, town = whole.data(0), whole.data(3)
    values = model.shape_functions_[0]
    assert age["scores"].tolist() == values[:5].tolist()
    noise = np.arange(5) * 2.0**-28
    np.testing.assert_allclose(age["upper_bounds"], values[:5] + noise, rtol=0, atol=1e-15)
    assert age["names"][1:-1] == small.CUTS
    assert town["names"] == list(small.TOWNS)
    groups = model.bins_[3].groups
    assert town["scores"].tolist() == model.shape_functions_[3][groups].tolist()
    assert town["density"]["scores"] == [1.0, 1.0, 1.5, 1.5, 1.0]
    local = ebm.explain_local(small.rows(5), np.zeros(5)).data(2)
    np.testing.assert_array_equal(local["scores"], model.contributions(small.rows(5))[2])


def test_importances_are_weighted_by_the_rows_in_bins() -> None:
    model = small.model()
    expected = [
        np.average(np.abs(values), weights=counts)
        for values, counts in zip(model.shape_functions_, model.bin_counts_, strict=True)
    ]
    np.testing.assert_allclose(model.to_interpret().term_importances(), expected, rtol=1e-12)


def test_an_edit_is_in_it() -> None:
    model = small.model()
    set_value(model, "town", "Bonn", 1.25)
    assert model.to_interpret().term_scores_[3][1] == 1.25


def test_without_labels_the_classes_are_as_they_are() -> None:
    assert small.model(labels=None).to_interpret().classes_.tolist() == [0, 1]


def test_without_interpret_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "interpret.glassbox", None)
    monkeypatch.delitem(sys.modules, "dprepro.additive.export.interpret", raising=False)
    with pytest.raises(DpreproError, match=r"pip install 'dprepro\[interpret\]'"):
        small.model().to_interpret()
