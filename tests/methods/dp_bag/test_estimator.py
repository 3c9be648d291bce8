"""DP-Bag: votes move by at most one a class, labels follow the budget, unpaid reads are named."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import PrivacyWarning
from dprepro.methods.dp_bag.estimator import DPBagClassifier
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.privacy.composition import affordable_votes

DOMAIN = Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), ("0", "1"))


def rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(n), "c": rng.choice(["a", "b"], n)})
    return X, (X["x"] + 0.3 * (X["c"] == "b") > 0.6).to_numpy().astype(int)


def build(**params):
    settings = {"teachers": 10, "partitions": 3, "epsilon": 1.0, "delta": 1e-5, "domain": DOMAIN}
    return DPBagClassifier(**{**settings, "random_state": 0, **params})


@pytest.mark.parametrize("inputs", ["rows", "domain"])
def test_with_a_generous_budget_the_student_learns(inputs):
    model = build(inputs=inputs, epsilon=1000.0, teachers=5).fit(*rows(4000))
    assert model.score(*rows(seed=1)) > 0.85


def test_the_ledger_charges_every_vote_and_stays_within_the_budget():
    model = build(inputs="domain", random_state=None).fit(*rows())
    ledger = model.ledger_
    (entry,) = ledger.entries
    assert (entry.sensitivity, entry.scale) == (1.0, 5.0)
    assert entry.uses == 2 * model.figures_["labels"] == 2 * affordable_votes(0.2, 1.0, 1e-5)
    assert ledger.holds


def test_the_students_rows_are_unpaid_unless_drawn_from_the_domain():
    ledger = build(random_state=None).fit(*rows()).ledger_
    assert ledger.unaccounted == ["features of the rows set aside for the student"]
    assert not ledger.holds


def test_there_are_no_more_labels_than_rows_set_aside():
    assert build(epsilon=100.0).fit(*rows()).figures_["labels"] == 300


@pytest.mark.parametrize("name", ["dp-bag", "dp-bag-sound"])
def test_a_planned_ledger_is_that_of_a_fit(name):
    setting = Setting("binary", 1.0, 1e-5, DOMAIN, 0)
    fitted = get(name).build(setting, teachers=10, partitions=1).fit(*rows())
    planned = get(name).build(setting, teachers=10, partitions=1).planned_ledger(600)
    assert planned == fitted.ledger_


def test_without_a_domain_the_plan_names_reads_as_the_fit_does():
    model = build(domain=None, inputs="domain", random_state=None)
    planned = model.planned_ledger(600)
    with pytest.warns(PrivacyWarning, match="DPBagClassifier got no domain"):
        fitted = model.fit(*rows()).ledger_
    assert fitted.unaccounted == [
        "bounds of x",
        "categories of c",
        "which features have missing values",
    ]
    assert planned.unaccounted == [
        "bounds and categories of all features", "which features have missing values",
    ]  # fmt: skip
    assert planned.assumed_public == fitted.assumed_public == ["number of rows", "labels"]
    assert planned.entries == fitted.entries
    assert [planned.holds, fitted.holds] == [False, False]


def test_a_domain_of_other_features_is_refused():
    with pytest.raises(ValueError, match="3 columns but the domain describes 2 features"):
        build().fit(rows()[0].assign(z=1.0), rows()[1])


@pytest.mark.parametrize(
    ("params", "message"),
    [({"epsilon": 0.01}, "pays for no vote"), ({"teachers": 400}, "too few rows for 400 teachers")],
)
def test_what_cannot_be_done_says_what_to_do(params, message):
    with pytest.raises(ValueError, match=message):
        build(**params).fit(*rows())


def test_labels_keep_their_names_and_one_label_alone_is_constant():
    X, y = rows()
    domain = Domain(DOMAIN.features, ("no", "yes"))
    model = build(limit=1, domain=domain).fit(X, np.where(y == 1, "yes", "no"))
    assert set(model.predict(X)) <= {"yes", "no"}
    assert len(set(model.predict(X))) == 1
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert math.isfinite(model.predict_proba(X).max())
